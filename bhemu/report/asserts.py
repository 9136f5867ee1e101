"""Asserts that have failed, and what tt-metal's watcher found on the tiles, with their source lines.

The watcher's part of a kernel writes what it finds into the mailboxes of the firmware in L1, and lets the core hang.
Where that is, and what the codes are called, differs from release to release: the debug information of the kernels says
it. Without the watcher an assert is an `ebreak`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu.chip.coordinates import Place
from bhemu.counting.launches import jump_offset
from bhemu.errors import ProgramError
from bhemu.loader.by_content import Moved
from bhemu.loader.debug_info import DebugInfo, Member
from bhemu.loader.elf import SourceLine
from bhemu.loader.firmware_layout import CORE_ORDER
from bhemu.machine.agents import CORE_NAMES
from bhemu.recording.parts import Part
from bhemu.report.names import UNKNOWN, PartNames

EBREAK: Final = "ebreak"
"""Code of an assert without the watcher."""
MAILBOXES: Final = "mailboxes_t"
ASSERT_CODES: Final = "debug_assert_type_t"
SANITIZE: Final = "debug_sanitize_addr_msg_t"
SANITIZE_CODES: Final = "debug_sanitize_noc_return_code_enum"
_FINE: Final = "OK"
"""Ends the names of the codes that say that all is well."""
_LOCAL_BITS: Final = 36
_COORDINATE_BITS: Final = 6
_JALR, _AUIPC = 0x67, 0x17
_DEEPEST: Final = 32


@dataclass(frozen=True)
class Failure:
    """An assert that has failed, or something that the watcher reports.

    Attributes:
        place: translated coordinates of the tile.
        launch: number of the launch on the tile.
        core: name.
        code: `ebreak`, or the watcher's name of it.
        line: of the assert or the request, `kernel.cpp:12`; in the kernel's own file when one of `calls` is; empty when
            it is not known.
        calls: that line and those from which it was called, the innermost first, as far as they are known.
        kernel: name.
        detail: what the watcher says of a NoC request.
        waypoint: the last one of the core, as the kernel has named it; empty without the watcher.
        clock: of the chip at the end of the part in which it was seen.
    """

    place: Place
    launch: int
    core: str
    code: str
    line: str
    calls: tuple[str, ...]
    kernel: str
    detail: str
    waypoint: str
    clock: int


class Watcher:
    """Where the watcher's findings are in the mailboxes, and what its codes mean, by debug information of programs."""

    def __init__(self) -> None:
        self._info: DebugInfo | None = None
        self._asserts: dict[int, str] = {}
        self._sanitized: dict[int, str] = {}

    @property
    def knows_places(self) -> bool:
        """The mailboxes have been described."""
        return self._info is not None

    def learn(self, info: DebugInfo) -> None:
        """Take what a program's debug information says."""
        if self._info is None and info.member(MAILBOXES, "watcher") is not None:
            self._info = info
        self._asserts |= info.enumerators(ASSERT_CODES)
        self._sanitized |= info.enumerators(SANITIZE_CODES)

    def knows_codes(self, mailboxes: bytes) -> bool:
        """All codes that are there have names; 0 is none."""
        tripped, table = self._member("watcher.assert_status.tripped"), self._member("watcher.sanitize")
        code = None if self._info is None else self._info.member(SANITIZE, "return_code")
        if tripped is None or table is None or code is None:
            return False
        bases = [table.offset + noc * table.size for noc in range(table.count)]
        return tripped.number(mailboxes) in {0, *self._asserts} and all(
            code.number(mailboxes, base) in {0, *self._sanitized} for base in bases
        )

    def _member(self, path: str) -> Member | None:
        """A member of the mailboxes, from the launch messages on."""
        if self._info is None:
            return None
        launch, found = self._info.member(MAILBOXES, "launch"), self._info.member(MAILBOXES, path)
        if launch is None or found is None:
            return None
        return Member(found.offset - launch.offset, found.size, found.count)

    def failed_assert(self, mailboxes: bytes) -> tuple[str, int, int] | None:
        """(name of the code, core by its number in the firmware, source line), when there is one."""
        members = [self._member(f"watcher.assert_status.{name}") for name in ("tripped", "which", "line_num")]
        if None in members:
            return None
        code, which, line = (member.number(mailboxes) for member in members if member is not None)
        name = self._asserts.get(code, _FINE)
        return None if name.endswith(_FINE) or which >= len(CORE_ORDER) else (name, which, line)

    def wrong_requests(self, mailboxes: bytes) -> Iterator[tuple[str, int, str]]:
        """(name of the code, core by its number in the firmware, what the request was) for each network interface."""
        table = self._member("watcher.sanitize")
        if table is None or self._info is None:
            return
        for noc in range(table.count):
            values: dict[str, int] = {}
            for name in ("return_code", "which_risc", "noc_addr", "l1_addr", "len", "is_write", "is_multicast"):
                member = self._info.member(SANITIZE, name)
                if member is not None:
                    values[name] = member.number(mailboxes, table.offset + noc * table.size)
            name = self._sanitized.get(values.get("return_code", 0), _FINE)
            if not name.endswith(_FINE) and values.get("which_risc", len(CORE_ORDER)) < len(CORE_ORDER):
                yield name, values["which_risc"], _request_text(noc, values)

    def waypoint(self, mailboxes: bytes, which: int) -> str:
        """What a core has written last to say where it is."""
        member = self._member("watcher.debug_waypoint")
        if member is None or which >= member.count:
            return ""
        value = member.number(mailboxes, index=which).to_bytes(member.size, "little")
        return value.rstrip(b"\0").decode("ascii", "replace") if any(value) else ""


