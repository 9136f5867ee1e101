"""tt-metal firmware on the cores of a tile: boot it as the host does, then launch kernels through its mailboxes.

Where a build of the firmware keeps things is data: `data/firmware_layouts.toml` (tile B1 to B12, B27).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu.errors import BhemuError, Deadlock, MemoryError_, ProgramError
from bhemu.host import boot
from bhemu.host.boot import Placement
from bhemu.host.elf import Executable, Segment, load_elf
from bhemu.host.firmware_layout import CORE_ORDER, FirmwareLayout, read_layouts
from bhemu.host.machine import DEFAULT_CLOCKS, Machine
from bhemu.host.summary import HALT
from bhemu.host.symbols import SymbolTable
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.state import L1_SIZE

FOLDERS: Final = {"B": "brisc", "NC": "ncrisc", "T0": "trisc0", "T1": "trisc1", "T2": "trisc2"}
"""Where a firmware directory has each core's file: `brisc/brisc.elf` and so on."""
WORMHOLE: Final = "xtttensixwh"
"""In the ELF attribute of a Wormhole set's T cores (B5)."""

HELD_BUT_B: Final = 0x47000
"""Soft-reset word that releases core B alone (B6)."""
INIT: Final = 0x40
GO: Final = 0x80
DONE: Final = 0
"""Values of the go signal (B4)."""
BY_HOST: Final = 1
"""Dispatch mode in which core B reports to nobody (B27)."""
NO_REGION: Final = 0xFF
KERNEL_BASE: Final = 0x20000
KERNEL_STRIDE: Final = 0x100
"""Raw kernels stand at KERNEL_BASE + KERNEL_STRIDE * place, in the order B, NC, T0, T1, T2 (B27)."""
T_CORES: Final = ("T0", "T1", "T2")
EMPTY_KERNEL: Final = struct.pack("<2I", 0x00000513, 0x00008067)
"""li a0, 0; ret"""
BOOT_CLOCKS: Final = 100_000
"""Boots take about 6,000 (B27)."""

# Logical columns and rows of the full grid, as translated coordinates (N2, N7)
_COLUMNS: Final = (*range(1, 8), *range(10, 17))
_ROWS: Final = tuple(range(2, 12))
_COLUMN_BYTES: Final = 20


@dataclass(frozen=True)
class Firmware:
    """A set of firmware files.

    Attributes:
        directory: where they were.
        executables: by core.
        layout: where this build keeps things.
    """

    directory: Path
    executables: dict[str, Executable]
    layout: FirmwareLayout


@dataclass(frozen=True)
class BootResult:
    """Clocks from the release of core B until it released the other cores, and until its signal was `done`."""

    released: int
    done: int


