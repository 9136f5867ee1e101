"""Programs for the measured series of `core_microbench_blackhole.csv`, by the name of the probe.

A program reads the wall clock, executes `n` blocks of a probe's instructions in a loop, and reads it again; it does so
for each point of the series, one after the other, on one, two or three T cores at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bhemu.isa.assembler import to_ttinsn
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.isa.riscv_words import EBREAK, riscv_word, set_register
from bhemu.isa.tile_registers import address_of

ZERO, SP, T0, T1, T2, S0, S1, A0, A1, A2, A3 = 0, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13
BEGUN, SPENT = 30, 31
"""The clock when a point began; cycles that it took."""

QUEUE_BLOCK: Final = 16
"""Words in one turn of the loop of a series about the queue of words; fewer lie one after the other without a loop."""


def addi(rd: int, rs: int, value: int) -> int:
    """rd = rs + value"""
    return riscv_word("addi", rd, rs, imm=value)


def lw(rd: int, rs: int, offset: int) -> int:
    """rd = the word at rs + offset"""
    return riscv_word("lw", rd, rs, imm=offset)


def sw(rs2: int, rs1: int, offset: int) -> int:
    """Store a word."""
    return riscv_word("sw", rs1=rs1, rs2=rs2, imm=offset)


_CLOCK: Final = address_of("control", "WALL_CLOCK_0")
_DONE: Final = address_of("sync", "COPROCESSOR_DONE")
"""A load of it waits until the thread has done what was pushed."""

_STACK: Final = LOCAL_RAM_BASE + 0x100

_XOR: Final = riscv_word("xor", A0, A1, A2)
_COUNTER: Final = (S1, S1, -1)


@dataclass(frozen=True)
class Probe:
    """What one series measures.

    Attributes:
        block: instructions of one block.
        before: executed once, before the clock is read.
        sync: the clock is read again only when the coprocessor has done what was pushed.
        queue: the points are counts of words, not of blocks.
        ring: L1 holds a ring of pointers that fills 1 KiB.
        banks: the source banks hold data for the matrix unit.
        solo: thread 1 alone, whatever the series' number of threads.
    """

    block: list[int]
    before: list[int] = field(default_factory=list)
    sync: bool = False
    queue: bool = False
    ring: bool = False
    banks: bool = False
    solo: bool = False


def tensix(mnemonic: str) -> int:
    """`.ttinsn` with all operands zero, but that no vector instruction reads what another one has written."""
    names = {one.name for one in INSTRUCTIONS[mnemonic].fields}
    return to_ttinsn(encode(mnemonic, **({"lreg_dest": 7} if "lreg_dest" in names else {})))


def _mnemonic(name: str) -> str | None:
    return name.upper() if name.upper() in INSTRUCTIONS else None


def _core(name: str, unroll: int, scratch: int) -> Probe | None:
    """Series r: instructions of the core."""
    what = name.removeprefix("rv_")
    dependent = "indep" not in what
    if what.startswith("addi"):
        return Probe([addi(A0 if dependent else 10 + i % 6, A0 if dependent else 0, 1) for i in range(unroll)])
    if what.startswith("mul"):
        words = [riscv_word("mul", A0 if dependent else 12 + i % 4, A0 if dependent else A1, A1) for i in range(unroll)]
        return Probe(words)
    if what.startswith("div"):
        short = any(part in what for part in ("small", "short", "fast", "fff", "4095"))
        before = [*set_register(A1, 0xFFF if short else 0x12345678), addi(A2, ZERO, 3)]
        return Probe([riscv_word("div", A0, A1, A2)] * unroll, before)
    if what == "load_chase":
        return Probe([lw(A0, A0, 0)] * unroll, set_register(A0, scratch), ring=True)
    local = any(part in what for part in ("stack", "local"))
    before = set_register(A3, _STACK if local else scratch)
    if what.startswith("load") and local and dependent:
        return Probe([lw(A0, A0, 0)] * unroll, [*set_register(A0, _STACK), sw(A0, A0, 0)])  # a pointer to itself
    if what.startswith("load"):
        return Probe([lw(14 + i % 8, A3, 4 * i % 1024) for i in range(unroll)], before)
    if what.startswith("store"):
        step, bytes_ = (4, 16) if local or "coalesce" in what else (16, 1024)
        return Probe([sw(A0, A3, step * i % bytes_) for i in range(unroll)], before)
    return None


def _branches(name: str, unroll: int) -> Probe | None:
    """Series c: branches, each to the next instruction."""
    what = name.removeprefix("c_")
    if what.startswith("ctrl"):
        return Probe([_XOR] * unroll)
    if what == "jal":
        return Probe([riscv_word("jal", imm=4)] * unroll)
    never, always = riscv_word("bne", rs1=ZERO, imm=4), riscv_word("beq", rs1=ZERO, imm=4)
    kinds = {"nt": [never], "t": [always], "alt": [always, never]}
    with_xor, kind = what.startswith("xor_"), what.removeprefix("xor_")
    if kind == "jal":
        return Probe([_XOR, riscv_word("jal", imm=4)] * unroll)
    if kind not in kinds:
        return None
    chosen = [kinds[kind][i % len(kinds[kind])] for i in range(unroll)]
    return Probe([word for one in chosen for word in ([_XOR, one] if with_xor else [one])])


def _pushes(name: str, unroll: int) -> Probe | None:
    """Series t: `.ttinsn` among other instructions."""
    what = name.removeprefix("tt_")
    nop, pad = tensix("NOP"), [_XOR] * 16
    if what == "pad":
        return Probe(pad * unroll)
    if match := re.fullmatch(r"fuse(\d)", what):
        return Probe((pad + [nop] * int(match[1])) * unroll)
    if match := re.fullmatch(r"spread(\d)", what):
        count = int(match[1])
        piece = [word for i in range(count) for word in [nop] + [_XOR] * (16 // count)]
        return Probe(piece * unroll)
    mnemonic = _mnemonic(what)
    return None if mnemonic is None else _words(mnemonic, unroll)


def _words(mnemonic: str, unroll: int) -> Probe:
    return Probe([tensix(mnemonic)] * unroll, banks=INSTRUCTIONS[mnemonic].unit == "matrix")


def _queue(name: str) -> Probe | None:
    """Series q and s: how many words the queue takes before the core waits."""
    phase, _, what = name.partition("_")
    sync = what.endswith("sync")
    if phase == "s":
        who, _, _ = what.partition("_")
        return Probe([tensix("ADDDMAREG")], sync=sync, queue=True, solo=who == "solo")
    what = what.removesuffix("_sync")
    if what == "ctrl":
        return Probe([], sync=sync, queue=True)
    if what.startswith("loop_addi"):
        return Probe([addi(A0, A1, 1)], sync=sync, queue=True)
    mnemonic = _mnemonic(what.removeprefix("loop_"))
    if mnemonic is None:
        return None
    return Probe([tensix(mnemonic)], sync=sync, queue=True, banks=INSTRUCTIONS[mnemonic].unit == "matrix")


def probe(phase: str, name: str, unroll: int, scratch: int) -> Probe | None:
    """The program of a series, or None when its name says nothing that is known here.

    Args:
        phase, name, unroll: columns of the file.
        scratch: address of 1 KiB of L1 of the core.
    """
    if name == "loop_overhead":
        return Probe([])
    if phase in ("f", "g"):
        return Probe([addi(A0, A1, 1)] * unroll)
    if phase == "r":
        return _core(name, unroll, scratch)
    if phase == "c":
        return _branches(name, unroll)
    if phase == "t":
        return _pushes(name, unroll)
    if phase in ("q", "s"):
        return _queue(name)
    if phase == "A" and (mnemonic := _mnemonic(name)):
        return _words(mnemonic, unroll)
    return None


def _loop(block: list[int], turns: int) -> list[int]:
    """Execute the block a number of times, at least once."""
    loop = [*block, addi(*_COUNTER)]
    return [*set_register(S1, turns), *loop, riscv_word("bne", rs1=S1, imm=-4 * len(loop))]


def _timed(count: int, one: Probe) -> list[int]:
    """Wait for the coprocessor, read the clock, push `count` words, read it again.

    Blocks of 16 words come first; what is left is a loop of single words.
    """
    wait = [lw(SPENT, S0, 0), riscv_word("and", SPENT, SPENT, SPENT)]
    blocks, rest = divmod(count, QUEUE_BLOCK)
    words = _loop(one.block * QUEUE_BLOCK, blocks) if blocks and one.block else []
    words += _loop(one.block, rest) if rest and one.block else []
    return [*wait, lw(BEGUN, T0, 0), *words, *(wait if one.sync else []), *_end()]


def _end() -> list[int]:
    """Store how long it took, and continue after it."""
    return [lw(SPENT, T0, 0), riscv_word("sub", SPENT, SPENT, BEGUN), sw(SPENT, T1, 0), addi(T1, T1, 4)]


def program(one: Probe, counts: Sequence[int], results: int) -> list[int]:
    """All points of a series, one after the other.

    Args:
        one: the probe.
        counts: of each point.
        results: address in L1 of a word for each point.
    """
    start = [*set_register(T0, _CLOCK), *set_register(T1, results), *set_register(S0, _DONE)]
    if one.queue:
        return [*start, *one.before, *(word for n in counts for word in _timed(n, one)), EBREAK]
    # One piece of code for all points, as in the measurement: the first finds the caches empty.
    table = results + 4 * len(counts)
    loop = [*one.block, addi(*_COUNTER)]
    back = -4 * len(loop)
    close = (
        [riscv_word("bne", rs1=S1, imm=back)]
        if back >= -4096
        else [riscv_word("beq", rs1=S1, imm=8), riscv_word("jal", imm=back - 4)]
    )
    body = [lw(S1, T2, 0), addi(T2, T2, 4), lw(BEGUN, T0, 0), *loop, *close, *_end(), addi(SP, SP, -1)]
    again = -4 * len(body)
    more = [riscv_word("beq", rs1=SP, imm=8), riscv_word("jal", imm=again - 4)]
    return [*start, *set_register(T2, table), addi(SP, ZERO, len(counts)), *one.before, *body, *more, EBREAK]
