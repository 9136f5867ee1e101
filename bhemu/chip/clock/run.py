"""Clocks of a chip in compiled code: which tiles move, in which order, and how far ahead of each other (tile T34, H8).

In a clock the tiles move in the order of their numbers, and what a tile does to another happens at once (N26): a later
tile sees it in the same clock, an earlier one in the next. No program can observe another order:

- Tiles in which nothing can move are not visited. They are brought up to date before anything changes them.
- A tile that is behind all others runs up to the next one.
- Tiles that have not changed each other for a while run ahead of each other, each up to the quantum's end or to its
  next NoC request to another tile. Requests are then carried out in the order above. They find tiles that wait, poll or
  are stopped exactly as they would have been; only a tile that is busy may see a change late, by less than the quantum.
  On silicon a request takes hundreds of clocks, so no program can rely on the difference.

Where tiles may always be ahead of each other (`chip.run_ahead`), requests are carried out in batches: all that tiles
have stopped for in a quantum, in the order above, and then the tiles run on side by side. In the exact order each of
them would go on alone up to the next one's request; so a second request of a tile may come after a later one of another
tile.

The quantum is a quarter of the time since another tile or the host last changed a tile that moves, at least
`chip.run_ahead` and at most `chip.quantum`; with 1 the order is exact to the clock.

In a tile, too, a core may be ahead of the other agents where it accesses L1, reads the clock, pushes to its own thread
or accesses what `may_be_early` of tile/memory_map.py names: by `chip.run_ahead` rounds at most, 0 unless the pace of
clocks adapts (capi/pace.c). A core that waits for the coprocessor may go on as many rounds late. Each agent still does
its own work in its order, and all other accesses keep the exact order, among them those by which agents wait for each
other.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import ATTENDED, MIDST, STATUS, l1_address, tile_of, touch
from bhemu.chip.links.receive import begin_span
from bhemu.chip.noc.transfer import carry_out
from bhemu.chip.nodes.kinds import CLOCKED
from bhemu.chip.state import CHIP
from bhemu.machine.agents import CORES
from bhemu.machine.bytes import record_address
from bhemu.machine.core_state import FIRST_POLL_ATTEMPT, POLL_STEPS, RUNNING
from bhemu.machine.dispatch import ADVANCE_TILE, CODE_CACHE, RUN_CORE, RUN_TURNS, call_handler, has_handler, place_value
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.prefetch import fetch_code, fetch_record
from bhemu.machine.share import make_sharing
from bhemu.machine.types import AnyInt, ChipRecord, Int, Table, TileRecord
from bhemu.riscv.decode import code_at
from bhemu.riscv.execute import LIMIT
from bhemu.riscv.step import step
from bhemu.riscv.teams import NO_ATTEMPT, is_plain_turn
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tensix.frontend.run import OBSERVER_FULL
from bhemu.tile.observer import call_observer
from bhemu.tile.schedule import AFTER_RUN, GO_ON, GO_ON_CHANGED
from bhemu.tile.turn_ends import ADVANCED, COPROCESSOR, CORE_FAULTED, NO_AGENT, NOC_REQUEST, TENSIX_FAULTED

FRAME_ARRIVES: Final = 32
"""What `clock_entry` returns beside what tiles return (tile/turn_ends.py)."""
_NOTHING_LEFT: Final = -1
_LOOK_AT_LOOPS: Final = 63
"""Bits of the round that are 0 where cores that run one round at a time are checked for new loops."""
_LOOP_BYTES: Final = 4 * POLL_STEPS
_RECORD_AHEAD: Final = 4
_CODE_AHEAD: Final = 2
"""A record is fetched so many tiles before its turn, and the tile's code, whose place the record has, so many."""
_TILE_BITS: Final = 0xFF
"""The bits of a tile's number."""
assert len(CLOCKED) <= _TILE_BITS + 1
_QUIET: Final = 4
"""A quantum is this part of the time for which tiles have left each other alone."""