def _request_text(noc: int, values: dict[str, int]) -> str:
    address = values.get("noc_addr", 0)
    x, y = (address >> _LOCAL_BITS + shift & (1 << _COORDINATE_BITS) - 1 for shift in (0, _COORDINATE_BITS))
    verb, link = ("write", "from") if values.get("is_write") else ("read", "to")
    several = "multicast " if values.get("is_multicast") else ""
    return (
        f"NoC {noc}: {several}{verb} of {values.get('len', 0):,} bytes, {link} {values.get('l1_addr', 0):#x}; "
        f"the other end is {address & (1 << _LOCAL_BITS) - 1:#x} in {x}-{y}"
    )


class Failures:
    """Collects failures from the parts of a recording; each is told once.

    Attributes:
        found: so far.
    """

    def __init__(self) -> None:
        self.found: list[Failure] = []
        self._known: set[tuple[Any, ...]] = set()
        self._infos: dict[Path, DebugInfo | None] = {}
        self._watcher = Watcher()

    def take(self, part: Part, names: PartNames, launch: int) -> None:
        """The next part.

        Args:
            part: of the recording.
            names: of its code.
            launch: number of the program that runs on the tile.
        """
        for core in part.halted:
            pc = part.pcs[core] - 4  # it halts after the `ebreak` (tile T9)
            if self._new(part, core, EBREAK, pc):
                lines = self._lines(names, pc)
                if part.firmware_end or any(map(_asserts, lines)):
                    self._add(part, launch, names, core, EBREAK, _without_assert(lines), "", "")
        if part.mailboxes.any():
            self._read(part, names, launch)

    def _learn(self, names: PartNames, mailboxes: bytes) -> None:
        """Read debug information, which takes time, only until it says what the mailboxes mean."""
        for piece in names.pieces:
            if self._watcher.knows_places and self._watcher.knows_codes(mailboxes):
                return
            fresh = piece.path not in self._infos
            info = self._info(piece)
            if fresh and info is not None:
                self._watcher.learn(info)

    def _read(self, part: Part, names: PartNames, launch: int) -> None:
        watcher, mailboxes = self._watcher, part.mailboxes.tobytes()
        self._learn(names, mailboxes)
        failed = watcher.failed_assert(mailboxes)
        if failed is not None:
            code, which, number = failed
            core = CORE_NAMES.index(CORE_ORDER[which])
            if self._new(part, core, code, number):
                lines = _lines_of(part, names, core, number)
                self._add(part, launch, names, core, code, lines, "", watcher.waypoint(mailboxes, which))
        for code, which, detail in watcher.wrong_requests(mailboxes):
            core = CORE_NAMES.index(CORE_ORDER[which])
            if self._new(part, core, code, detail):
                lines = self._stack(part, names, core)
                self._add(part, launch, names, core, code, lines, detail, watcher.waypoint(mailboxes, which))

    def _new(self, part: Part, core: int, code: str, what: object) -> bool:
        key = part.place, core, code, what
        fresh = key not in self._known
        self._known.add(key)
        return fresh

    def _add(
        self,
        part: Part,
        launch: int,
        names: PartNames,
        core: int,
        code: str,
        lines: list[SourceLine],
        detail: str,
        waypoint: str,
    ) -> None:
        kernel = names.kernel(part.pcs[core])
        files = [line.file.rpartition("/")[2] for line in lines]
        texts = [f"{file}:{line.line}" for file, line in zip(files, lines, strict=True)]
        own = next((text for file, text in zip(files, texts, strict=True) if Path(file).stem == kernel), None)
        self.found.append(
            Failure(
                part.place,
                launch,
                CORE_NAMES[core],
                code,
                own or next(iter(texts), ""),
                tuple(texts),
                "" if kernel == UNKNOWN else kernel,
                detail,
                waypoint,
                part.end,
            )
        )

    # --- where ------------------------------------------------------------------------------------------------------

    def _info(self, piece: Moved) -> DebugInfo | None:
        if piece.path not in self._infos:
            try:
                self._infos[piece.path] = DebugInfo(piece.executable.content)
            except ProgramError:
                self._infos[piece.path] = None
        return self._infos[piece.path]

    def _lines(self, names: PartNames, pc: int) -> list[SourceLine]:
        """The line of an instruction, and those from which it was inlined."""
        piece, line = names.at(pc), names.line(pc)
        if piece is None or line is None:
            return []
        info = self._info(piece)
        return [line, *(info.calls(pc - piece.distance) if info is not None else ())]

    def _stack(self, part: Part, names: PartNames, core: int) -> list[SourceLine]:
        """Lines of the calls that lead to where a core hangs: of calls from which it has not returned."""
        counts = {pc: count for pc, count, _ in part.log.counted(core)}
        words = _words(part)
        lines: list[SourceLine] = []
        pc = part.pcs[core]
        for _ in range(_DEEPEST):
            piece = names.at(pc)
            symbol = None if piece is None else piece.symbol_at(pc)
            if symbol is None:
                break
            calls = [
                at
                for at in counts
                if _target(words, at) == symbol[0].address and counts[at] > _returns(names, counts, at)
            ]
            if not calls:
                break
            pc = calls[0]
            lines += self._lines(names, pc)
        return lines


