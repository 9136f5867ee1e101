"""The compiled functions that move a chip, and through which its host reaches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bhemu.chip.clock.run import clock_entry, help_entry, touch_entry
from bhemu.chip.noc.transfer import carry_out_entry
from bhemu.chip.pcie.bars import host_read_entry, host_write_entry, node_entry
from bhemu.chip.pcie.direct import find_entry
from bhemu.chip.pcie.pci import read_config_entry, write_config_entry
from bhemu.chip.state import CHIP_TYPE
from bhemu.machine.compiler import Entry, compile_entry
from bhemu.machine.types import AnyInt

_FUNCTIONS: Final[dict[str, tuple[Callable[..., AnyInt], int]]] = {
    "chip_clock": (clock_entry, 2),
    "chip_touch": (touch_entry, 2),
    "chip_help": (help_entry, 2),
    "chip_find": (find_entry, 3),
    "chip_transfer": (carry_out_entry, 3),
    "host_read": (host_read_entry, 3),
    "host_write": (host_write_entry, 3),
    "node_access": (node_entry, 3),
    "config_read": (read_config_entry, 2),
    "config_write": (write_config_entry, 2),
}
_entries: dict[str, Entry] = {}


def chip_entry(name: str) -> Entry:
    """A compiled function on the record of a chip."""
    if name not in _entries:
        function, arguments = _FUNCTIONS[name]
        _entries[name] = compile_entry(name, function, arguments=arguments, record=CHIP_TYPE)
    return _entries[name]


def ensure_chip_entries() -> None:
    """Compile what moves a chip, or fetch it from the cache: for `bhemu warm`."""
    for name in _FUNCTIONS:
        chip_entry(name)
