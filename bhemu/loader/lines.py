"""Source lines of an executable's addresses, from the DWARF line programs (versions 2 to 5)."""

from __future__ import annotations

import io
import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bhemu.loader.symbols import AddressRange

if TYPE_CHECKING:
    from elftools.dwarf.lineprogram import LineProgram

LINE_VERSIONS: Final = range(2, 6)


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file; `file` is the path that the compiler recorded."""

    file: str
    line: int


class _Row(NamedTuple):
    address: int
    file: str
    line: int
    is_statement: bool


class LineTable:
    """Source lines by address and addresses by source line.

    Args:
        content: the ELF file.
        code: the ranges of executable segments. Sequences outside belong to functions that the linker dropped.

    Attributes:
        damage: why some lines are missing, or None.
    """

    def __init__(self, content: bytes, code: Sequence[AddressRange]) -> None:
        self.damage: str | None = None
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._lines: list[SourceLine | None] = []
        self._statements: dict[str, dict[int, dict[int, bool]]] = {}  # file, line, address: has it instructions
        sequences = [
            (rows, end)
            for rows, end in self._sequences(content)
            if any(start <= rows[0].address and end <= stop for start, stop in code)
        ]
        reached = 0
        for rows, end in sorted(sequences, key=lambda item: item[0][0].address):
            # Functions that the linker dropped have address 0; where code starts there, the first one is the real one.
            if rows[0].address >= reached:
                self._add(rows, end)
                reached = end

    def at(self, address: int) -> SourceLine | None:
        """The line that an address belongs to."""
        index = bisect_right(self._starts, address) - 1
        return self._lines[index] if index >= 0 and address < self._ends[index] else None

    def addresses_of(self, file: str, line: int) -> list[int]:
        """Where the statements of a line begin, ascending; `file` is a path or the end of one.

        An address at which another line takes over at once counts only where the line has no other.
        """
        wanted = posixpath.normpath(file)
        found: dict[int, bool] = {}
        for path, lines in self._statements.items():
            if path == wanted or path.endswith("/" + wanted.lstrip("/")):
                for address, has_code in lines.get(line, {}).items():
                    found[address] = has_code or found.get(address, False)
        return sorted(a for a, has_code in found.items() if has_code) or sorted(found)

    def _add(self, rows: list[_Row], end: int) -> None:
        known: dict[tuple[str, int], SourceLine] = {}
        place: tuple[str, int] | None = None
        has_statement = False
        for row, following in zip(rows, [*[r.address for r in rows[1:]], end], strict=True):
            if (row.file, row.line) != place:
                place = (row.file, row.line)
                has_statement = False
            if row.is_statement and row.line and not has_statement:
                addresses = self._statements.setdefault(row.file, {}).setdefault(row.line, {})
                addresses[row.address] = False
                has_statement = True
            if following > row.address:
                if row.line and row.address in (addresses := self._statements.get(row.file, {}).get(row.line, {})):
                    addresses[row.address] = True
                self._starts.append(row.address)
                self._ends.append(following)
                # Line 0 says that the compiler made this up.
                self._lines.append(known.setdefault(place, SourceLine(*place)) if row.line else None)

    def _sequences(self, content: bytes) -> Iterator[tuple[list[_Row], int]]:
        """The sequences of all units, each ascending; damaged units are left out and noted."""
        # pyelftools raises whatever its parsers run into.
        try:
            dwarf = debug_information(content)
            units = iter(()) if dwarf is None else dwarf.iter_CUs()
        except Exception as error:
            self._note(error)
            return
        seen: set[int] = set()
        while True:
            try:
                unit = next(units)
            except StopIteration:
                return
            except Exception as error:  # where the next unit begins is unknown as well
                self._note(error)
                return
            try:
                yield from list(_decode_unit(dwarf, unit, seen))
            except Exception as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        self.damage = self.damage or f"the debug information is damaged ({reason}): some lines are unknown"


def debug_information(content: bytes) -> Any:
    """What pyelftools reads of a file's debug sections, or None without line numbers."""
    from elftools.elf.elffile import ELFFile

    elf: Any = ELFFile(io.BytesIO(content))
    if not elf.has_section(".debug_line") or not elf.has_section(".debug_info"):
        return None
    # An executable's debug sections are relocated already, also where the linker kept the relocations.
    return elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)


