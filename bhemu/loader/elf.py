"""Loading the ELF file of a compiled kernel: segments, symbols, line numbers; what the cores cannot run is refused.

Where the segments go is the boot code's business: a file may be loaded at its own addresses, or as the image that its
start-up code copies (tile rules B5, B25).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.errors import ProgramError
from bhemu.loader.debug_info import DebugInfo
from bhemu.loader.lines import LineTable, SourceLine, read_uleb128
from bhemu.loader.symbols import Symbol, SymbolKind, SymbolTable

__all__ = ["Executable", "Segment", "SourceLine", "Symbol", "load_elf", "parse_elf"]

MAGIC: Final = b"\x7fELF"
ADDRESS_SPACE: Final = 1 << 32
COMPILE: Final = "compile with -march=rv32im_zba_zbb -mabi=ilp32"
REBUILD: Final = "build it again"

_ELF32_HEADER, _ELF32_SECTION_HEADER = 52, 40
_EF_RISCV_RVC = 1
_PF_X = 1
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00
_STB_LOCAL = 0
_STT_NOTYPE, _STT_OBJECT, _STT_FUNC, _STT_SECTION, _STT_FILE, _STT_TLS = 0, 1, 2, 3, 4, 6
_SYMBOL: Final = struct.Struct("<IIIBBH")
_TAG_RISCV_ARCH, _TAG_FILE = 5, 1


@dataclass(frozen=True)
class Segment:
    """A loadable segment (PT_LOAD).

    Attributes:
        address: where the program expects it (p_vaddr).
        load_address: where the linker wants its image (p_paddr).
        content: the bytes in the file (p_filesz of them).
        size: bytes in memory (p_memsz); those beyond `content` are zero.
        executable: holds code.
    """

    address: int
    load_address: int
    content: bytes
    size: int
    executable: bool


class Executable:
    """A loaded ELF file; make one with `load_elf` or `parse_elf`.

    Attributes:
        path: the file's name.
        entry: address of the first instruction.
        segments: in the order of the file.
        symbols: by ascending address.
        attributes: the instruction set that the file was compiled for (`rv32i2p1_m2p0_...`), or None.
    """

    def __init__(
        self,
        path: Path,
        entry: int,
        segments: tuple[Segment, ...],
        symbols: SymbolTable,
        attributes: str | None,
        content: bytes,
    ) -> None:
        self.path = path
        self.entry = entry
        self.segments = segments
        self.symbols = symbols.symbols
        self.attributes = attributes
        self._symbols = symbols
        self._content = content

    @property
    def content(self) -> bytes:
        """The whole file, for readers of its debug information."""
        return self._content

    @cached_property
    def _lines(self) -> LineTable:
        return LineTable(self._content, _code(self.segments))

    def address_of(self, name: str) -> int | None:
        """The address of a symbol, by its name in the linker or in the source; None if there is none."""
        return self._symbols.address_of(name)

    @cached_property
    def _inlined(self) -> dict[str, list[int]]:
        try:
            return DebugInfo(self._content).inlined_copies()
        except ProgramError:  # as without debug information
            return {}

    def inlined_copies(self, name: str) -> list[int]:
        """Where copies of a function begin that the compiler has inlined, ascending."""
        code = _code(self.segments)  # functions that the linker dropped are outside
        found = self._inlined.get(name, []) if name.encode() in self._content else []
        return [place for place in found if any(begin <= place < end for begin, end in code)]

    def places_of(self, name: str) -> list[int]:
        """Where a function begins: its own code, if it has any, and its inlined copies."""
        own = self.address_of(name)
        return [*([] if own is None else [own]), *(place for place in self.inlined_copies(name) if place != own)]

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """The function (or code label of assembly) that holds an address, and the offset in it.

        A symbol without a size reaches to the next one or to the end of its segment.
        """
        return self._symbols.at(address)

    def describe(self, address: int) -> str:
        """An address for a message: `main+0x10 (kernel.c:12)`, or as much of it as is known."""
        found, line = self.symbol_at(address), self.line_at(address)
        text = f"0x{address:08x}"
        if found is not None:
            symbol, offset = found
            text = f"{symbol.display}+{offset:#x}" if offset else symbol.display
        return text if line is None else f"{text} ({line.file.rpartition('/')[2]}:{line.line})"

    def line_at(self, address: int) -> SourceLine | None:
        """The source line of an address; of inlined code, the line in the function that was inlined."""
        return self._lines.at(address)

    def addresses_of_line(self, file: str, line: int) -> list[int]:
        """Where the code of a source line begins, ascending; empty if it has none.

        Args:
            file: its path or the last components of it.
            line: counted from 1.
        """
        return self._lines.addresses_of(file, line)

    @property
    def line_damage(self) -> str | None:
        """Why some line numbers are missing although the file has debug information, or None."""
        return self._lines.damage


def has_code_at(executable: Executable, address: int) -> bool:
    """A program has instructions at an address."""
    return any(s.executable and s.address <= address < s.address + s.size for s in executable.segments)


def variable_at(executables: Iterable[Executable], address: int) -> str:
    """The variable of the first program that has one at an address, as `name+0x4`; nothing where none has."""
    for executable in executables:
        for symbol in executable.symbols:
            if symbol.kind == "object" and symbol.address <= address < symbol.address + max(symbol.size, 1):
                offset = address - symbol.address
                return symbol.display + (f"+{offset:#x}" if offset else "")
    return ""


@checked
def load_elf(path: str | Path) -> Executable:
    """Load a kernel's ELF file.

    Raises:
        ProgramError: the file cannot be read or is not one that the baby cores can run.
    """
    source = checks.path(path)
    try:
        if source.is_dir():
            raise ProgramError(f"{source} is a directory", remedy="name the ELF file of a kernel in it")
        if not source.exists():
            raise ProgramError(f"{source}: no such file", remedy="name the ELF file of a kernel")
        if not source.is_file():
            raise ProgramError(f"{source} is not a regular file", remedy="name the ELF file of a kernel")
        with source.open("rb") as file:
            content = file.read(len(MAGIC))
            if content == MAGIC:
                content += file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProgramError(f"{source} cannot be read: {reason}", remedy="check its name and permissions") from None
    return parse_elf(content, str(source))


def parse_elf(content: bytes, name: str) -> Executable:
    """The executable in the bytes of an ELF file.

    Args:
        content: the whole file.
        name: for messages and `Executable.path`.

    Raises:
        ProgramError: it is not an ELF file, is damaged, or is not one that the baby cores can run.
    """
    content, name = checks.content(content), checks.text(name, "name")
    _check_identity(content, name)
    from elftools.elf.elffile import ELFFile  # not needed to run Python programs, and takes a while

    try:
        elf: Any = ELFFile(io.BytesIO(content))
        _check_header(elf, name)
        segments = _segments(elf, content, name)
        sections = _sections(elf, content, name)
        symbols = _symbols(sections, segments)
        attributes = _architecture(sections)
        return Executable(Path(name), int(elf["e_entry"]), segments, symbols, attributes, content)
    except ProgramError:
        raise
    except Exception as error:  # pyelftools raises whatever its parsers run into
        reason = str(error) or type(error).__name__
        raise ProgramError(f"{name} is damaged: {reason}", remedy=REBUILD) from None


def _truncated(name: str, what: str, end: int, size: int) -> ProgramError:
    return ProgramError(
        f"{name} is truncated: {what} ends at byte {end}, the file at byte {size}", remedy="build or copy it again"
    )


def _check_identity(content: bytes, name: str) -> None:
    if not content:
        raise ProgramError(f"{name} is empty", remedy=REBUILD)
    if not content.startswith(MAGIC):
        begin = content[:4].hex(" ")
        raise ProgramError(
            f"{name} is not an ELF file: it begins with {begin}", remedy="name the linked ELF file of a kernel"
        )
    if len(content) < _ELF32_HEADER:
        raise _truncated(name, "the ELF header", _ELF32_HEADER, len(content))


def _check_header(elf: Any, name: str) -> None:
    machine, bits = elf["e_machine"], elf.elfclass
    if machine != "EM_RISCV":
        other = f"machine number {machine}" if isinstance(machine, int) else elf.get_machine_arch()
        if other == "<unknown>":
            other = machine.removeprefix("EM_")
        raise ProgramError(
            f"{name} is for {other} ({bits}-bit), not for RISC-V", remedy=f"use a RISC-V compiler and {COMPILE}"
        )
    if bits != 32:
        raise ProgramError(f"{name} is a 64-bit RISC-V file, and the baby cores have 32 bits", remedy=COMPILE)
    if not elf.little_endian:
        raise ProgramError(
            f"{name} is big-endian, and the baby cores are little-endian", remedy="compile with -mlittle-endian"
        )
    kind = elf["e_type"]
    if kind == "ET_REL":
        raise ProgramError(
            f"{name} is a relocatable object, not an executable", remedy="link it, with -nostdlib and a linker script"
        )
    if kind == "ET_DYN":
        raise ProgramError(
            f"{name} is a shared or position-independent object, not an executable", remedy="link with -static -no-pie"
        )
    if kind != "ET_EXEC":
        raise ProgramError(f"{name} is not an executable: its type is {kind}", remedy="name the linked ELF file")
    if elf["e_flags"] & _EF_RISCV_RVC:  # tile rule T1: no C extension
        raise ProgramError(
            f"{name} has compressed instructions, which the baby cores do not have",
            remedy="compile and link everything, libraries too, with -march=rv32im_zba_zbb (no c) -mabi=ilp32",
        )


def _segments(elf: Any, content: bytes, name: str) -> tuple[Segment, ...]:
    count, table = int(elf.num_segments()), int(elf["e_phoff"])
    if count and table + count * elf["e_phentsize"] > len(content):
        raise _truncated(name, "the program header table", table + count * elf["e_phentsize"], len(content))
    segments = []
    for index in range(count):
        header: Any = elf.get_segment(index)
        if header["p_type"] in ("PT_INTERP", "PT_DYNAMIC"):
            raise ProgramError(f"{name} is dynamically linked", remedy="link with -static -no-pie")
        if header["p_type"] != "PT_LOAD" or header["p_memsz"] == 0 == header["p_filesz"]:
            continue
        address, load_address = int(header["p_vaddr"]), int(header["p_paddr"])
        start, file_size, size = int(header["p_offset"]), int(header["p_filesz"]), int(header["p_memsz"])
        what = f"segment {index} at {address:#010x}"
        if file_size > size:
            raise ProgramError(
                f"{name} is damaged: {what} has {file_size} bytes in the file, {size} in memory", remedy=REBUILD
            )
        if start + file_size > len(content):
            raise _truncated(name, what, start + file_size, len(content))
        if address + size > ADDRESS_SPACE or load_address + file_size > ADDRESS_SPACE:
            raise ProgramError(
                f"{name}: {what} has {size} bytes and goes past the end of the 32-bit address space",
                remedy="fix the linker script",
            )
        executable = bool(header["p_flags"] & _PF_X)
        segments.append(Segment(address, load_address, content[start : start + file_size], size, executable))
    if not any(segment.content for segment in segments):
        raise ProgramError(
            f"{name} has no loadable segment with content",
            remedy="name the linked executable (not its debug file), linked with a script that places .text",
        )
    _check_overlaps(segments, name)
    return tuple(segments)


def _check_overlaps(segments: list[Segment], name: str) -> None:
    for what, ranges in (
        ("segments", [(s.address, s.address + s.size) for s in segments]),
        ("images of segments", [(s.load_address, s.load_address + len(s.content)) for s in segments if s.content]),
    ):
        ranges.sort()
        for (start, end), (next_start, next_end) in pairwise(ranges):
            if next_start < end:
                raise ProgramError(
                    f"{name}: {what} overlap: {start:#010x}..{end - 1:#010x} and "
                    f"{next_start:#010x}..{next_end - 1:#010x}",
                    remedy="fix the linker script",
                )


def _code(segments: tuple[Segment, ...]) -> list[tuple[int, int]]:
    return [(s.address, s.address + s.size) for s in segments if s.executable]


def _sections(elf: Any, content: bytes, name: str) -> list[Any]:
    """All sections; none in a file without a section table, which runs as well."""
    table = int(elf["e_shoff"])
    if table == 0:
        return []
    if table + _ELF32_SECTION_HEADER > len(content):
        raise _truncated(name, "the section table", table + _ELF32_SECTION_HEADER, len(content))
    end = table + int(elf.num_sections()) * elf["e_shentsize"]
    if end > len(content):
        raise _truncated(name, "the section table", end, len(content))
    sections = list(elf.iter_sections())
    for section in sections:
        end = section["sh_offset"] + section["sh_size"]
        if section["sh_type"] not in ("SHT_NOBITS", "SHT_NULL") and end > len(content):
            raise _truncated(name, f"section {section.name}", end, len(content))
        if section["sh_type"] == "SHT_NOBITS" and section.name.startswith((".debug", ".zdebug")):
            # pyelftools would make its content of zeros, of whatever size the header says.
            raise ProgramError(f"{name} is damaged: section {section.name} has no content", remedy=REBUILD)
    return sections


def _symbols(sections: list[Any], segments: tuple[Segment, ...]) -> SymbolTable:
    symbols: list[tuple[Symbol, bool]] = []
    labels: list[Symbol] = []
    for table in sections:
        if table["sh_type"] != "SHT_SYMTAB":
            continue
        names: bytes = sections[table["sh_link"]].data()
        content: bytes = table.data()
        for at in range(0, len(content) - _SYMBOL.size + 1, _SYMBOL.size):
            name_at, address, size, info, _other, index = _SYMBOL.unpack_from(content, at)
            kind, is_global = info & 0xF, info >> 4 != _STB_LOCAL
            if index == _SHN_UNDEF or kind in (_STT_SECTION, _STT_FILE, _STT_TLS):
                continue
            name = names[name_at : names.find(b"\0", name_at)].decode("utf-8", "replace")
            if not name or name.startswith((".L", "$x", "$d")):  # compilers' own labels, and marks of code and data
                continue
            flags = 0
            if index < _SHN_LORESERVE:
                section = sections[index]
                flags = section["sh_flags"]
                if not flags & _SHF_ALLOC and section["sh_addr"] == 0:
                    continue  # an offset in a section that has no address, such as debug information
            kinds: dict[int, SymbolKind] = {_STT_FUNC: "function", _STT_OBJECT: "object"}
            symbol = Symbol(name, address, size, kinds.get(kind, "other"))
            symbols.append((symbol, is_global))
            if kind == _STT_NOTYPE and is_global and flags & _SHF_EXECINSTR:
                labels.append(symbol)
    return SymbolTable(symbols, labels, _code(segments))


def _architecture(sections: list[Any]) -> str | None:
    """Tag_RISCV_arch of .riscv.attributes (RISC-V ELF psABI, "Attributes"), or None."""
    for section in sections:
        if section["sh_type"] == "SHT_RISCV_ATTRIBUTES":
            for tag, value in _attributes(section.data()):
                if tag == _TAG_RISCV_ARCH:
                    return value.decode("utf-8", "replace")
    return None


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The file's attributes with string values, which have odd tags.

    A walk of our own: pyelftools reads a subsection of length 0 forever. Damage ends it.
    """
    at = 1  # after the version, "A"
    while at + 4 <= len(content):
        size = int.from_bytes(content[at : at + 4], "little")
        vendor, _, body = content[at + 4 : at + size].partition(b"\0")
        at += max(size, 4)
        inner = 0
        while vendor == b"riscv" and inner + 5 <= len(body):
            length = int.from_bytes(body[inner + 1 : inner + 5], "little")
            if body[inner] == _TAG_FILE:
                yield from _tags(body[inner + 5 : inner + length])
            inner += max(length, 5)


def _tags(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        try:
            tag, at = read_uleb128(content, at)
            if tag % 2:
                end = content.index(0, at)
                yield tag, content[at:end]
                at = end + 1
            else:
                _, at = read_uleb128(content, at)
        except (IndexError, ValueError):
            return
