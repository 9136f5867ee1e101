"""The PCIe tile as the NoC reaches it: host memory, one configuration register, its network interfaces (tile N27)."""

from __future__ import annotations

import struct
from typing import Final

from bhemu.chip.nodes.identity import PAGE, Identity, check_word, describe
from bhemu.chip.nodes.kinds import INTERFACE
from bhemu.chip.pcie.dma import HostMemory
from bhemu.chip.pcie.iatu import Iatu
from bhemu.errors import UndefinedBehavior, Unimplemented

_WINDOW_BITS: Final = 58
_DIRECT: Final = range(4)
_TRANSLATED: Final = range(4, 8)
_CONFIGURATION: Final = 62
_DEVICE_CONTROL: Final = 0x78


class PcieTile:
    """The host end point.

    Args:
        identity: of the node.
        host: memory of the host.
        iatu: translates addresses of windows 4 to 7.
    """

    def __init__(self, identity: Identity, host: HostMemory, iatu: Iatu) -> None:
        self._identity = identity
        self._host = host
        self._iatu = iatu
        self._device_control = 0

    def snapshot(self) -> int:
        """The device control register; memory of the host is not the tile's."""
        return self._device_control

    def restore(self, state: int) -> None:
        """Put it back."""
        self._device_control = state

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes at a 64-bit address."""
        if address >= INTERFACE:
            check_word(self._identity.node, address, size)
            return struct.pack("<I", self._identity.read(noc, (address - INTERFACE) % PAGE))
        if address >> _WINDOW_BITS == _CONFIGURATION:
            self._check_configuration(address, size)
            return struct.pack("<I", self._device_control)
        return self._host.read(self._host_address(address, size), size)

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes to a 64-bit address."""
        if address >= INTERFACE:
            check_word(self._identity.node, address, len(content))
            self._identity.write(noc, (address - INTERFACE) % PAGE)
        elif address >> _WINDOW_BITS == _CONFIGURATION:
            self._check_configuration(address, len(content))
            self._device_control = struct.unpack("<I", content)[0]
        else:
            self._host.write(self._host_address(address, len(content)), content)

    def _check_configuration(self, address: int, size: int) -> None:
        check_word(self._identity.node, address, size)
        offset = address & ((1 << _WINDOW_BITS) - 1)
        if offset != _DEVICE_CONTROL:
            raise Unimplemented(
                f"{describe(self._identity.node)}: register {offset:#x} of the PCIe controller is not built",
                remedy=f"device control, {_DEVICE_CONTROL:#x}, is",
            )

    def _host_address(self, address: int, size: int) -> int:
        window, inside = address >> _WINDOW_BITS, address & ((1 << _WINDOW_BITS) - 1)
        if window in _DIRECT:
            return inside
        if window in _TRANSLATED:
            return self._iatu.translate(inside, size)
        raise UndefinedBehavior(
            f"{describe(self._identity.node)}: {address:#x} is in window {window}, which is unmapped",
            remedy="windows 0 to 3 are host addresses, 4 to 7 pass the address translation unit (tile N27)",
        )
