"""What the debug information of an ELF file says of structures, enumerations and inlined calls (DWARF 2 to 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bhemu.errors import ProgramError
from bhemu.loader.lines import SourceLine, debug_information, source_files, text_of

_STRUCTURES: Final = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
_PASSED: Final = ("DW_TAG_typedef", "DW_TAG_volatile_type", "DW_TAG_const_type")
_CODE: Final = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_lexical_block")


@dataclass(frozen=True)
class Member:
    """A member of a structure, or of one inside of it.

    Attributes:
        offset: in bytes, from the begin of the outermost structure.
        size: of it in bytes; of an array that of one element.
        count: elements of an array; 1 for anything else.
    """

    offset: int
    size: int
    count: int = 1

    def number(self, content: bytes, base: int = 0, index: int = 0) -> int:
        """Its value, without a sign, in the bytes of a structure that begins at `base`."""
        at = base + self.offset + index * self.size
        return int.from_bytes(content[at : at + self.size], "little")


class DebugInfo:
    """Debug information of a file.

    Args:
        content: the ELF file.

    Raises:
        ProgramError: the debug information is damaged.
    """

    def __init__(self, content: bytes) -> None:
        self._named: dict[str, Any] = {}
        self._units: list[Any] = []
        self._ranges: Any = None
        # pyelftools raises whatever its parsers run into.
        try:
            self._dwarf = debug_information(content)
            if self._dwarf is None:
                return
            self._units = list(self._dwarf.iter_CUs())
            self._ranges = self._dwarf.range_lists()
            for unit in self._units:
                self._collect(unit.get_top_DIE())
        except Exception as error:
            raise ProgramError(f"the debug information is damaged: {error}", remedy="compile the file again") from None

    def _collect(self, parent: Any) -> None:
        for die in parent.iter_children():
            if die.tag in ("DW_TAG_namespace", *_STRUCTURES):
                self._collect(die)
            name = die.attributes.get("DW_AT_name")
            if name is not None and "DW_AT_declaration" not in die.attributes:
                self._named.setdefault(text_of(name.value), die)

    def structure(self, name: str) -> bool:
        """It describes a structure of that name."""
        return name in self._named and self._named[name].tag in _STRUCTURES

    def enumerators(self, name: str) -> dict[int, str]:
        """Names of the values of an enumeration; empty when it is not described."""
        die = self._named.get(name)
        if die is None or die.tag != "DW_TAG_enumeration_type":
            return {}
        return {
            int(child.attributes["DW_AT_const_value"].value): text_of(child.attributes["DW_AT_name"].value)
            for child in die.iter_children()
        }

    def member(self, structure: str, path: str) -> Member | None:
        """A member, such as `watcher.assert_status.line_num`; None when there is none. An array is the last of a path.

        Args:
            structure: its name.
            path: names of members, the outermost first.
        """
        die, offset, count = self._named.get(structure), 0, 1
        for name in path.split("."):
            found = None if die is None or count > 1 else self._child(die, name)
            if found is None:
                return None
            die, offset, count = found[0], offset + found[1], found[2]
        size = self._size(die)
        return None if size is None else Member(offset, size, count)

    def _child(self, die: Any, name: str) -> tuple[Any, int, int] | None:
        """(type, offset, elements) of a member, also inside of structures without a name."""
        if die.tag not in _STRUCTURES:
            return None
        for child in die.iter_children():
            if child.tag != "DW_TAG_member" or "DW_AT_type" not in child.attributes:
                continue
            at = child.attributes.get("DW_AT_data_member_location")
            offset = 0 if at is None else int(at.value)
            kind, count = self._bare(child)
            own = child.attributes.get("DW_AT_name")
            if own is not None and text_of(own.value) == name:
                return kind, offset, count
            if own is None and (inner := self._child(kind, name)) is not None:
                return inner[0], offset + inner[1], inner[2]
        return None

    def _bare(self, die: Any) -> tuple[Any, int]:
        """(the type of an entry without typedefs and qualifiers, elements when it is an array)."""
        kind = die.get_DIE_from_attribute("DW_AT_type")
        while kind.tag in _PASSED:
            kind = kind.get_DIE_from_attribute("DW_AT_type")
        if kind.tag != "DW_TAG_array_type":
            return kind, 1
        bounds = next(iter(kind.iter_children())).attributes
        count = int(bounds["DW_AT_upper_bound"].value) + 1 if "DW_AT_upper_bound" in bounds else 0
        return self._bare(kind)[0], count

    def _size(self, die: Any) -> int | None:
        size = die.attributes.get("DW_AT_byte_size")
        return None if size is None else int(size.value)

    # --- inlined calls --------------------------------------------------------------------------------------------

    def calls(self, address: int) -> list[SourceLine]:
        """The lines from which the code at an address was inlined, the innermost call first; empty outside of such.

        Args:
            address: as linked.
        """
        for unit in self._units:
            found = list(self._inlined(unit, unit.get_top_DIE(), address))
            if found:
                program = self._dwarf.line_program_for_CU(unit)
                directory = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
                files = source_files(program.header, text_of(directory.value) if directory else "")
                return [SourceLine(files.get(file, "?"), line) for file, line in reversed(found)]
        return []

    def inlined_copies(self) -> dict[str, list[int]]:
        """Where inlined copies of functions begin, ascending, by the names that source and linker have for them.

        Raises:
            ProgramError: the debug information is damaged.
        """
        found: dict[str, set[int]] = {}
        try:
            for unit in self._units:
                for die in unit.iter_DIEs():
                    begin = self._begin(unit, die) if die.tag == "DW_TAG_inlined_subroutine" else None
                    if begin is not None:
                        for name in _names_of(die):
                            found.setdefault(name, set()).add(begin)
        except Exception as error:
            raise ProgramError(f"the debug information is damaged: {error}", remedy="compile the file again") from None
        return {name: sorted(begins) for name, begins in found.items()}

    def _begin(self, unit: Any, die: Any) -> int | None:
        """The address of the first instruction of an inlined call; None: it has no code."""
        ranges = list(self._ranges_of(unit, die))
        low = min((first for first, end in ranges if end > first), default=None)
        entry = die.attributes.get("DW_AT_entry_pc")
        if low is None or entry is None:
            return low
        return int(entry.value) if entry.form == "DW_FORM_addr" else ranges[0][0] + int(entry.value)

    def _inlined(self, unit: Any, die: Any, address: int) -> Iterator[tuple[int, int]]:
        """(file, line) of the calls that lead to an address, the outermost first."""
        for child in die.iter_children():
            if child.tag not in _CODE or not self._holds(unit, child, address):
                continue
            if child.tag == "DW_TAG_inlined_subroutine":
                values = child.attributes
                yield int(values["DW_AT_call_file"].value), int(values["DW_AT_call_line"].value)
            yield from self._inlined(unit, child, address)

    def _holds(self, unit: Any, die: Any, address: int) -> bool:
        return any(first <= address < end for first, end in self._ranges_of(unit, die))

    def _ranges_of(self, unit: Any, die: Any) -> Iterator[tuple[int, int]]:
        """(begin, end) of the code of an entry."""
        values = die.attributes
        if "DW_AT_low_pc" in values and "DW_AT_high_pc" in values:
            low, high = int(values["DW_AT_low_pc"].value), values["DW_AT_high_pc"]
            yield low, int(high.value) if high.form == "DW_FORM_addr" else low + int(high.value)
            return
        if "DW_AT_ranges" not in values or self._ranges is None:
            return
        base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        begin = 0 if base is None else int(base.value)
        for entry in self._ranges.get_range_list_at_offset(values["DW_AT_ranges"].value, unit):
            if hasattr(entry, "base_address"):
                begin = entry.base_address
                continue
            first = 0 if getattr(entry, "is_absolute", False) else begin
            yield first + entry.begin_offset, first + entry.end_offset


def _names_of(die: Any) -> Iterator[str]:
    """Names of the function that an inlined call is a copy of."""
    while die is not None:
        for attribute in ("DW_AT_name", "DW_AT_linkage_name"):
            if attribute in die.attributes:
                yield text_of(die.attributes[attribute].value)
        onwards = [name for name in ("DW_AT_abstract_origin", "DW_AT_specification") if name in die.attributes]
        die = die.get_DIE_from_attribute(onwards[0]) if onwards else None
