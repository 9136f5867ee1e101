"""Counting finds what recording each instruction finds: counts, waits, polls, words of the coprocessor."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bhemu import Tile
from bhemu.counting.recorder import CounterRecorder
from bhemu.isa import assemble
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.codegen import JIT
from bhemu.recording import CoreRecorder, log
from bhemu.recording.core_log import CoreLog
from bhemu.recording.counted import counted_log
from bhemu.tensix.frontend.fetch import NOP_OPCODE
from tests.recording.core_runs import CLOCKS, WAITS, programs
from tests.riscv.rv_machine import START, put, release

FREE = [5, 6, 7, 10, 11, 12, 13]
"""Registers of random programs; 8 holds an address of L1 that cores share, 9 one of a device, 18 to 20 count."""


class Programs:
    """Random programs with loops, calls, accesses that wait, and words that other cores poll."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.labels = 0

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def reg(self) -> str:
        return f"x{FREE[self.number(0, len(FREE))]}"

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def body(self, core: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.number(2, 9)):
            what = self.number(0, 12)
            if what < 4:
                lines.append(f"{('add', 'xor', 'mul', 'sltu')[what]} {self.reg()}, {self.reg()}, {self.reg()}")
            elif what == 4:
                lines.append(f"lw {self.reg()}, {4 * self.number(0, 16)}(x8)")
            elif what == 5:
                lines.append(f"sw {self.reg()}, {4 * self.number(0, 16)}(x8)")
            elif what == 6:
                lines.append(f"lw {self.reg()}, 4(x9)" if core.startswith("T") else "fence")  # TTSync: may wait
            elif what == 7 and core.startswith("T"):
                word = assemble(("NOP", "SETDMAREG 7, 24", "SETRWC 0, 0, 0, 0, 0, 15")[self.number(0, 3)])
                lines += [f".ttinsn {word:#x}"] * self.number(1, 24)
            elif what == 8:
                skip = self.label()
                lines += [f"bltu {self.reg()}, {self.reg()}, {skip}", f"addi {self.reg()}, {self.reg()}, 3", f"{skip}:"]
            elif what == 9 and depth < 3:
                top, counter = self.label(), f"x{18 + depth}"
                lines += [f"li {counter}, {self.number(1, 60)}", f"{top}:", *self.body(core, depth + 1)]
                lines += [f"addi {counter}, {counter}, -1", f"bnez {counter}, {top}"]
            elif what == 10:
                lines.append("amoadd.w x5, x6, (x8)")
            else:
                lines.append("csrr x7, 0xf14" if self.number(0, 2) else "call sub")
        return lines

    def text(self, core: str, number: int, count: int) -> str:
        """Each core tells the next one when it is done, and polls until the one before is."""
        wait, done = self.label(), 0x20100
        poll = [
            "li x13, 0",
            f"li x12, {number}",
            f"li x11, {done}",
            f"{wait}:",
            "lw x13, 0(x11)",
            f"bltu x13, x12, {wait}",
        ]
        say = [f"li x12, {number + 1}", f"li x11, {done}", "sw x12, 0(x11)"]
        send = [line for t in (1, 2, 3) for line in (f"li x11, {0xFFEC0000 + 0x1000 * t:#x}", "sw x12, 0(x11)")]
        take = ["li x11, 0xffec0000", "lw x13, 0(x11)"]  # T cores wait for B's mailbox
        mail = send if core == "B" else take if core.startswith("T") else []
        start = ["start: li x8, 0x20000", "li x9, 0xffe80000"]
        first = [line for _ in range(3) for line in self.body(core, 0)]
        second = [line for _ in range(3) for line in self.body(core, 0)]
        return "\n".join([*start, *first, *mail, *poll, *second, *say, "ebreak", "sub: addi x5, x5, 1", "ret"])

    def texts(self) -> dict[str, str]:
        return {core: self.text(core, number, CORES) for number, core in enumerate(("B", "T0", "T1", "T2", "NC"))}


