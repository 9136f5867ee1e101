"""The PCIe tile as the NoC reaches it: host memory, one configuration register, its network interfaces (tile N27)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.faults import refuse
from bhemu.chip.nodes.identity import PAGE, is_word, read_identity, refuse_identity_write
from bhemu.chip.nodes.kinds import INTERFACE
from bhemu.chip.pcie.host_memory import access_host
from bhemu.chip.pcie.iatu import translate
from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import load_u32, store_u32
from bhemu.machine.types import ChipRecord, Int

_WINDOW_BITS: Final = 58
_INSIDE: Final = (1 << _WINDOW_BITS) - 1
_WINDOW: Final = 63
_FIRST_TRANSLATED: Final = 4
_FIRST_UNMAPPED: Final = 8
_CONFIGURATION: Final = 62
_DEVICE_CONTROL: Final = 0x78
_INTERFACE: Final = INTERFACE - (1 << 64)
"""As a signed number; addresses from there on are the network interface's."""

NOT_BUILT: Final = fault(
    "pcie.register",
    Unimplemented,
    "{0:node}: register {1:#x} of the PCIe controller is not built",
    remedy=f"device control, {_DEVICE_CONTROL:#x}, is",
    rule="tile N27",
)
UNMAPPED: Final = fault(
    "pcie.window",
    UndefinedBehavior,
    "{0:node}: {1:#x} is in window {2}, which is unmapped",
    remedy="windows 0 to 3 are host addresses, 4 to 7 pass the address translation unit",
    rule="tile N27",
)


@kernel
def access_pcie(chip: ChipRecord, place: Int, noc: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access at a 64-bit address, from or to an address in this process."""
    if address >= _INTERFACE and address < 0:
        if not is_word(chip, place, address, size):
            return REFUSED
        offset = (address - _INTERFACE) & (PAGE - 1)
        if writes:
            return refuse_identity_write(chip, place, noc, offset)
        return read_identity(chip, place, noc, offset, pointer)
    window, inside = (address >> _WINDOW_BITS) & _WINDOW, address & _INSIDE
    if window == _CONFIGURATION:
        if not is_word(chip, place, address, size):
            return REFUSED
        if inside != _DEVICE_CONTROL:
            return refuse(chip, NOT_BUILT, place, inside)
        if writes:
            chip.pcie_device_control = np.uint32(load_u32(pointer))
        else:
            store_u32(pointer, np.int64(chip.pcie_device_control))
        return DONE
    if window >= _FIRST_UNMAPPED:
        return refuse(chip, UNMAPPED, place, address, window)
    if window >= _FIRST_TRANSLATED:
        if translate(chip, inside, size) != DONE:
            return REFUSED
        inside = np.int64(chip.translated)
    return access_host(chip, inside, pointer, size, writes)
