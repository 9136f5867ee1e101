"""What a chip holds after reset, as the C library gets it."""

from __future__ import annotations

from bhemu.capi.image import IN_EACH_TILE, take_image
from bhemu.chip.coordinates import TENSIX_TILES
from bhemu.chip.device import Device
from bhemu.machine.state import PAGE, TILE, offset_of


def test_what_a_tensix_tile_holds_after_reset_lies_in_one_page() -> None:
    """`libttsim_init` touches this page of each tile; each further one would take a page fault a tile."""
    runs = take_image(Device(simulator_order=True))
    pages = {
        place // PAGE
        for run in runs
        if run.tile == IN_EACH_TILE or 0 <= run.tile < TENSIX_TILES
        for place in (run.at, run.at + len(run.content) - 1)
    }
    own = {offset_of(TILE, name) // PAGE for name in ("handlers", "simulator_order", "allow_open")}
    assert len(pages | own) == 1
