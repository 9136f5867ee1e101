"""The inner loop of a core: RV32IM, Zba, Zbb and `.ttinsn` on registers, L1 and local RAM (tile T1 to T10).

Code that is executed often is translated (translate.py), and the loop enters that. Whatever needs more than that leaves
the loop: accesses to other addresses (made by tile/memory_map.py) and `.ttinsn`, unless they can be made in the midst
of a turn, and the instructions of slow.py. The schedule (tile/schedule.py) decides how far a core may run: up to
`round_goal`, and up to `round_horizon` where it touches shared state, `run_ahead` rounds further where that is L1, the
clock, its thread's FIFO or what `in_turn` allows.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior
from bhemu.machine.buffer_memory import load_i64
from bhemu.machine.bytes import record_address, word_of
from bhemu.machine.core_state import LOCAL_RAM_SIZE, PUSH, RUNNING
from bhemu.machine.dispatch import call_handler
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.prefetch import prefetch
from bhemu.machine.state import L1_SIZE, TILE, offset_of
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Record, TileRecord
from bhemu.machine.wall_clock import is_wall_clock, load_wall_clock, may_load_ahead
from bhemu.riscv.arithmetic import WORD, compute
from bhemu.riscv.code_memory import enter, native_table, set_team
from bhemu.riscv.decode import (
    BREAKPOINT,
    NOWHERE,
    TRANSLATED,
    TTINSN,
    code_at,
    fields_of,
    fill,
    key_of,
)
from bhemu.riscv.pushes import pushed_word, pushes
from bhemu.riscv.simple import (
    BEQ,
    BGE,
    BGEU,
    BLT,
    BLTU,
    BNE,
    ELSEWHERE,
    FENCE,
    FENCE_I,
    IN_L1,
    IN_RAM,
    JAL,
    JALR,
    LB,
    LBU,
    LH,
    LHU,
    LW,
    NOT_ALIGNED,
    SB,
    SH,
    SW,
    access_of,
    branches,
    is_watched,
    load_memory,
    may_wake,
    place_of_access,
    size_of,
    store_memory,
)
from bhemu.riscv.teams import begin_team, can_join
from bhemu.riscv.translation_state import (
    AT_HORIZON,
    COUNT,
    CURRENT,
    FAILED,
    FIELDS,
    JOIN,
    LEFT,
    LOOPS_LEFT,
    NO_CORE,
    PREVIOUS,
    SLACK,
    STAY,
    TRANSLATOR_PLACE,
)
from bhemu.tensix.frontend.observer import NO_LOG

# Why a core has left the loop
LIMIT: Final = 0
"""It has reached the goal, or the horizon before an access."""
ACCESS: Final = 1
"""`access_*` describe an access that the memory map has to make."""
SLOW: Final = 2
"""The instruction at pc is one of slow.py."""
FAULTED: Final = 3
LOOPS: Final = 4
"""It has jumped backwards `core_loops_limit` times."""
STOPPED: Final = 5
"""It is at a breakpoint."""

# What becomes of an access in the midst of a turn
NOT_MADE: Final = 0
"""It ends the turn, and is made then."""
GOES_ON: Final = 1
"""It is made, and the core goes on."""
TURN_ENDS: Final = 2
"""It is made, and another agent may come before the core's next instruction."""

BAD_PC: Final = fault(
    "riscv.pc",
    UndefinedBehavior,
    "the core jumps to {0:#x}, which is not an aligned address in L1 (0..{1:#x}); it came from {2:#x}",
    remedy="instructions are fetched from L1 only; check the return address and function pointers",
    rule="tile T21",
)
MISALIGNED: Final = fault(
    "riscv.misaligned",
    NonContractualBehavior,
    "a misaligned {1}-byte access at {0:#x}",
    remedy="align the data to its size (-mstrict-align); packed structures need byte accesses",
    rule="tile T27",
)

