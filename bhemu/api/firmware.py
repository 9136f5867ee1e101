"""tt-metal firmware on the cores of a tile: boot it as the host does, then launch kernels through its mailboxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bhemu.api.firmware_tile import KERNEL_BASE, FirmwareTile, Kernel
from bhemu.api.machine import DEFAULT_CLOCKS, Machine
from bhemu.errors import BhemuError, Deadlock
from bhemu.loader.firmware_files import FOLDERS, Firmware, load_firmware
from bhemu.loader.firmware_layout import DONE

__all__ = ["BOOT_CLOCKS", "FOLDERS", "BootResult", "Firmware", "FirmwareMachine", "load_firmware"]

BOOT_CLOCKS: Final = 100_000
"""Boots take about 6,000 (B27)."""


@dataclass(frozen=True)
class BootResult:
    """Clocks from the release of core B until it released the other cores, and until its signal was `done`."""

    released: int
    done: int


class FirmwareMachine(FirmwareTile):
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
        self.machine = Machine() if machine is None else machine
        super().__init__(firmware, self.machine.tile, self.machine)

    def boot(self, *, max_clocks: int = BOOT_CLOCKS, progress: Callable[[int], Any] | None = None) -> BootResult:
        """Load the firmware, release core B, and wait until all cores are ready (tile B6).

        Args:
            max_clocks: stop after this many clocks.
            progress: called now and then with the clocks that have passed.

        Raises:
            BhemuError: what the firmware did was refused, it waits forever, or takes longer than `max_clocks`.
        """
        self.begin_boot(self.firmware.image())
        start = self.machine.clocks
        self._wait(lambda: self.released, max_clocks, progress)
        clocks_to_release = self.machine.clocks - start
        self._wait(lambda: self.signal == DONE, max_clocks, progress)
        return BootResult(clocks_to_release, self.machine.clocks - start)

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

    def launch(
        self,
        kernels: Mapping[str, Kernel],
        *,
        config_base: int = KERNEL_BASE,
        max_clocks: int = DEFAULT_CLOCKS,
        progress: Callable[[int], Any] | None = None,
    ) -> int:
        """Run kernels through the firmware's mailboxes, as a host in slow dispatch does (B9, B27).

        Args:
            kernels: by core: an ELF file linked at `config_base` or after it, whose entry is a function that returns;
                or the bytes of one that runs at any address. Cores that are not named run none; but the firmware
                starts the T cores together, so where one is named the others run an empty kernel.
            config_base: start of the kernel configuration buffer in L1.
            max_clocks: stop after this many clocks.
            progress: called now and then with the clocks that have passed.

        Returns:
            Clocks from the go signal to `done`.

        Raises:
            ProgramError: the firmware is not ready, or a kernel does not fit it.
            MemoryError_: a kernel does not fit.
            BhemuError: what a kernel did was refused, it waits forever, or takes longer than `max_clocks`.
        """
        self.begin_launch(kernels, config_base)
        start = self.machine.clocks
        self._wait(lambda: self.signal == DONE, max_clocks, progress)
        return self.machine.clocks - start
