"""Where builds of tt-metal firmware keep things in L1: `FirmwareLayout`, read from TOML."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Final

from bhemu.errors import ProgramError
from bhemu.machine.state import L1_SIZE

CORE_ORDER: Final = ("B", "NC", "T0", "T1", "T2")
"""Order of the cores in the firmware's tables and in its enable bits (tile B3)."""
DONE: Final = 0
GO: Final = 0x80
"""Values of the go signal: no program runs, one does (tile B4, B9)."""
_OPTIONAL: Final = {
    *("coordinate_map", "core_info", "core_place", "core_magic"),
    *("kernel_text_size", "no_region", "local_buffers", "buffer_mask"),
    *("host_id", "profiler"),
}


@dataclass(frozen=True)
class LaunchFields:
    """Offsets in a launch message (tile B3).

    Attributes:
        config_base: word: base of the kernel configuration buffer.
        kernel_text_offset: five words: entries of the kernels, from the base.
        kernel_text_size: five words, or None in builds without them.
        mode: byte: who dispatches.
        first_remote_buffer: byte: the first remote circular buffer.
        enables: word: which cores run a kernel, by bits in `CORE_ORDER`.
        no_region: halfwords that 0xff declares absent.
        local_buffers: halfword: where the circular buffers are described, from the base; None: not known.
        buffer_mask: eight bytes: which of them there are.
        host_id: word: the host's number of the program; None: not known.
    """

    config_base: int
    kernel_text_offset: int
    mode: int
    first_remote_buffer: int
    enables: int
    kernel_text_size: int | None = None
    no_region: tuple[int, ...] = ()
    local_buffers: int | None = None
    buffer_mask: int | None = None
    host_id: int | None = None


@dataclass(frozen=True)
class FirmwareLayout:
    """One build's addresses in L1.

    Attributes:
        name: of the build.
        entry: by core, of its text.
        image: by core, where the start-up code takes the initial local data from.
        host_sets_reset_pcs: core B does not set reset pcs of the others itself.
        bank_tables, coordinate_map, zero_page: (address, size); the coordinate map may be None.
        subordinate_sync: the word with which B waits for the others.
        launch_read_pointer: the word that says which launch message is next.
        launch_messages, launch_size, launch_count: their ring.
        go_messages, go_signal, go_index: go messages of 4 bytes, the signal's offset, the word with the index.
        core_info, core_place, core_magic: address, offset of x and y, (offset, value); None in builds without.
        remote_buffers: number of circular buffers.
        profiler: control words of the device profiler, and its buffers after them; None: not known.
        launch: offsets in a launch message.
    """

    name: str
    entry: dict[str, int]
    image: dict[str, int]
    host_sets_reset_pcs: bool
    bank_tables: tuple[int, int]
    zero_page: tuple[int, int]
    subordinate_sync: int
    launch_read_pointer: int
    launch_messages: int
    launch_size: int
    launch_count: int
    go_messages: int
    go_signal: int
    go_index: int
    remote_buffers: int
    launch: LaunchFields
    coordinate_map: tuple[int, int] | None = None
    core_info: int | None = None
    core_place: int = 0
    core_magic: tuple[int, int] = (0, 0)
    profiler: int | None = None

    def launch_message(self, pointer: int) -> int:
        """Address of the launch message that the word at `launch_read_pointer` tells."""
        return self.launch_messages + self.launch_size * (pointer % self.launch_count)

    @property
    def mailboxes(self) -> slice:
        """Bytes of L1 with the mailboxes, from the launch messages on; what tools write at their end is left out."""
        end = self.core_info if self.core_info is not None else self.zero_page[0]
        return slice(self.launch_messages, end)

    @property
    def first_free(self) -> int:
        """The first address of L1 after all that the firmware has, a multiple of 16."""
        ends = [sum(self.bank_tables), sum(self.zero_page), *self.image.values()]
        if self.coordinate_map is not None:
            ends.append(sum(self.coordinate_map))
        return max(ends) + 15 & ~15


def read_layouts(path: str | Path | None = None) -> tuple[FirmwareLayout, ...]:
    """The layouts of a TOML file, or those that bhemu knows.

    Raises:
        ProgramError: the file cannot be read or does not describe a layout.
    """
    source = Path(path) if path is not None else None
    name = str(source) if source is not None else "firmware_layouts.toml"
    try:
        if source is not None:
            text = source.read_text()
        else:
            text = resources.files("bhemu.loader").joinpath("data/firmware_layouts.toml").read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProgramError(f"{name}: cannot be read: {reason}", remedy="name a TOML file with a layout") from None
    try:
        tables = tomllib.loads(text).get("layout", [])
    except tomllib.TOMLDecodeError as error:
        raise ProgramError(f"{name}: {error}", remedy="fix the TOML syntax") from None
    if not isinstance(tables, list) or not tables:
        raise ProgramError(f"{name} has no [[layout]]", remedy="begin it with [[layout]], as bhemu/loader/data does")
    return tuple(_layout(name, table) for table in tables)


def _layout(name: str, table: dict[str, Any]) -> FirmwareLayout:
    known = {field.name: field for field in fields(FirmwareLayout)}
    inner = {field.name: field for field in fields(LaunchFields)}
    values = _checked(name, "layout", table, known)
    launch = _checked(name, "layout.launch", values["launch"], inner)
    launch["no_region"] = tuple(launch.get("no_region", ()))
    for key in ("entry", "image"):
        cores = values[key]
        if not isinstance(cores, dict) or set(cores) != set(CORE_ORDER):
            raise ProgramError(f"{name}: {key} must name the cores {', '.join(CORE_ORDER)}", remedy="see tile B1")
    for key in ("bank_tables", "zero_page", "coordinate_map", "core_magic"):
        if key in values:
            pair = values[key]
            if not isinstance(pair, list) or len(pair) != 2:
                raise ProgramError(f"{name}: {key} must be two numbers, [address, size]", remedy="see tile B1")
            values[key] = tuple(pair)
    values["launch"] = LaunchFields(**launch)
    layout = FirmwareLayout(**values)
    _check_numbers(name, layout)
    return layout


def _checked(name: str, what: str, table: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The entries of a table, all known and none missing."""
    if not isinstance(table, dict):
        raise ProgramError(f"{name}: {what} is not a table", remedy="see bhemu/loader/data/firmware_layouts.toml")
    extra = sorted(set(table) - set(known))
    missing = sorted(set(known) - set(table) - _OPTIONAL)
    if extra or missing:
        parts = [f"{what} has no entry {key!r}" for key in missing] + [
            f"{what} knows no entry {key!r}" for key in extra
        ]
        raise ProgramError(f"{name}: {'; '.join(parts)}", remedy="see bhemu/loader/data/firmware_layouts.toml")
    return dict(table)


def _check_numbers(name: str, layout: FirmwareLayout) -> None:
    numbers = [*layout.entry.items(), *layout.image.items()]
    numbers += [(key, value) for key, value in vars(layout).items() if isinstance(value, int)]
    for key, value in vars(layout.launch).items():
        if isinstance(value, int):
            numbers.append((key, value))
    for key, value in numbers:
        if not isinstance(value, int) or not 0 <= value < L1_SIZE:
            raise ProgramError(
                f"{name}: {key} = {value!r} is not an address in L1", remedy=f"use 0 to {L1_SIZE - 1:#x}"
            )