@kernel
def _runs(t: TileRecord) -> Any:
    """(how many agents of a tile are running, the last of them)."""
    count, found = 0, NO_AGENT
    for core in range(CORES):
        if t.core_state[core] == RUNNING:
            count += 1
            found = core
    if t.tensix_state == RUNNING:
        count += 1
        found = COPROCESSOR
    return count, found


@kernel
def _advance(chip: ChipRecord, table: Table, index: Int, t: TileRecord, how: Int) -> AnyInt:
    """Advance a tile; one with an observer follows the observer's schedule."""
    log = np.int64(chip.observer[index])
    if log == NO_LOG:
        return call_handler(table, ADVANCE_TILE, t, table, how)
    return call_observer(log, t, table, how)


@kernel
def _stop_in_midst(chip: ChipRecord, index: Int, t: TileRecord, status: Int) -> None:
    """A tile cannot go on by itself: it asks for a handler, for a NoC request, or has to refuse something."""
    chip.status[index] = np.uint8(status)
    if status == NOC_REQUEST:
        stop_round = np.int64(t.now_round) if t.now_agent < CORES else np.int64(t.tensix_round)
        chip.stop_round[index] = stop_round
        chip.local[index] = stop_round - t.free_rounds
        chip.status[index] = np.uint8(status | MIDST)
    elif status == CORE_FAULTED:
        chip.local[index] = np.int64(t.core_round[t.fault_core - 1]) - t.free_rounds
    elif status == TENSIX_FAULTED:
        chip.local[index] = np.int64(t.tensix_round) - 1 - t.free_rounds
    elif status != OBSERVER_FULL and t.needs_place == 0:  # an instruction that may not exist
        chip.local[index] = np.int64(t.tensix_round) - t.free_rounds


@kernel
def _wind_back(chip: ChipRecord, index: Int, t: TileRecord) -> None:
    """No agent of a tile can proceed: its time becomes that of the last event, and a change finds it exactly then."""
    last_round = np.int64(t.tensix_round)
    for core in range(CORES):
        last_round = max(last_round, np.int64(t.core_round[core]))
    back = np.int64(t.round_goal) - last_round
    if back > 0:
        t.round_goal -= back
        t.clock -= back
    chip.local[index] = t.clock


@kernel
def _first_due(t: TileRecord) -> Int:
    """The first core that is due, where all are in the last round before the goal; NO_AGENT: `choose` has to say."""
    found = NO_AGENT
    if t.tensix_state == RUNNING:
        return found
    for core in range(CORES):
        behind = np.int64(t.round_goal) - np.int64(t.core_round[core])
        if t.core_state[core] == RUNNING and behind > 0:
            if behind > 1:
                return NO_AGENT
            if found == NO_AGENT:
                found = core
    return found


@kernel
def _is_done(t: TileRecord) -> bool:
    """Every agent that can move has reached the goal."""
    for core in range(CORES):
        if t.core_state[core] == RUNNING and t.core_round[core] < t.round_goal:
            return False
    return bool(t.tensix_state != RUNNING)


@kernel
def _try_new_loops(t: TileRecord) -> None:
    """A core that has left the loop which was last found not to poll is checked again soon (riscv/poll.py)."""
    for core in range(CORES):
        away = np.int64(t.core_pc[core]) - np.int64(t.poll_pc[core, 0])
        if (away > _LOOP_BYTES or away < -_LOOP_BYTES) and t.poll_steps[core] == NO_ATTEMPT:
            t.core_loops_limit[core] = FIRST_POLL_ATTEMPT


