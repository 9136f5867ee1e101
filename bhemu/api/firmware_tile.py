"""tt-metal firmware in a tile: what a host writes to boot it, and its mailboxes (tile B2 to B11, B27)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bhemu.api.summary import HALT
from bhemu.api.tile_programs import TilePrograms
from bhemu.api.tile_view import TileView
from bhemu.errors import MemoryError_, ProgramError
from bhemu.loader import boot
from bhemu.loader.boot import Placement
from bhemu.loader.elf import Executable, Segment, load_elf
from bhemu.loader.firmware_files import Firmware
from bhemu.loader.firmware_layout import CORE_ORDER, DONE, GO
from bhemu.loader.symbols import SymbolTable
from bhemu.machine.agents import CORE_NAMES

HELD_BUT_B: Final = 0x47000
"""Soft-reset word that releases core B alone (tile B6)."""
BY_HOST: Final = 1
"""Dispatch mode in which core B reports to no one (B27)."""
NO_REGION: Final = 0xFF
KERNEL_BASE: Final = 0x20000
KERNEL_STRIDE: Final = 0x100
"""Raw kernels are at KERNEL_BASE + KERNEL_STRIDE * place, in the order B, NC, T0, T1, T2 (B27)."""
T_CORES: Final = ("T0", "T1", "T2")
EMPTY_KERNEL: Final = struct.pack("<2I", 0x00000513, 0x00008067)
"""li a0, 0; ret"""

Kernel = Executable | bytes | str | Path


class FirmwareTile:
    """A tile that runs tt-metal firmware, seen by the host between two clocks.

    Args:
        firmware: what runs on it.
        view: the tile.
        programs: of the tile.
    """

    def __init__(self, firmware: Firmware, view: TileView, programs: TilePrograms) -> None:
        self.firmware = firmware
        self._view = view
        self._programs = programs
        self._record = view.touch().record
        self._l1 = self._record.l1

    # --- words of the mailboxes -----------------------------------------------------------------------------------

    def _write(self, address: int, content: bytes) -> None:
        self._view.touch()
        self._l1[address : address + len(content)] = memoryview(content)

    def _store(self, address: int, value: int, size: int = 4) -> None:
        self._write(address, value.to_bytes(size, "little"))

    def _load(self, address: int, size: int = 4) -> int:
        return int.from_bytes(self._l1[address : address + size].tobytes(), "little")

    @property
    def signal(self) -> int:
        """The go signal: 0 when the firmware is ready, or done with a launch."""
        return int(self._l1[self._signal_address])

    @property
    def _signal_address(self) -> int:
        layout = self.firmware.layout
        return layout.go_messages + 4 * self._load(layout.go_index) + layout.go_signal

    @property
    def subordinate_sync(self) -> int:
        """The bytes by which core B waits for NC, T0, T1 and T2, as one word."""
        return self._load(self.firmware.layout.subordinate_sync)

    @property
    def released(self) -> bool:
        """No core is held in reset."""
        return int(self._record.soft_reset) == 0

    @property
    def ready(self) -> bool:
        """It waits for a launch."""
        return self.released and self.signal == DONE

    # --- boot -----------------------------------------------------------------------------------------------------

    def begin_boot(self, image: tuple[tuple[int, bytes], ...], place: tuple[int, int] = (0, 0)) -> None:
        """Load the firmware and release core B (tile B6).

        Args:
            image: of the firmware.
            place: logical coordinates of the tile.
        """
        layout = self.firmware.layout
        self._programs.hold()
        cores = self._view.touch()
        for address, content in image:
            self._l1[address : address + len(content)] = memoryview(content)
        if layout.core_info is not None:
            at = layout.core_info + layout.core_place
            self._l1[at : at + 2] = place
        for core in CORE_ORDER:
            self._programs.add_symbols(self.firmware.executables[core], core)
        if layout.host_sets_reset_pcs:
            for core in CORE_ORDER[1:]:
                override = cores.load(boot.RESET_OVERRIDE_T)
                for address, value in boot.start_pc_registers(CORE_NAMES.index(core), layout.entry[core], override):
                    cores.store(address, value)
        cores.store(boot.SOFT_RESET, HELD_BUT_B)

    def check_ready(self) -> None:
        """Raise ProgramError unless it waits for a launch."""
        if not self.ready:
            raise ProgramError("the firmware is not ready", remedy="boot it first, and let an earlier launch end")

    # --- kernels --------------------------------------------------------------------------------------------------

    def begin_launch(self, kernels: Mapping[str, Kernel], config_base: int = KERNEL_BASE) -> None:
        """Load kernels, write the launch message and the go signal, as a host in slow dispatch does (B9, B27).

        Args:
            kernels: by core, see `FirmwareMachine.launch`.
            config_base: start of the kernel configuration buffer in L1.

        Raises:
            ProgramError: the firmware is not ready, or a kernel does not fit it.
            MemoryError_: a kernel does not fit.
        """
        layout = self.firmware.layout
        self.check_ready()
        named = {CORE_NAMES[boot.core_number(core)]: kernel for core, kernel in kernels.items()}
        if any(core in named for core in T_CORES):
            named = dict.fromkeys(T_CORES, EMPTY_KERNEL) | named
        free = layout.first_free
        if config_base < free or config_base % 16:
            raise MemoryError_(
                f"kernels cannot begin at {config_base:#x}: the firmware has L1 up to {free:#x}",
                remedy=f"use a multiple of 16 from {free:#x} on",
            )
        message = layout.launch_message(self._load(layout.launch_read_pointer))
        fields = layout.launch
        self._write(message, bytes(layout.launch_size))
        placed: list[Placement] = []
        enables = 0
        for place, core in enumerate(CORE_ORDER):
            if core not in named:
                continue
            enables |= 1 << place
            entry, size = self._place_kernel(core, named[core], config_base, KERNEL_STRIDE * place, placed)
            self._store(message + fields.kernel_text_offset + 4 * place, entry - config_base)
            if fields.kernel_text_size is not None:
                self._store(message + fields.kernel_text_size + 4 * place, size)
        self._store(message + fields.config_base, config_base)
        self._store(message + fields.mode, BY_HOST, 1)
        self._store(message + fields.first_remote_buffer, layout.remote_buffers, 1)
        for offset in fields.no_region:
            self._store(message + offset, NO_REGION, 2)
        self._store(message + fields.enables, enables)
        self._store(self._signal_address, GO, 1)

    def _place_kernel(
        self,
        core: str,
        kernel: Kernel,
        config_base: int,
        offset: int,
        placed: list[Placement],
    ) -> tuple[int, int]:
        """Put a kernel into L1; returns its entry and the size of its text."""
        if isinstance(kernel, bytes):
            kernel = _raw_kernel(kernel, config_base + offset, core)
        executable = kernel if isinstance(kernel, Executable) else load_elf(kernel)
        if executable.address_of(HALT) is not None:
            raise ProgramError(
                f"{executable.path} is built for a bare core: it ends in ebreak, and kernels of the firmware return",
                remedy="run it without --firmware, or link a function without start-up code",
            )
        placement = boot.place(executable, boot.core_number(core))
        free = self.firmware.layout.first_free
        for piece in placement.pieces:
            if piece.is_local and piece.content:
                raise MemoryError_(
                    f"{executable.path}: segment {piece.segment} is data for the local RAM of core {core}, which runs",
                    remedy="give it a load address in L1 (AT> in the linker script), from where the kernel copies it",
                )
            if not piece.is_local and piece.address < free:
                raise MemoryError_(
                    f"{executable.path}: segment {piece.segment} at {piece.address:#x} lies where the firmware is "
                    f"(up to {free:#x})",
                    remedy=f"link it from {config_base:#x} on",
                )
        if executable.entry < config_base:
            raise MemoryError_(
                f"{executable.path}: the entry {executable.entry:#x} lies before the configuration buffer "
                f"at {config_base:#x}",
                remedy=f"link it from {config_base:#x} on, or give another base",
            )
        boot.check_apart(placement, placed)
        placed.append(placement)
        boot.write_program(placement, self._l1, self._view.touch()[core].local_ram)
        self._programs.add_symbols(executable, core)
        return executable.entry, sum(len(s.content) for s in executable.segments if s.executable)


def _raw_kernel(code: bytes, address: int, core: str) -> Executable:
    if not code or len(code) % 4:
        raise ProgramError(
            f"the kernel of core {core} has {len(code)} bytes", remedy="give whole instructions of 4 bytes"
        )
    if len(code) > KERNEL_STRIDE:
        raise MemoryError_(
            f"the kernel of core {core} has {len(code)} bytes, and raw kernels have {KERNEL_STRIDE} at most",
            remedy="link it as an ELF file at an address of its own",
        )
    segment = Segment(address, address, code, len(code), True)
    table = SymbolTable([], [], [(address, address + len(code))])
    return Executable(Path(f"kernel of core {core}"), address, (segment,), table, None, b"")