def _decode_unit(dwarf: Any, unit: Any, seen: set[int]) -> Iterator[tuple[list[_Row], int]]:
    """The sequences of a unit's line program, unless an earlier unit has `seen` it."""
    attributes = unit.get_top_DIE().attributes
    start = attributes.get("DW_AT_stmt_list")
    if start is None or start.value in seen:
        return
    seen.add(start.value)
    check_file_tables(dwarf.debug_line_sec.stream.getvalue(), int(start.value))
    directory = attributes.get("DW_AT_comp_dir")
    yield from _decode(dwarf.line_program_for_CU(unit), text_of(directory.value) if directory else "")


def text_of(value: Any) -> str:
    """The text of an attribute."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "?")


def _decode(program: LineProgram, directory: str) -> Iterator[tuple[list[_Row], int]]:
    header: Any = program.header
    files = source_files(header, directory)
    rows: list[_Row] = []
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            if rows:
                yield rows, state.address
            rows = []
            continue
        if rows and state.address < rows[-1].address:
            raise ValueError(f"line program goes back to {state.address:#x}")
        rows.append(_Row(state.address, files.get(state.file, "?"), state.line, bool(state.is_stmt)))


def source_files(header: Any, directory: str) -> dict[int, str]:
    """Paths by file number; version 5 counts files and directories from 0, earlier ones from 1."""
    directories = [text_of(d) for d in header.get("include_directory") or ()]
    first = 0 if header.version >= 5 else 1
    if first:
        directories.insert(0, directory)
    paths = {}
    for number, file in enumerate(header.get("file_entry") or (), first):
        index = file.dir_index or 0
        folder = directories[index] if index < len(directories) else ""
        root = directories[0] if directories else ""
        paths[number] = posixpath.normpath(posixpath.join(directory, root, folder, text_of(file.name)))
    return paths


_FORM_SIZES: Final = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16, 0x0E: 4, 0x1F: 4}
"""data1, data2, data4, data8, data16, strp, line_strp (32-bit DWARF)."""
_FORM_STRING, _FORM_UDATA, _FORM_BLOCK = 0x08, 0x0F, 0x09


def read_uleb128(content: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and the offset after it.

    Raises:
        IndexError: it runs past the end.
    """
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def check_file_tables(content: bytes, at: int) -> None:
    """Walk the directory and file tables of a version 5 line program before pyelftools does.

    Entries of a damaged table may take no bytes, and pyelftools would then make as many as the count says (up to
    2**64). Here every entry takes at least one byte, so that the section's end ends the walk.

    Args:
        content: the section .debug_line.
        at: offset of the line program.

    Raises:
        ValueError, IndexError: the header or a table is damaged.
    """
    version = int.from_bytes(content[at + 4 : at + 6], "little")
    if version not in LINE_VERSIONS:
        raise ValueError(f"line program of version {version}")
    if version < 5:
        return
    at += 17  # unit_length, version, sizes, header_length, and five fields of one byte, up to opcode_base
    at += content[at]  # opcode_base itself and one length for each opcode below it
    for _ in ("directories", "files"):
        forms = []
        count, at = content[at], at + 1
        for _ in range(count):
            _kind, at = read_uleb128(content, at)
            form, at = read_uleb128(content, at)
            forms.append(form)
        entries, at = read_uleb128(content, at)
        if entries and not forms:
            raise ValueError("table of files without a format")
        for _ in range(entries):
            for form in forms:
                at = _skip_form(content, at, form)


def _skip_form(content: bytes, at: int, form: int) -> int:
    if form == _FORM_STRING:
        at = content.index(0, at) + 1
    elif form == _FORM_UDATA:
        _, at = read_uleb128(content, at)
    elif form == _FORM_BLOCK:
        size, at = read_uleb128(content, at)
        at += size
    elif form in _FORM_SIZES:
        at += _FORM_SIZES[form]
    else:
        raise ValueError(f"table of files has form {form:#x}")
    if at > len(content):
        raise ValueError("table of files runs past the end")
    return at