@kernel
def _run_last_round(chip: ChipRecord, table: Table, index: Int, t: TileRecord) -> Int:
    """Run the cores of a tile, undisturbed and one round from its goal, without the schedule as far as they can.

    Returns what their turns have (tile/turns.py), ADVANCED where the schedule has to go on; or _NOTHING_LEFT.
    """
    core = _first_due(t)
    if core == NO_AGENT or not has_handler(table, RUN_TURNS):
        return np.int64(ADVANCED)
    t.round_horizon = t.round_goal - 1
    code = code_at(place_value(table, CODE_CACHE))
    while core < CORES:
        if t.core_state[core] == RUNNING and t.core_round[core] < t.round_goal:
            if not is_plain_turn(t, core):
                return np.int64(ADVANCED)
            if not step(t, core, code):
                result = call_handler(table, RUN_TURNS, t, core, table)
                t.clock = t.round_goal - t.free_rounds
                if result != ADVANCED or not _is_done(t):
                    return np.int64(result)
                break
        core += 1
    t.clock = t.round_goal - t.free_rounds
    chip.local[index] = t.clock
    if t.round_goal & _LOOK_AT_LOOPS == 0:
        _try_new_loops(t)
    return np.int64(_NOTHING_LEFT)


@kernel
def run_tile(chip: ChipRecord, table: Table, index: Int, goal: Int) -> None:
    """Let a tile run up to a clock; `status` says what it needs from the host. Touches no other tile."""
    t = tile_of(chip, index)
    t.run_ahead = chip.run_ahead
    how: Int = np.int64(GO_ON)
    status: Int = np.int64(ADVANCED)
    if chip.status[index] & MIDST:
        t.round_goal = max(goal + t.free_rounds, np.int64(chip.stop_round[index]) + 1)
        if chip.touched[index] != 0:
            how = np.int64(GO_ON_CHANGED)
            t.now_round = chip.stop_round[index]
    elif chip.status[index] == 0:
        clocks = goal - np.int64(t.clock)
        if chip.touched[index] != 0 or chip.waiting[index] != 0:
            how = -clocks
        else:
            t.round_goal += clocks
            if clocks == 1 and chip.observer[index] == NO_LOG:
                status = _run_last_round(chip, table, index, t)
                if status == _NOTHING_LEFT:
                    return
    chip.status[index] = 0
    chip.touched[index] = 0
    if status == ADVANCED:
        status = _advance(chip, table, index, t, how)
    if status != ADVANCED:
        _stop_in_midst(chip, index, t, status)
        return
    chip.local[index] = t.clock
    _try_new_loops(t)
    runs = _runs(t)[0] != 0
    chip.runs[index] = 1 if runs else 0
    if not runs and chip.waiting[index] == 0:
        _wind_back(chip, index, t)


@kernel(forceinline=True)
def _tile_at(chip: ChipRecord, k: Int) -> Int:
    """The active tile at a place of the order. The masks tell the compiler that no index is negative."""
    return np.int64(chip.order[k & _TILE_BITS]) & _TILE_BITS


@kernel
def forget_idle(chip: ChipRecord) -> None:
    """Tiles in which no agent can proceed are no longer visited."""
    kept = 0
    for k in range(chip.active_count):
        index = _tile_at(chip, k)
        expects = chip.status[index] != 0 or chip.waiting[index] != 0 or chip.touched[index] != 0
        if expects or chip.runs[index] != 0:
            chip.order[kept] = index
            kept += 1
        else:
            chip.active[index] = 0
    chip.active_count = kept


@kernel
def first_clocks(chip: ChipRecord) -> Any:
    """(clock of the tile that is farthest behind, how many are, clock of the next, whether all can go on, any waits).

    Where no tile is behind, both clocks are the end.
    """
    first = second = np.int64(chip.end)
    count = 0
    free, waits = True, False
    for k in range(chip.active_count):
        index = _tile_at(chip, k)
        local = np.int64(chip.local[index])
        waits = waits or chip.waiting[index] != 0
        if chip.status[index] != 0 and chip.status[index] & ATTENDED == 0:
            free = False
        if local < first:
            second = first
            first = local
            count = 1
        elif local == first:
            count += 1
        elif local < second:
            second = local
    return first, count, second, free, waits


