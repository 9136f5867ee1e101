"""tt-metal firmware on many tiles of a chip: all boot side by side, and kernels are launched on any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from bhemu.api.chip_memory import DramBank
from bhemu.api.chip_report import explain_tiles
from bhemu.api.chip_run import ChipRun, RunningChip
from bhemu.api.chip_tile import ChipTile, Tiles
from bhemu.api.firmware_tile import KERNEL_BASE, FirmwareTile, Kernel
from bhemu.api.machine import DEFAULT_CLOCKS
from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.errors import BhemuError, Deadlock, ProgramError
from bhemu.loader.elf import Executable, load_elf
from bhemu.loader.firmware_files import Firmware, Grid

_NAMED: Final = 8
"""At most this many tiles whose firmware does not answer are named."""


class BootableChip(RunningChip, Protocol):
    """What firmware needs of a `bhemu.Chip`; see there."""

    @property
    def tensix(self) -> tuple[ChipTile, ...]:
        """The Tensix tiles."""

    @property
    def dram(self) -> tuple[DramBank, ...]:
        """The DRAM banks."""

    def chosen(self, tiles: Tiles | None) -> list[ChipTile]:
        """The tiles that an argument `tiles` names."""


@checked
class ChipFirmware:
    """Firmware on tiles of a chip, from `Chip.boot_firmware`.

    Attributes:
        firmware: what runs on them.
        tiles: by translated coordinates: the mailboxes of each.
        boot_clocks: from the release of the cores B until the last tile was ready.
    """

    def __init__(self, chip: BootableChip, firmware: Firmware, tiles: Tiles | None) -> None:
        self._chip = chip
        self.firmware = firmware
        self._views = chip.chosen(tiles)
        self.tiles: dict[Place, FirmwareTile] = {
            view.place: FirmwareTile(firmware, view, view.programs) for view in self._views
        }
        self.boot_clocks = 0

    def boot(self, max_clocks: int, progress: Callable[[int], Any] | None) -> None:
        """Load the firmware, release the cores B, and wait until all tiles are ready; see `Chip.boot_firmware`."""
        places = [tile.place for tile in self._chip.tensix]
        columns, rows = sorted({x for x, _ in places}), sorted({y for _, y in places})
        image = self.firmware.image(Grid(tuple(columns), tuple(rows), len(self._chip.dram)))
        for (x, y), tile in self.tiles.items():
            tile.begin_boot(image, (columns.index(x), rows.index(y)))
        self.boot_clocks = self._wait(list(self.tiles), max_clocks, progress)

    def launch(
        self,
        kernels: Mapping[str, Kernel],
        *,
        tiles: Tiles | None = None,
        config_base: int = KERNEL_BASE,
        max_clocks: int = DEFAULT_CLOCKS,
        progress: Callable[[int], Any] | None = None,
    ) -> int:
        """Run kernels through the firmware's mailboxes, on all tiles side by side (B9, B27).

        Args:
            kernels: by core: an ELF file linked at `config_base` or after it, whose entry is a function that returns;
                or the bytes of one that runs at any address. Cores that are not named run none; but the firmware
                starts the T cores together, so where one is named the others run an empty kernel.
            tiles: a tile, its coordinates, or several of those that have booted; None: all of them.
            config_base: start of the kernel configuration buffer in L1.
            max_clocks: stop after this many clocks.
            progress: called now and then with the clocks that have passed.

        Returns:
            Clocks from the go signals until the last tile is done.

        Raises:
            ProgramError: the firmware of a tile is not ready, or a kernel does not fit it.
            MemoryError_: a kernel does not fit.
            BhemuError: what a kernel did was refused, it waits forever, or takes longer than `max_clocks`.
        """
        places = list(self.tiles) if tiles is None else [tile.place for tile in self._chip.chosen(tiles)]
        loaded = {
            core: kernel if isinstance(kernel, bytes | Executable) else load_elf(kernel)
            for core, kernel in kernels.items()
        }
        chosen = [self._booted(place) for place in places]
        for tile in chosen:
            tile.check_ready()
        for tile in chosen:
            tile.begin_launch(loaded, config_base)
        return self._wait(places, max_clocks, progress)

    def _booted(self, place: Place) -> FirmwareTile:
        if place not in self.tiles:
            raise ProgramError(f"tile {place[0]}-{place[1]} has no firmware", remedy="name tiles that have booted")
        return self.tiles[place]

    def _wait(self, places: list[Place], max_clocks: int, progress: Callable[[int], Any] | None) -> int:
        """Let the chip run until the firmware of all these tiles has answered; returns the clocks."""
        left = list(places)

        def answered() -> bool:
            while left and self.tiles[left[-1]].ready:
                left.pop()
            return not left

        start = self._chip.time
        try:
            chosen = self._chip.chosen(places)
            if ChipRun(self._chip, chosen).go(max_clocks, answered, progress) != "until":
                raise Deadlock(
                    f"all cores have ended, and the firmware has not answered\n{explain_tiles(self._silent(places))}",
                    remedy="a kernel of the firmware ends by returning, not with ebreak or an endless loop",
                )
        except BhemuError as error:
            if error.core is None:
                silent = self._silent(places)
                words = "; ".join(
                    f"{tile.place[0]}-{tile.place[1]} {self.tiles[tile.place].signal:#x}, "
                    f"{self.tiles[tile.place].subordinate_sync:#010x}"
                    for tile in silent[:_NAMED]
                )
                error.message += (
                    f"\n  the firmware of {len(silent)} of {len(places)} tiles has not answered; "
                    f"signals and sync words: {words}" + ("; ..." if len(silent) > _NAMED else "")
                )
            raise
        return self._chip.time - start

    def _silent(self, places: list[Place]) -> list[ChipTile]:
        return [view for view in self._views if view.place in places and not self.tiles[view.place].ready]
