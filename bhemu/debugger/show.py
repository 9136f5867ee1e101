"""A core and its memory as text: registers, code with source lines, stack, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bhemu.api.blocked import explain_core
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.debugger.watchpoints import register_number
from bhemu.isa.riscv import FLOAT_NAMES, REGISTER_NAMES, disassemble_riscv
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.core_state import IN_RESET
from bhemu.machine.state import L1_SIZE

COLUMNS: Final = 4
LINES_AROUND: Final = 10
ROW_BYTES: Final = 16


def registers(session: DebugSession, core: int, names: list[str] | None = None) -> str:
    """The integer registers of a core, or those named (`f0`, `fa0`: floating point; `cfg0`, `fcsr`)."""
    now = session.runner.state(core)
    if names:
        return "\n".join(_register(session, core, name.removeprefix("$")) for name in names)
    cells = [f"{name:>4} {int(value):#010x}" for name, value in zip(REGISTER_NAMES, now.x, strict=True)]
    rows = ["  ".join(cells[at : at + COLUMNS]) for at in range(0, len(cells), COLUMNS)]
    return "\n".join([*rows, f"  pc {session.describe(core, now.pc)}, {now.retired:,} instructions executed"])


def _register(session: DebugSession, core: int, name: str) -> str:
    record, now = session.record, session.runner.state(core)
    floats = {**{n: i for i, n in enumerate(FLOAT_NAMES)}, **{f"f{i}": i for i in range(32)}}
    if name == "pc":
        return f"pc {session.describe(core, now.pc)}"
    if name in ("cfg0", "fcsr"):
        return f"{name} {int(record[f'core_{name}'][core]):#010x}"
    if name in floats:
        bits = record.core_f[core, floats[name]]
        return f"{name} {int(bits):#010x} ({bits.view('f4')!s})"
    number = register_number(name)
    if number is None:
        raise DebugError(f"no register is named {name!r}", remedy="use a0, sp, x5, fa0, pc, cfg0 or fcsr")
    value = int(now.x[number])
    return f"{name} {value:#010x} ({value - (value >> 31 << 32)})"


def threads(session: DebugSession) -> str:
    """A line for each core: number, name, what it does."""
    record = session.record
    lines = []
    for core in range(CORES):
        mark = "*" if core == session.core else " "
        if record.core_state[core] == IN_RESET:
            text = f"{CORE_NAMES[core]}: in reset"
        else:
            text = explain_core(record, core, lambda c, _pc: session.where(c), session.name_of_word)
        lines.append(f"{mark} {core + 1}  {text}")
    return "\n".join(lines)


def disassembly(session: DebugSession, core: int, start: int, count: int) -> str:
    """Instructions with symbols and source lines; `=>` marks where the core is.

    Args:
        start: byte address of the first.
        count: instructions.
    """
    pc = session.runner.state(core).pc
    points = [item for item in session.runner.breakpoints if core in item.cores and item.enabled]
    planted = {address for item in points for address in item.addresses}
    lines = []
    place = None
    for address in range(start & ~3, (start & ~3) + 4 * count, 4):
        if not 0 <= address < L1_SIZE:
            break
        executable = session.executable_at(core, address)
        found = None if executable is None else executable.symbol_at(address)
        if executable is not None and found is not None and found[1] == 0:
            lines.append(f"{found[0].display}:")
        line = None if executable is None else executable.line_at(address)
        if line is not None and line != place:
            text = source_text(line.file, line.line)
            lines.append(f"  {Path(line.file).name}:{line.line}" + (f"  {text.strip()}" if text else ""))
        place = line
        mark = "=>" if address == pc else "  "
        stop = "*" if address in planted else " "
        word = int(session.record.l1_u32[address >> 2])
        lines.append(f"{mark}{stop}{address:#07x}  {word:08x}  {disassemble_riscv(word, address)}")
    return "\n".join(lines)


def around(session: DebugSession, core: int) -> str:
    """Where a core is: place, source line and the instruction to be executed."""
    pc = session.runner.state(core).pc
    line = session.line(core)
    word = int(session.record.l1_u32[pc >> 2]) if pc < L1_SIZE else None
    instruction = "no instruction" if word is None else disassemble_riscv(word, pc)
    text = f"{CORE_NAMES[core]} at {session.where(core)}: {instruction}"
    source = source_text(line.file, line.line) if line is not None else None
    return text if source is None or line is None else f"{text}\n{line.line}\t{source}"


_sources: dict[str, list[str] | None] = {}


def source_text(file: str, line: int) -> str | None:
    """A line of a source file, or None where it cannot be read; a path that moved is searched by its name."""
    if file not in _sources:
        _sources[file] = None
        for path in (Path(file), Path(Path(file).name)):
            try:
                _sources[file] = path.read_text(errors="replace").splitlines()
                break
            except OSError:
                continue
    lines = _sources[file]
    return lines[line - 1] if lines is not None and 1 <= line <= len(lines) else None


def listing(session: DebugSession, core: int, file: str | None = None, line: int | None = None) -> str:
    """Ten source lines around a line, by default around the core's pc."""
    now = session.line(core)
    if file is None or line is None:
        if now is None:
            raise DebugError(
                f"core {CORE_NAMES[core]} is at {session.where(core)}, which has no source line",
                remedy="compile with -g; `disassemble` shows the instructions",
            )
        file, line = now.file, now.line
    if source_text(file, 1) is None:
        raise DebugError(f"{file} cannot be read", remedy="run where the source is, or use `disassemble`")
    first = max(1, line - LINES_AROUND // 2)
    rows = []
    for number in range(first, first + LINES_AROUND):
        text = source_text(file, number)
        if text is not None:
            mark = "=>" if now is not None and (now.file, now.line) == (file, number) else "  "
            rows.append(f"{mark} {number}\t{text}")
    return "\n".join(rows)


def stack(session: DebugSession, core: int) -> str:
    """The functions that have not returned; guesses are called so."""
    lines = []
    for number, frame in enumerate(session.backtrace(core)):
        place = session.describe(core, frame.pc if number == 0 else frame.pc - 4)
        if number:
            place = f"{frame.pc:#07x} returned to, called at {place}"
        guess = "  (a guess: no call frame information)" if frame.is_guess else ""
        lines.append(f"#{number}  {place}{guess}")
    return "\n".join(lines)


def memory(session: DebugSession, core: int, address: int, count: int, unit: int = 4, how: str = "x") -> str:
    """Memory as a core finds it.

    Args:
        address: of the first unit.
        count: units.
        unit: bytes of one: 1, 2 or 4.
        how: `x` hexadecimal, `d` signed, `u` unsigned, `t` binary, `c` characters, `f` float32, `i` instructions,
            `s` a string.
    """
    if how == "i":
        return disassembly(session, core, address, count)
    if how == "s":
        return _string(session, core, address)
    content = session.read_memory(address, count * unit, core)
    cells = [_cell(content[at : at + unit], how) for at in range(0, len(content), unit)]
    width = max(map(len, cells))
    per_row = ROW_BYTES // unit
    lines = []
    for at in range(0, len(cells), per_row):
        place = address + at * unit
        name = session.name_of_word(place)
        head = f"{place:#010x}" + (f" <{name}>" if name else "")
        lines.append(f"{head}:  " + " ".join(f"{cell:>{width}}" for cell in cells[at : at + per_row]))
    return "\n".join(lines)


def _cell(content: bytes, how: str) -> str:
    import struct

    bits = 8 * len(content)
    value = int.from_bytes(content, "little")
    if how == "d":
        return str(value - (value >> (bits - 1) << bits))
    if how == "u":
        return str(value)
    if how == "t":
        return f"{value:0{bits}b}"
    if how == "c":
        return repr(chr(value & 0x7F)) if value < 0x80 else f"{value:#x}"
    if how == "f":
        if bits != 32:
            raise DebugError(f"a float of {bits} bits", remedy="use x/fw: float32")
        return f"{struct.unpack('<f', content)[0]:.9g}"
    if how != "x":
        raise DebugError(f"memory cannot be shown as {how!r}", remedy="use x, d, u, t, c, f, i or s")
    return f"{value:#0{2 + bits // 4}x}"


def _string(session: DebugSession, core: int, address: int) -> str:
    content = bytearray()
    while len(content) < 200:
        byte = session.read_memory(address + len(content), 1, core)
        if byte == b"\0":
            break
        content += byte
    return f"{address:#010x}:  {bytes(content)!r}"