_CORE_BITS: Final = 7
_AHEAD: Final = offset_of(TILE, "l1") + 64
"""From a tile's record to the cache line after that of L1's first word. Each tile has its program in its own L1, and
waiting for instructions was a fifth of the time that the cores of a chip took."""
_SIMPLE_END: Final = FENCE
"""Instructions from here on are looked at outside of the loop of simple ones, but for `.ttinsn` and fences."""
_FENCES: Final = (FENCE, FENCE_I)
"""Every access is complete before the next one (T31, E44), and code is compared (T22): they have nothing to do."""
_NOT_LOADED: Final = 1 << 32
"""In the place of what a load gets: the inner loop does not make it."""


@kernel
def hand_over(
    t: TileRecord, core: Int, kind: Int, address: Int, size: Int, value: Int, register: Int, is_signed: Int
) -> Any:
    """Describe an access for the memory map."""
    t.access_kind[core] = kind
    t.access_address[core] = address
    t.access_size[core] = size
    t.access_value[core] = value
    t.access_register[core] = register
    t.access_signed[core] = is_signed
    return ACCESS


@kernel(seldom=True)
def hand_over_access(t: TileRecord, core: Int, fields: Int, address: Int) -> Any:
    """Describe the load or store of a decoded instruction for the memory map."""
    kind, size, value, register, is_signed = access_of(t, core, fields)
    return hand_over(t, core, kind, address, size, value, register, is_signed)


@kernel(forceinline=True)
def _load(t: TileRecord, core: Int, n: Int, address: Int, l1_end: Int, ram_size: Int, in_time: Bool) -> Int:
    """What a load gets; _NOT_LOADED where it is not in memory, or in L1 and too early."""
    place = place_of_access(address, size_of(n), l1_end, ram_size)
    if place == IN_RAM or (place == IN_L1 and in_time):
        return load_memory(t, core, n, place, address)
    return np.int64(_NOT_LOADED)


@kernel(forceinline=True)
def _store(
    t: TileRecord, core: Int, n: Int, address: Int, value: Int, l1_end: Int, ram_size: Int, in_time: Bool
) -> Bool:
    """Make a store; False where it is not in memory, in L1 and too early, or may wake another core."""
    place = place_of_access(address, size_of(n), l1_end, ram_size)
    if place == IN_RAM or (place == IN_L1 and in_time and not is_watched(t, address)):
        store_memory(t, core, n, place, address, value)
        return True
    return False


@kernel(seldom=True)
def _arrive(t: TileRecord, code: Record, cache: Int, core: Int, pc: Int) -> None:
    """The core arrives at an instruction where translated code may begin."""
    place = (pc & WORD) >> 2
    if place < L1_SIZE >> 2 and code.heat[place] < code.hot:
        code.heat[place] += 1
        if code.heat[place] == code.hot:
            call_handler(native_table(cache), TRANSLATOR_PLACE, t, cache, core << 32 | (pc & WORD))


@kernel(forceinline=True)
def ignore_executed(log: LogAddress, core: Int, first: Int, end: Int) -> None:
    pass


@kernel(forceinline=True)
def ignore_begun(log: LogAddress, core: Int, pc: Int) -> Int:
    return pc


@kernel(forceinline=True)
def ignore_ended(t: TileRecord, log: LogAddress, core: Int, first: Int, pc: Int, now: Int) -> None:
    pass


@kernel(forceinline=True)
def decoded(t: TileRecord, code: Record, pc: Int) -> Any:
    """The fields of the instruction at an aligned address in L1."""
    at = word_of(np.int64(pc))
    prefetch(record_address(t) + _AHEAD + pc)
    word = np.int64(t.l1_u32[at])
    if np.int64(code.key[at]) != key_of(word):
        return fill(code, at, word)
    return np.int64(code.instruction[at])


@kernel(forceinline=True)
def instruction_at(t: TileRecord, code: Record, pc: Int) -> Any:
    """`decoded`, of the instruction itself where translated code begins."""
    fields: Int = decoded(t, code, pc)
    if fields & 0xFF == TRANSLATED:
        fields = np.int64(code.entry[fields >> 32, FIELDS])
    return fields


@kernel(forceinline=True)
def never_in_turn(t: TileRecord, core: Int, fields: Int, address: Int, early: Bool) -> Int:
    """Accesses end the turn."""
    return np.int64(NOT_MADE)


