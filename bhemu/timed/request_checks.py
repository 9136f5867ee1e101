"""Whether a request that is to arrive later is sound: the store that starts it is refused, not its arrival."""

from __future__ import annotations

from bhemu.chip.noc.transfer import _is_sound, _survey
from bhemu.chip.nodes.kinds import ETHERNET, TENSIX
from bhemu.machine.ethernet_state import TENSIX_TILE
from bhemu.machine.faults import open_choice
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, ChipRecord, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc import request as q


@kernel
def is_sound_request(
    chip: ChipRecord, index: Int, t: TileRecord, request: NocRequestRecord, start: Int, end: Int
) -> Bool:
    """True for a request to L1 that breaks no rule; its open choices are noted then.

    Args:
        start, end: physical places of a multicast's corners, or of the receiver.
    """
    if request.control & q.MULTICAST_BIT and not _survey(chip, index, request, start, end):
        return False
    own = ETHERNET if t.tile_kind != TENSIX_TILE else TENSIX
    if not _is_sound(t, request, own, chip.place_kind[end]):
        return False
    if request.kind == q.INLINE:
        open_choice(t, q.INLINE_TO_L1, request.target)
    return True