def _returns(names: PartNames, counts: dict[int, int], call: int) -> int:
    """How often the instruction after a call was executed; after one that never returns another function begins."""
    piece = names.at(call)
    inside, behind = (None if piece is None else piece.symbol_at(pc) for pc in (call, call + 4))
    return counts.get(call + 4, 0) if inside and behind and inside[0].address == behind[0].address else 0


def _words(part: Part) -> dict[int, int]:
    return {
        address + at: int.from_bytes(content[at : at + 4], "little")
        for address, content in part.code
        for at in range(0, len(content), 4)
    }


def _target(words: dict[int, int], pc: int) -> int | None:
    """Where a call at a pc leads; None for anything else."""
    word = words.get(pc, 0)
    offset = jump_offset(word)
    if offset is not None and word >> 7 & 31:
        return pc + offset
    before = words.get(pc - 4, 0)
    if word & 0x7F == _JALR and before & 0x7F == _AUIPC and word >> 15 & 31 == before >> 7 & 31:
        return pc - 4 + (before & 0xFFFFF000) + ((word >> 20) - (word >> 31 << 12)) & 0xFFFFFFFF
    return None


def _lines_of(part: Part, names: PartNames, core: int, number: int) -> list[SourceLine]:
    """The files in which a core has executed a line with that number; those in which it has an assert, if it has."""
    found: dict[SourceLine, None] = {}
    for pc, _, _ in part.log.counted(core):
        line = names.line(pc)
        if line is not None and line.line == number:
            found[line] = None
    return [line for line in found if _asserts(line)] or list(found)


def _asserts(line: SourceLine) -> bool:
    """The file is one of asserts, or has one in this line."""
    if _is_of_asserts(line):
        return True
    try:
        with Path(line.file).open(errors="replace") as file:
            text = next((text for number, text in enumerate(file, 1) if number == line.line), "")
    except OSError:
        return False
    return "assert" in text.lower()


def _is_of_asserts(line: SourceLine) -> bool:
    return "assert" in line.file.rpartition("/")[2].lower()


def _without_assert(lines: list[SourceLine]) -> list[SourceLine]:
    """The lines after those of the assert itself."""
    return [line for line in lines if not _is_of_asserts(line)] or lines
