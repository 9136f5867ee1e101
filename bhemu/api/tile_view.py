"""What the host sees of a Tensix tile, standalone or of a chip: memory and registers."""

from __future__ import annotations

from typing import Any

import numpy as np

import bhemu.checks as checks
from bhemu.api.tensor_memory import TensorMemory
from bhemu.api.views import ConfigView, DstView, SrcView
from bhemu.errors import AssemblyError, MemoryError_, UndefinedBehavior
from bhemu.machine.agents import AGENT_NAMES, NOC
from bhemu.machine.state import L1_SIZE
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores

Array = np.ndarray[Any, Any]


class TileView(TensorMemory):
    """Memory and registers of a tile.

    Args:
        cores: of the tile.
    """

    def __init__(self, cores: Cores) -> None:
        self._cores = cores

    def touch(self) -> Cores:
        """The cores, before the host changes something in the tile; a chip brings its tile to the present clock."""
        return self._cores

    def untouched(self) -> Cores:
        """The cores, when nothing in the tile is to change: for reading, or to name its programs."""
        return self._cores

    @property
    def cores(self) -> Cores:
        """The cores: `tile.cores["T0"]` is a `CoreView`."""
        return self._cores

    @property
    def record(self) -> Any:
        """Everything, as the machine keeps it."""
        return self._cores.record

    @property
    def coprocessor(self) -> Coprocessor:
        """The three threads."""
        return self._cores.coprocessor

    # --- memory -----------------------------------------------------------------------------------------------------

    @property
    def l1(self) -> Array:
        """uint8 [1572864]: L1, writable."""
        return self.record["l1"]  # type: ignore[no-any-return]

    def _put(self, address: int, content: Array) -> None:
        check_range(address, len(content))
        self.l1[address : address + len(content)] = content

    def _get(self, address: int, size: int) -> Array:
        check_range(address, size)
        return self.l1[address : address + size].copy()

    # --- registers --------------------------------------------------------------------------------------------------

    @property
    def dst(self) -> DstView:
        """The destination register file."""
        return DstView(self.record)

    @property
    def srca(self) -> SrcView:
        """Source register file A."""
        return SrcView(self.record, 0)

    @property
    def srcb(self) -> SrcView:
        """Source register file B."""
        return SrcView(self.record, 1)

    @property
    def lregs(self) -> Array:
        """uint32 [16, 32]: the vector unit's registers, writable; `.view(np.float32)` reads them as FP32."""
        return self.record["lregs"][:16]  # type: ignore[no-any-return]

    @property
    def gpr(self) -> Array:
        """uint32 [3, 64]: general-purpose registers [thread, register], writable."""
        return self.record["gpr"]  # type: ignore[no-any-return]

    @property
    def config(self) -> ConfigView:
        """Configuration fields by name, bank 0 and thread 0; see `ConfigView.for_bank` and `for_thread`."""
        return ConfigView(self.record)

    @property
    def semaphores(self) -> Array:
        """int32 [8]: semaphore values, writable."""
        return self.record["sync"]["semaphore"]  # type: ignore[no-any-return]

    def load_word(self, address: int, core: str = "B") -> int:
        """The 32-bit word that a core finds at an address of the GPR or configuration window.

        Args:
            address: byte address, GPRs from 0xffe00000, configuration from 0xffef0000 (rules I.10, tile K7, K8).
            core: who loads: `B`, `NC`, `T0`, `T1`, `T2`, or `HOST` for an access over the NoC.

        Raises:
            UndefinedBehavior: the core has no word there, or may not load it.
            NonContractualBehavior: the address belongs to the window that stores to both banks.
        """
        _check_word(address, "address")
        return self.coprocessor.load(_core(core), int(address))

    def store_word(self, address: int, value: int, core: str = "B") -> None:
        """Store a 32-bit word as a core does, with all that writing a word of configuration means; see `load_word`.

        Raises:
            AssemblyError: the value does not fit.
            UndefinedBehavior: the core has no word there, or may not store to it.
        """
        _check_word(address, "address")
        _check_word(value, "value")
        self.coprocessor.store(_core(core), int(address), int(value))


def _core(name: str) -> int:
    names = AGENT_NAMES[: NOC + 1]
    if checks.text(name, "core") not in names:
        raise UndefinedBehavior(f"core {name!r} does not exist", remedy=f"use one of {', '.join(names)}")
    return names.index(name)


def _check_word(number: int, what: str) -> None:
    if not 0 <= checks.integer(number, what) < 1 << 32:
        raise AssemblyError(f"{what} {number:#x} does not fit 32 bits", remedy="use 0 to 0xffffffff")


def check_range(address: int, size: int) -> None:
    """Raise MemoryError_ unless [address, address + size) is a 16-byte aligned range of L1."""
    if address % 16:
        raise MemoryError_(
            f"L1 address {address:#x} is not a multiple of 16",
            remedy="unpackers and packer address L1 in 16-byte units",
        )
    if address < 0 or address + size > L1_SIZE:
        raise MemoryError_(
            f"L1 range {address:#x}..{address + size:#x} is outside of L1 (0..{L1_SIZE:#x})",
            remedy="choose a lower address or a smaller tensor",
        )