def run(
    texts: dict[str, str],
    recorder: CoreRecorder | CounterRecorder | None,
    clocks: list[int],
    order: int = 0,
    *,
    ahead: int = 0,
) -> Tile:
    tile = Tile()
    tile.record.simulator_order = order
    tile.record.run_ahead = ahead
    loaded = programs(texts)
    if recorder is not None:
        recorder.attach(tile)
    for core, executable in loaded.items():
        put(tile, START[core], executable.segments[0].content)
    release(tile, *(core for core in CORE_NAMES if core in texts))
    for count in clocks:
        tile.cores.advance(count)
    return tile


def words(found: CoreLog) -> dict[tuple[int, int], int]:
    """Words of the coprocessor by thread and opcode; without NOPs, some of which end in the expanders."""
    if found.issued is not None:
        return {(int(a), int(b)): int(found.issued[a, b]) for a, b in np.argwhere(found.issued) if b != NOP_OPCODE}
    rows = found.tensix.rows[found.tensix.rows[:, log.WORD] >> 24 != NOP_OPCODE]
    return dict(Counter(zip(rows[:, log.THREAD].tolist(), (rows[:, log.WORD] >> 24).tolist(), strict=True)))


def check(counted: CoreLog, full: CoreLog) -> None:
    assert np.array_equal(counted.counts[:, :3], full.counts[:, :3])
    assert counted.waits == full.waits
    assert counted.polls == full.polls
    for name in ("polled", "ran", "first", "last"):
        assert np.array_equal(getattr(counted, name), getattr(full, name)), name
    assert (counted.rounds, counted.clocks) == (full.rounds, full.clocks)
    assert words(counted) == words(full)


def both(texts: dict[str, str], clocks: list[int], order: int = 0) -> tuple[CoreLog, CoreLog]:
    counter, recorder = CounterRecorder(), CoreRecorder(instructions=False)
    tile, other = run(texts, counter, clocks, order), run(texts, recorder, clocks, order)
    plain = run(texts, None, clocks, order)
    assert [name for name in tile.record.dtype.names if not np.array_equal(tile.record[name], plain.record[name])] == []
    counted, full = counted_log(counter.cut()), recorder.cut()
    for name in ("core_x", "core_pc", "core_retired", "clock", "l1", "issued"):
        assert np.array_equal(tile.record[name], other.record[name]), name
    for core in range(CORES):
        assert counted.retired(core) == int(tile.record.core_retired[core])
    return counted, full


@pytest.mark.plain
def test_waits_and_polls_of_programs_that_wait_for_each_other() -> None:
    counted, full = both(WAITS, [CLOCKS])
    check(counted, full)
    assert counted.waits
    assert counted.polls


@pytest.mark.plain
def test_a_core_that_the_coprocessor_wakes() -> None:
    post = assemble("SEMPOST 2")
    wakes = f"li t0, 300\ncount: addi t0, t0, -1\nbnez t0, count\n.ttinsn {post:#x}\nend: j end"
    polls = "li a0, 0xffe80000\npoll: lw a1, 0x24(a0)\nbeqz a1, poll\n" + 40 * "addi a2, a2, 1\n" + "ebreak"
    check(*both({"T0": polls, "T1": wakes}, [900]))


@pytest.mark.plain
@pytest.mark.parametrize("order", [0, 1])
def test_a_random_program(order: int) -> None:
    check(*both(Programs(7).texts(), [1, 40, 200, 3, 100], order))


@pytest.mark.plain
@pytest.mark.parametrize("order", [0, 1])
def test_cores_that_run_ahead_are_counted(order: int) -> None:
    counter = CounterRecorder()
    tile = run(Programs(8).texts(), counter, [40, 200, 100], order, ahead=16)
    plain = run(Programs(8).texts(), None, [40, 200, 100], order, ahead=16)
    assert [name for name in tile.record.dtype.names if not np.array_equal(tile.record[name], plain.record[name])] == []
    counted = counted_log(counter.cut())
    assert [counted.retired(core) for core in range(CORES)] == tile.record.core_retired.tolist()
    assert counted.ran.sum() > 100


@pytest.mark.skipif(not JIT, reason="takes minutes as plain Python")
@pytest.mark.parametrize("order", [0, 1])
def test_random_programs(order: int) -> None:
    waited = polled = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        counted, full = both(Programs(seed).texts(), [int(n) for n in random.integers(1, 900, 8)], order)
        check(counted, full)
        waited += sum(counted.waits.values())
        polled += sum(counted.polls.values())
    assert waited > 1000
    assert polled > 1000