@kernel
def _in_order(chip: ChipRecord, table: Table, first: Int, goal: Int) -> Int:
    """The tiles at clock `first` run up to `goal`, one after the other; returns the status that stops them.

    Args:
        goal: more than one clock away only for a tile alone.
    """
    for k in range(chip.active_count):
        index = _tile_at(chip, k)
        if chip.local[index] != first:
            continue
        if chip.status[index] == 0 or chip.status[index] & ATTENDED:
            run_tile(chip, table, index, goal)
        if chip.status[index] & MIDST and carry_out(chip, index, 1):
            return np.int64(ADVANCED)  # others may move now
        if chip.status[index] != 0:
            chip.current = index
            return np.int64(chip.status[index]) & STATUS
    return np.int64(ADVANCED)


@kernel
def _run_ahead(chip: ChipRecord, table: Table, k: Int) -> None:
    """The tile at a place of the order runs up to the goal that all share, unless it has stopped for a request."""
    if k + _RECORD_AHEAD < chip.active_count:
        soon = chip.order[k + _CODE_AHEAD]
        fetch_code(tile_of(chip, soon), l1_address(chip, soon))
        fetch_record(record_address(tile_of(chip, chip.order[k + _RECORD_AHEAD])))
    index = chip.order[k]
    goes = chip.status[index] == 0 or chip.status[index] & ATTENDED
    if goes and chip.local[index] < chip.share_goal:
        run_tile(chip, table, index, chip.share_goal)


_run_all, _help_others = make_sharing(CHIP, _run_ahead)


@kernel
def all_ahead(chip: ChipRecord, table: Table, goal: Int) -> None:
    """All tiles run up to a goal, independently of each other."""
    chip.share_goal = goal
    _run_all(chip, table, chip.active_count, chip.active_count)


@kernel
def _carry_out_batch(chip: ChipRecord) -> bool:
    """Carry out the requests for which tiles have stopped, in the order of clocks and tiles; False: Python has to help.

    No tile that can go on is behind one of them.
    """
    while True:
        found: Int = np.int64(NO_AGENT)
        for k in range(chip.active_count):
            index = _tile_at(chip, k)
            status = chip.status[index]
            if status == 0 or status & ATTENDED:
                continue
            if status & MIDST == 0:
                return False
            if found == NO_AGENT or chip.local[index] < chip.local[found]:
                found = index
        if found == NO_AGENT:
            return True
        if not carry_out(chip, found, 1):
            return False


@kernel
def _find_lone_core(t: TileRecord, table: Table) -> Int:
    """1 + the core that runs alone in a tile, its turns being plain; 0: there is more to do."""
    count, core = _runs(t)
    if count != 1 or core == COPROCESSOR or not is_plain_turn(t, core) or not has_handler(table, RUN_CORE):
        return np.int64(0)
    return np.int64(core + 1)


@kernel
def _leave_lone_core(chip: ChipRecord, table: Table, index: Int, reason: Int) -> None:
    """The core that ran alone has stopped before its limit; see `run_core` of riscv/execute.py."""
    t = tile_of(chip, index)
    how = AFTER_RUN + chip.lone_core - 1 + 8 * reason
    chip.lone_core = 0
    status = call_handler(table, ADVANCE_TILE, t, table, how)
    if status != ADVANCED:
        _stop_in_midst(chip, index, t, status)
    else:
        chip.local[index] = t.clock
        chip.runs[index] = 1 if _runs(t)[0] != 0 else 0