def make_run_core(counting: bool, begun: Any, executed: Any, ended: Any, in_turn: Any = never_in_turn) -> Any:
    """The loop, from this one text for cores whose instructions are counted and for others.

    Returns:
        `run_core(t, core, cache, others, log)`: execute with a core from `core_round` on; returns why it stopped, with
        pc at the instruction not yet executed. `cache` is the address of the code cache, or the cache itself when Numba
        is disabled. `others`: plain turns of other cores may follow (tile/turns.py); `turn_core` is the one whose turn
        was the last.

    Args:
        counting: call what follows; nothing is translated then.
        begun: `begun(log, core, pc)`: the loop begins; returns where those instructions begin that have been executed
            last, one after the other up to pc, without a jump in between.
        executed: `executed(log, core, first, end)`: the core jumps; it has executed the instructions from one address
            up to another one, in order.
        ended: `ended(t, log, core, first, pc, now)`: the loop ends, with these instructions executed and not yet told,
            at a pc and in a round that the record does not have yet.
        in_turn: `in_turn(t, core, fields, address, early)`: make the access of a decoded instruction, which L1 or local
            RAM has not made, in a turn that other turns may follow; returns NOT_MADE, GOES_ON or TURN_ENDS. `early`:
            the turns of other agents in rounds before it are still to come.
    """

    @kernel(forceinline=True)  # turns are short where cores share memory, and calls count
    def run_core(t: TileRecord, core: Int, cache: Int, others: Bool, log: LogAddress) -> Any:
        code = code_at(cache)
        core &= _CORE_BITS  # so the compiler knows that it is not negative: an index below 0 would count from the end
        l1_end = np.int64(t.l1_end)
        ram_size = LOCAL_RAM_SIZE[core]
        goal = np.int64(t.round_goal)
        horizon = np.int64(t.round_horizon)
        ahead = np.int64(t.run_ahead)
        start = np.int64(t.core_round[core])
        now = start
        pc = np.int64(t.core_pc[core])
        loops = np.int64(t.core_loops[core])
        loops_limit = np.int64(t.core_loops_limit[core])
        origin = pc  # where the core comes from, if it does not go on
        first = begun(log, core, pc)
        status = LIMIT
        # Templates know one size of L1, and count nothing.
        translates = not counting and code.native[TRANSLATOR_PLACE] != 0 and l1_end == L1_SIZE
        counts = translates and ahead == 0 and goal - start >= code.least_rounds and goal >= code.first_round
        stays = False  # the next instruction is the interpreter's
        team = False  # a team executes (teams.py)
        given: Int = np.int64(0)  # fields of the next instruction, where its place in the cache has those of others
        if counts and pc & 3 == 0:
            _arrive(t, code, cache, core, pc)
        while now < goal:
            if pc >= l1_end or pc & 3:
                if now <= horizon:  # else another agent may be refused before
                    refuse(t, BAD_PC, pc, l1_end, origin)
                    status = FAULTED
                break
            began = now
            loops_before = loops
            rare, accesses, ends = False, False, False  # why it leaves the inner loop; `accesses`: not made there
            in_time_until = horizon + ahead
            fields: Int = given
            if given == 0:
                fields = decoded(t, code, pc)
            given = np.int64(0)
            # Simple instructions, and what the coprocessor and devices get in between. What happens seldom is outside:
            # in here all is in registers of the processor.
            while True:
                n = fields & 0xFF
                if n >= _SIMPLE_END:
                    if n == TTINSN:
                        may_push = others and now <= in_time_until
                        if not may_push or not pushes(t, core, np.int64(t.l1_u32[pc >> 2]), pc, now):
                            rare = True
                            break
                        if t.tensix_state == RUNNING:
                            horizon = min(horizon, np.int64(t.tensix_round))
                            in_time_until = horizon + ahead
                    elif n not in _FENCES:
                        rare = True
                        break
                    now += 1
                    pc += 4
                    if now >= goal or pc >= l1_end:
                        origin = pc - 4
                        break
                    fields = decoded(t, code, pc)
                    continue
                immediate = fields >> 32
                a = np.int64(t.core_x[core, (fields >> 16) & 0xFF])
                b = np.int64(t.core_x[core, (fields >> 24) & 0xFF])
                value: Int = np.int64(0)
                after = pc + 4
                to = pc + immediate
                jumps = False
                made = True
                # One table of jumps is made of this chain: each condition compares n with constants.
                if n == LW:
                    value = _load(t, core, LW, (a + immediate) & WORD, l1_end, ram_size, now <= in_time_until)
                    made = value != _NOT_LOADED
                elif n == SW:
                    made = _store(t, core, SW, (a + immediate) & WORD, b, l1_end, ram_size, now <= in_time_until)
                elif n == BEQ:
                    jumps = branches(BEQ, a, b)
                elif n == BNE:
                    jumps = branches(BNE, a, b)
                elif n == BLT:
                    jumps = branches(BLT, a, b)
                elif n == BGE:
                    jumps = branches(BGE, a, b)
                elif n == BLTU:
                    jumps = branches(BLTU, a, b)
                elif n == BGEU:
                    jumps = branches(BGEU, a, b)
                elif n == JAL:
                    value = after
                    jumps = True
                elif n == JALR:
                    to = (a + immediate) & ~1
                    value = after
                    jumps = True
                elif n == LBU:
                    value = _load(t, core, LBU, (a + immediate) & WORD, l1_end, ram_size, now <= in_time_until)
                    made = value != _NOT_LOADED
                elif n == LHU:
                    value = _load(t, core, LHU, (a + immediate) & WORD, l1_end, ram_size, now <= in_time_until)
                    made = value != _NOT_LOADED
                elif n == LB:
                    value = _load(t, core, LB, (a + immediate) & WORD, l1_end, ram_size, now <= in_time_until)
                    made = value != _NOT_LOADED
                elif n == LH:
                    value = _load(t, core, LH, (a + immediate) & WORD, l1_end, ram_size, now <= in_time_until)
                    made = value != _NOT_LOADED
                elif n == SB:
                    made = _store(t, core, SB, (a + immediate) & WORD, b, l1_end, ram_size, now <= in_time_until)
                elif n == SH:
                    made = _store(t, core, SH, (a + immediate) & WORD, b, l1_end, ram_size, now <= in_time_until)
                else:
                    value = compute(n, a, b, immediate, pc)
                if not made:
                    outcome: Int = NOT_MADE
                    if others and now <= in_time_until:
                        t.core_pc[core] = np.uint32(pc)
                        t.core_round[core] = now
                        outcome = in_turn(t, core, fields, (a + immediate) & WORD, now > horizon)
                        t.core_round[core] = start
                    if outcome == NOT_MADE:
                        accesses = True
                        break
                    if t.tensix_state == RUNNING:
                        horizon = min(horizon, np.int64(t.tensix_round))
                        in_time_until = horizon + ahead
                    now += 1
                    pc = after
                    ends = outcome == TURN_ENDS
                    if ends or now >= goal or pc >= l1_end:
                        origin = pc - 4
                        break
                    fields = decoded(t, code, pc)
                    continue
                t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(value & WORD)
                now += 1
                if jumps:
                    source = pc
                    pc = to & WORD
                    if counting and pc != after:
                        executed(log, core, first, after)
                        first = pc
                    if pc <= source:
                        loops += 1
                        if counts or loops >= loops_limit:
                            origin = source
                            break
                    if pc & 3 or pc >= l1_end:
                        origin = source
                        break
                else:
                    pc = after
                if now >= goal or pc >= l1_end:
                    origin = pc - 4
                    break
                fields = decoded(t, code, pc)
            if now != began:
                t.core_skip_breakpoint[core] = 0
                stays = False
                team = False
            if loops != loops_before:
                if loops >= loops_limit:
                    status = LOOPS
                    break
                if counts:
                    _arrive(t, code, cache, core, pc)
                    continue
            if accesses:
                address = (np.int64(t.core_x[core, (fields >> 16) & 0xFF]) + (fields >> 32)) & WORD
                place = place_of_access(address, size_of(n), l1_end, ram_size)
                wakes = n >= SB and place == IN_L1 and may_wake(t, address)
                reads_clock = not counting and place == ELSEWHERE and n == LW and is_wall_clock(address)
                early = may_load_ahead(t, now, ahead) if reads_clock else place == IN_L1 and not wakes
                if now > horizon + (ahead if early else 0):
                    break
                if place == NOT_ALIGNED:
                    refuse(t, MISALIGNED, address, size_of(n))
                    status = FAULTED
                    break
                if reads_clock:
                    t.core_x[core, (fields >> 8) & 0xFF] = np.uint32(load_wall_clock(t, core, address, now))
                elif early:
                    # Only the hash has been the same.
                    store_memory(t, core, n, IN_L1, address, np.int64(t.core_x[core, (fields >> 24) & 0xFF]))
                else:
                    status = hand_over_access(t, core, fields, address)
                    break
                now += 1
                t.core_skip_breakpoint[core] = 0
                stays = False
                team = False
                origin = pc
                pc = (pc + 4) & WORD
                continue
            if not rare:
                if not ends and (pc >= l1_end or pc & 3):
                    continue
                break
            word = np.int64(t.l1_u32[pc >> 2])
            hidden = n in (BREAKPOINT, TRANSLATED)
            if n == BREAKPOINT:
                if t.core_skip_breakpoint[core] == 0:
                    status = STOPPED
                    break
                fields = fields_of(word)
                n = fields & 0xFF
            if n == TRANSLATED:
                entry = fields >> 32
                fields = np.int64(code.entry[entry, FIELDS])
                n = fields & 0xFF
                if translates and not stays and goal - now >= code.entry[entry, COUNT] and loops < loops_limit:
                    native = native_table(cache)
                    # Cores that may run ahead at their accesses to L1 take long turns.
                    if others and not team and horizon < goal and ahead == 0:
                        team = begin_team(t, code, core, goal)
                    set_team(code, core, entry, team)
                    slack = goal - in_time_until
                    result = enter(t, code, native, core, entry, word, goal - now, slack, loops_limit - loops)
                    if result != FAILED:
                        if team and load_i64(code.memory, PREVIOUS) != NO_CORE:  # the record has what cores did
                            core = load_i64(code.memory, CURRENT) & _CORE_BITS
                            joins = result == JOIN and can_join(t, core)
                            if result >= JOIN and not joins:
                                core = load_i64(code.memory, PREVIOUS) & _CORE_BITS
                            ram_size = LOCAL_RAM_SIZE[core]
                            start = np.int64(t.core_round[core])
                            now = start
                            pc = np.int64(t.core_pc[core])
                            loops = np.int64(t.core_loops[core])
                            loops_limit = np.int64(t.core_loops_limit[core])
                            horizon = goal - load_i64(code.memory, SLACK)
                            t.round_horizon = horizon
                            if result >= JOIN:
                                origin = pc
                                if not joins:
                                    break
                                if counts:
                                    _arrive(t, code, cache, core, pc)
                                continue
                        left = load_i64(code.memory, LEFT)
                        stays = result & STAY != 0 or left == goal - now
                        if left != goal - now:
                            t.core_skip_breakpoint[core] = 0
                        now = goal - left
                        loops = loops_limit - load_i64(code.memory, LOOPS_LEFT)
                        origin = pc
                        pc = result & WORD
                        if loops >= loops_limit:
                            status = LOOPS
                            break
                        if result & AT_HORIZON:
                            break
                        if counts and not stays:
                            _arrive(t, code, cache, core, pc)
                        continue
            if n < _SIMPLE_END or (hidden and (n == TTINSN or n in _FENCES)):
                given = fields
                continue
            if now <= horizon:
                status = hand_over(t, core, PUSH, 0, 4, pushed_word(word), NOWHERE, 0) if n == TTINSN else SLOW
            break
        if counting:
            ended(t, log, core, first, pc, now)
        t.core_x[core, NOWHERE] = 0  # what was last written there depends on what has been translated
        t.core_pc[core] = np.uint32(pc)
        t.core_round[core] = now
        t.core_retired[core] += now - start
        t.core_loops[core] = loops
        t.turn_core = core
        return status

    return run_core


run_core = make_run_core(False, ignore_begun, ignore_executed, ignore_ended)


def run_core_entry(t: TileRecord, core: Int, cache: Int) -> AnyInt:
    """`run_core` for `compile_entry`."""
    return run_core(t, core, cache, False, NO_LOG)