def load_firmware(directory: str | Path, *, layout_file: str | Path | None = None) -> Firmware:
    """Load a directory of firmware: brisc/brisc.elf, ncrisc/ncrisc.elf, trisc0 to trisc2.

    Args:
        directory: as the `ttnn` wheel has them in tt_metal/pre-compiled.
        layout_file: TOML file with the layout of another build; see data/firmware_layouts.toml.

    Raises:
        ProgramError: a file is missing or damaged, the set is for another chip, or its build is unknown.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise ProgramError(f"{folder}: no such directory", remedy="name a directory with brisc/brisc.elf and so on")
    executables = {core: load_elf(folder / name / f"{name}.elf") for core, name in FOLDERS.items()}
    layouts = read_layouts(layout_file)
    entry = executables["B"].entry
    for core, executable in executables.items():
        if WORMHOLE in (executable.attributes or ""):
            raise ProgramError(
                f"{folder} is a set for Wormhole: {executable.path.name} of core {core} is compiled for "
                f"{executable.attributes}, and B's entry is {entry:#x} [tile B5]",
                remedy="use a Blackhole set; in the ttnn wheel those whose brisc.elf has the entry 0x3ae0",
            )
    for layout in layouts:
        if layout.entry["B"] == entry:
            break
    else:
        known = ", ".join(f"{layout.entry['B']:#x} ({layout.name})" for layout in layouts)
        raise ProgramError(
            f"{folder}: no layout is known for firmware with B's entry {entry:#x}; known entries: {known}",
            remedy="describe the build in a TOML file and give it with --layout (bhemu/host/data has the known ones)",
        )
    for core, executable in executables.items():
        if executable.entry != layout.entry[core]:
            raise ProgramError(
                f"{executable.path}: the entry is {executable.entry:#x}, and {layout.entry[core]:#x} in the build "
                f"{layout.name!r}, which B's entry says it is",
                remedy="use five files of one build, or describe this one with --layout",
            )
    return Firmware(folder, executables, layout)


class FirmwareMachine:
    """A machine that runs tt-metal firmware.

    Example:
        system = FirmwareMachine(load_firmware("pre-compiled/1234"))
        system.boot()
        system.launch({"B": "kernel.elf"})

    Attributes:
        machine: its tile, cores and symbols.
        firmware: what runs on it.
    """

    def __init__(self, firmware: Firmware, machine: Machine | None = None) -> None:
        self.firmware = firmware
        self.machine = Machine() if machine is None else machine
        self._l1 = self.machine.tile.l1

    # --- words of the mailboxes -----------------------------------------------------------------------------------

    def _store(self, address: int, value: int, size: int = 4) -> None:
        self._l1[address : address + size] = memoryview(value.to_bytes(size, "little"))

    def _load(self, address: int, size: int = 4) -> int:
        return int.from_bytes(self._l1[address : address + size].tobytes(), "little")

    def _zero(self, address: int, size: int) -> None:
        self._l1[address : address + size] = 0

    @property
    def signal(self) -> int:
        """The go signal: 0 when the firmware is ready, or done with a launch."""
        return self._load(self._signal_address, 1)

    @property
    def _signal_address(self) -> int:
        layout = self.firmware.layout
        return layout.go_messages + 4 * self._load(layout.go_index) + layout.go_signal

    @property
    def subordinate_sync(self) -> int:
        """The bytes by which core B waits for NC, T0, T1 and T2, as one word."""
        return self._load(self.firmware.layout.subordinate_sync)

    # --- boot -----------------------------------------------------------------------------------------------------

    def boot(self, *, max_clocks: int = BOOT_CLOCKS, progress: Callable[[int], Any] | None = None) -> BootResult:
        """Load the firmware, release core B, and wait until all cores are ready (B6).

        Args:
            max_clocks: give up after so many clocks.
            progress: called now and then with the clocks that have passed.

        Raises:
            BhemuError: what the firmware did was refused, it waits for ever, or takes longer than `max_clocks`.
        """
        layout, machine = self.firmware.layout, self.machine
        cores = machine.tile.cores
        machine.hold()
        for core in CORE_ORDER:
            self._load_core(core)
        self._l1[0:4] = memoryview(boot.jump_to(layout.entry["B"]))
        self._write_tables()
        if layout.host_sets_reset_pcs:
            for core in CORE_ORDER[1:]:
                override = cores.load(boot.RESET_OVERRIDE_T)
                for address, value in boot.start_pc_registers(CORE_NAMES.index(core), layout.entry[core], override):
                    cores.store(address, value)
        start = machine.clocks
        cores.store(boot.SOFT_RESET, HELD_BUT_B)

        def released() -> bool:
            return int(machine.tile.record.soft_reset) == 0

        self._wait(released, max_clocks, progress)
        clocks_to_release = machine.clocks - start
        self._wait(lambda: self.signal == DONE, max_clocks, progress)
        return BootResult(clocks_to_release, machine.clocks - start)

    def _wait(self, condition: Callable[[], bool], max_clocks: int, progress: Callable[[int], Any] | None) -> None:
        """Let the cores run until the host's condition is true."""
        try:
            result = self.machine.run(max_clocks=max_clocks, until=condition, progress=progress)
            if result.reason == "done":
                raise Deadlock(
                    f"all cores have ended, and the firmware has not answered\n{self.machine.explain()}",
                    remedy="a kernel of the firmware ends by returning, not with ebreak or an endless loop",
                )
        except BhemuError as error:
            if error.core is None:
                words = f"{self.signal:#x}, its sync word {self.subordinate_sync:#010x}"
                error.message += f"\n  the firmware's signal is {words}"
            raise

    def _load_core(self, core: str) -> None:
        """Text to its address, the image of local data to where the start-up code takes it from (B5)."""
        executable, layout = self.firmware.executables[core], self.firmware.layout
        for number, segment in enumerate(executable.segments):
            address = segment.address
            if address >= boot.LOCAL_RAM:
                address = layout.image[core] + address - boot.LOCAL_RAM
            if address + len(segment.content) > L1_SIZE:
                raise MemoryError_(
                    f"{executable.path}: segment {number} at {segment.address:#010x} goes to {address:#x}, "
                    f"{len(segment.content):#x} bytes long, and L1 ends at {L1_SIZE:#x}",
                    remedy="mend the layout",
                )
            if segment.content:
                self._l1[address : address + len(segment.content)] = memoryview(segment.content)
        self.machine.add_symbols(executable, core)

    def _write_tables(self) -> None:
        layout = self.firmware.layout
        for region in (layout.zero_page, layout.bank_tables, layout.coordinate_map):
            if region is not None:
                self._zero(*region)
        self._zero(layout.launch_messages, layout.launch_size * layout.launch_count)
        for address in (layout.subordinate_sync, layout.launch_read_pointer, layout.go_index):
            self._store(address, 0)
        self._store(layout.go_messages, INIT << (8 * layout.go_signal))
        if layout.coordinate_map is not None:
            at = layout.coordinate_map[0]
            self._l1[at : at + len(_COLUMNS)] = _COLUMNS
            self._l1[at + _COLUMN_BYTES : at + _COLUMN_BYTES + len(_ROWS)] = _ROWS
        if layout.core_info is not None:
            self._store(layout.core_info + layout.core_place, 0, 2)
            offset, value = layout.core_magic
            self._store(layout.core_info + offset, value)

    # --- kernels --------------------------------------------------------------------------------------------------

    def launch(
        self,
        kernels: Mapping[str, Executable | bytes | str | Path],
        *,
        config_base: int = KERNEL_BASE,
        max_clocks: int = DEFAULT_CLOCKS,
        progress: Callable[[int], Any] | None = None,
    ) -> int:
        """Run kernels through the firmware's mailboxes, as a host in slow dispatch does (B9, B27).

        Args:
            kernels: by core: an ELF file linked at `config_base` or behind it, whose entry is a function that returns;
                or the bytes of one that runs at any address. Cores that are not named run none; but the firmware
                starts the T cores together, so where one is named the others run an empty kernel.
            config_base: start of the kernel configuration buffer in L1.
            max_clocks: give up after so many clocks.
            progress: called now and then with the clocks that have passed.

        Returns:
            Clocks from the go signal to `done`.

        Raises:
            ProgramError: the firmware is not ready, or a kernel is none for it.
            MemoryError_: a kernel does not fit.
            BhemuError: what a kernel did was refused, it waits for ever, or takes longer than `max_clocks`.
        """
        layout = self.firmware.layout
        if int(self.machine.tile.record.soft_reset) != 0 or self.signal != DONE:
            raise ProgramError("the firmware is not ready", remedy="boot it first, and let an earlier launch end")
        named = {CORE_NAMES[boot.core_number(core)]: kernel for core, kernel in kernels.items()}
        if any(core in named for core in T_CORES):
            named = dict.fromkeys(T_CORES, EMPTY_KERNEL) | named
        free = layout.first_free
        if config_base < free or config_base % 16:
            raise MemoryError_(
                f"kernels cannot begin at {config_base:#x}: the firmware has L1 up to {free:#x}",
                remedy=f"use a multiple of 16 from {free:#x} on",
            )
        message = layout.launch_messages + layout.launch_size * self._load(layout.launch_read_pointer)
        fields = layout.launch
        self._zero(message, layout.launch_size)
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
        start = self.machine.clocks
        self._store(self._signal_address, GO, 1)
        self._wait(lambda: self.signal == DONE, max_clocks, progress)
        return self.machine.clocks - start

    def _place_kernel(
        self,
        core: str,
        kernel: Executable | bytes | str | Path,
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
        boot.write_program(placement, self._l1, self.machine.tile.cores[core].local_ram)
        self.machine.add_symbols(executable, core)
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