@kernel(forceinline=True)  # many calls let one clock pass
def _run_lone_core(chip: ChipRecord, table: Table) -> bool:
    """Clocks of the only core that runs in the only tile that moves; False when there is more to do.

    As long as it only reaches its limit it stays the only one, unless another tile or the host touches this one.
    """
    index = chip.order[0]
    if chip.touched[index] != 0 or chip.status[index] != 0 or chip.waiting[index] != 0:
        chip.lone_core = 0
        return False
    t = tile_of(chip, index)
    if chip.lone_core == 0:
        chip.lone_core = _find_lone_core(t, table) if chip.observer[index] == NO_LOG else 0
        if chip.lone_core == 0:
            return False
    t.round_goal += chip.end - t.clock
    t.round_horizon = t.round_goal
    core = chip.lone_core - 1
    cache = place_value(table, CODE_CACHE)
    if t.round_goal - t.core_round[core] == 1 and step(t, core, code_at(cache)):
        reason = np.int64(LIMIT)
    else:
        reason = call_handler(table, RUN_CORE, t, core, cache)
    if reason == LIMIT:
        t.clock = chip.end
        chip.local[index] = chip.end
        chip.time = chip.end
        return True
    _leave_lone_core(chip, table, index, reason)
    return False


@kernel
def _move_tiles(chip: ChipRecord, table: Table) -> Any:
    """`move` where several tiles move, or more than a core of one."""
    in_batches = chip.run_ahead != 0
    window = np.int64(chip.time)
    while True:
        forget_idle(chip)
        first, count, second, free, waits = first_clocks(chip)
        if first >= chip.end:
            chip.time = chip.end
            return np.int64(ADVANCED)
        chip.time = first
        quiet = (first - np.int64(chip.last_message)) // _QUIET
        quantum = min(np.int64(chip.quantum), max(quiet, np.int64(chip.run_ahead)))
        ahead = min(np.int64(chip.end), first + quantum)
        if in_batches and chip.active_count > 1 and not waits:
            if first >= window:
                window = ahead
            all_ahead(chip, table, window)
            in_batches = _carry_out_batch(chip)
            continue
        if count == 1 and not waits:
            goal = max(second, first + 1)
        elif ahead > first + 1 and free and not waits:
            all_ahead(chip, table, ahead)
            continue
        else:
            goal = first + 1
        status = _in_order(chip, table, first, goal)
        if status != ADVANCED:
            return status


@kernel(forceinline=True)
def move(chip: ChipRecord, table: Table) -> Any:
    """Let all tiles move up to `chip.end`.

    Returns:
        ADVANCED, or the status of tile `chip.current`, for which the host has to do something.
    """
    if chip.active_count == 1:
        if _run_lone_core(chip, table):
            return np.int64(ADVANCED)
    else:
        chip.lone_core = 0
        if chip.active_count == 0:
            chip.time = chip.end
            return np.int64(ADVANCED)
    return _move_tiles(chip, table)


def touch_entry(chip: ChipRecord, index: Int, clock: Int) -> Int:
    """`touch` for the host."""
    touch(chip, index, clock)
    return 0


def help_entry(chip: ChipRecord, table: Table, begun: Int) -> AnyInt:
    """Take part in the work of another thread until it says that no more comes.

    Args:
        table: of handlers, with a code cache that no other thread uses.
        begun: `share_begin` as it was before the work was given out.
    """
    return _help_others(chip, table, begun)


@kernel(forceinline=True)
def pass_clocks(chip: ChipRecord, table: Table, clocks: Int) -> Any:
    """Let clocks pass (0: go on with what is left); see `move`.

    On a chip with links frames arrive in between (chip/links/receive.py), up to `chip.goal`. FRAME_ARRIVES: what a
    frame does needs something of tile `noc_end`, or has been refused there.
    """
    if clocks > 0:
        chip.end = chip.time
        if chip.links != 0:
            chip.goal = chip.time + clocks
        else:
            chip.end += clocks
    while True:  # `move` is called at one place: it is inlined
        status = move(chip, table)
        if status != ADVANCED or chip.links == 0 or chip.time >= chip.goal:
            return status
        if begin_span(chip) != DONE:
            return np.int64(FRAME_ARRIVES)


def clock_entry(chip: ChipRecord, table: Table, clocks: Int) -> AnyInt:
    """`pass_clocks` for the host."""
    return pass_clocks(chip, table, clocks)
