"""Timing instructions and whole kernels in process, warm, through the full dispatch: FIFO, expanders, wait gate,
handler.

An instruction is executed many times over in a state that lets it run; a kernel is the script of one 32x32x32 tile
for all three
threads. The figure is the median over several rounds; low and high are the fastest and the slowest round.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.bench import chip as chips
from bhemu.bench import cores as cores
from bhemu.bench import kernels as kernels
from bhemu.checks import checked
from bhemu.errors import BhemuError, ProgramError
from bhemu.isa.instructions import encode
from bhemu.machine.codegen import JIT

ROUNDS: Final = 15
ROUND_SECONDS: Final = 0.02
_INSTRUCTIONS: Final = {"core": 1, "chip.140x5": 700_000, "library.core.clock1000": 1000, "library.core.clock1": 1}
"""RISC-V instructions that one unit of a figure counts, by the beginning of its name."""


@dataclass(frozen=True)
class Measurement:
    """One figure.

    Attributes:
        name: stable name, `INSTRUCTION.variant` or `kernel.what.how`.
        median_ns: nanoseconds for one instruction, for one pass of the kernel, or for a thousand clocks.
        low_ns, high_ns: the fastest and slowest round.
        note: why there is no figure (then NaN); million instructions per second of RISC-V cores; else empty.
    """

    name: str
    median_ns: float
    low_ns: float
    high_ns: float
    note: str = ""


@dataclass(frozen=True)
class _Single:
    """An instruction that is executed again and again in a prepared state."""

    thread: int
    word: int
    prepare: Callable[[Tile], None]


def _instructions() -> dict[str, _Single]:
    source, math = kernels.prepare_unpack, kernels.prepare_math
    pack = kernels.prepare_pack
    table = {
        "SETDMAREG": _Single(0, encode("SETDMAREG", value=0x1234, RegIndex16b=6), kernels.nothing),
        "ADDDMAREG": _Single(0, encode("ADDDMAREG", 0, 12, 13, 14), kernels.nothing),
        "WRCFG.32": _Single(0, encode("WRCFG", GprAddress=8, CfgReg=76), kernels.nothing),
        "RDCFG": _Single(0, encode("RDCFG", GprAddress=8, CfgReg=76), kernels.nothing),
        "RMWCIB0": _Single(0, encode("RMWCIB0", Mask=0xFF, Data=1, CfgRegAddr=76), kernels.nothing),
        "SETC16": _Single(0, encode("SETC16", setc16_reg=41, setc16_value=0), kernels.nothing),
        "SETADCXX": _Single(0, encode("SETADCXX", CntSetMask=1, x_end2=255, x_start=0), kernels.nothing),
        "INCRWC": _Single(1, encode("INCRWC", rwc_d=2), kernels.nothing),
        "SEMINIT": _Single(1, encode("SEMINIT", max_value=2, init_value=0, sem_sel=2), kernels.nothing),
        "UNPACR.bf16.face": _Single(0, kernels.UNPACR_FACE, source("bf16")),
        "UNPACR.bf16.tile": _Single(0, kernels.UNPACR_FACE, source("bf16", datums=1024)),
        "UNPACR.tf32.face": _Single(0, kernels.UNPACR_FACE, source("fp32", "tf32")),
        "UNPACR.bfp8.face": _Single(0, kernels.UNPACR_FACE, source("bfp8")),
        "MVMUL.bf16": _Single(1, encode("MVMUL"), math("bf16")),
        "MVMUL.bf16.fp32dst": _Single(1, encode("MVMUL"), math("bf16", fp32=True)),
        "ELWADD.bf16": _Single(1, encode("ELWADD"), math("bf16")),
        "ELWMUL.bf16": _Single(1, encode("ELWMUL"), math("bf16")),
        "GAPOOL.bf16": _Single(1, encode("GAPOOL", instr_mod19=1), math("bf16")),
        "MOVA2D.8rows": _Single(1, encode("MOVA2D", instr_mod=2), math("bf16")),
        "ZEROACC.16rows": _Single(1, encode("ZEROACC", clear_mode=1), math("bf16")),
        "SFPLOAD": _Single(1, encode("SFPLOAD", lreg_ind=0, instr_mod0=0), math("bf16")),
        "SFPSTORE": _Single(1, encode("SFPSTORE", lreg_ind=0, instr_mod0=0), math("bf16")),
        "SFPMAD": _Single(1, encode("SFPMAD", 1, 2, 3, 4, 0), math("bf16")),
        "SFPIADD": _Single(1, encode("SFPIADD", lreg_c=1, lreg_dest=2, instr_mod1=4), math("bf16")),
        "PACR.bf16.4rows": _Single(2, kernels.PACR_LAST, pack("bf16", "bf16")),
        "PACR.bfp8.4rows": _Single(2, kernels.PACR_LAST, pack("bf16", "bfp8")),
    }
    return table


def _kernels() -> dict[str, tuple[int, bool]]:
    return {
        "kernel.matmul.lofi.32x32x32": (1, False),
        "kernel.matmul.hifi4.32x32x32": (4, False),
        "kernel.matmul.hifi4.32x32x32.fp32dst": (4, True),
    }


def names() -> list[str]:
    """Names of all figures."""
    return [*_instructions(), *_kernels(), *cores.FIGURES, *chips.FIGURES]


@checked
def run(only: Sequence[str] = (), *, progress: Callable[[str], Any] | None = None) -> list[Measurement]:
    """Take the figures.

    Args:
        only: names, or beginnings of names; none means all.
        progress: called with each name before it is measured.

    Raises:
        ProgramError: a name fits nothing.
    """
    chosen = [name for name in names() if not only or any(name.startswith(part) for part in only)]
    for part in only:
        if not any(name.startswith(part) for name in chosen):
            raise ProgramError(f"bench has no figure {part!r}", remedy=f"it has: {', '.join(names())}")
    if JIT:
        if progress is not None:
            progress("warming up")
        # Code runs up to 40 % slower in the very process that compiled it, so another one fills the cache.
        subprocess.run([sys.executable, "-m", "bhemu.bench.run", *chosen], check=False)
    results = []
    for name in chosen:
        if progress is not None:
            progress(name)
        try:
            results.append(_measure(name, *_prepare(name)))
        except BhemuError as error:
            nothing = float("nan")
            results.append(Measurement(name, nothing, nothing, nothing, f"{error.category}: {error.message}"))
    return results


def _prepare(name: str) -> tuple[Callable[[int], None], Callable[[], None]]:
    """(execute a number of times, raise AssertionError when the results are wrong) for a figure."""
    if name in cores.FIGURES:
        return cores.figure(*cores.FIGURES[name])
    if name in chips.FIGURES:
        return chips.FIGURES[name]()
    single = _instructions().get(name)
    return _single(single) if single is not None else _script(*_kernels()[name])


def _single(case: _Single) -> tuple[Callable[[int], None], Callable[[], None]]:
    tile = Tile()
    case.prepare(tile)

    def execute(count: int) -> None:
        tile.coprocessor.repeat(case.thread, case.word, count)

    def check() -> None:
        executed = int(tile.record.issued[case.thread, case.word >> 24])
        if not executed:
            raise AssertionError("nothing was executed")

    return execute, check


def _script(phases: int, fp32: bool) -> tuple[Callable[[int], None], Callable[[], None]]:
    tile = Tile()
    words = kernels.prepare_matmul(tile, phases, fp32)
    script = kernels.SCRIPT_ADDRESS // 4
    flat = np.array([len(words), *(part for pair in words for part in pair)], np.uint32)
    tile.record.l1_u32[script : script + len(flat)] = flat

    def execute(count: int) -> None:
        tile.coprocessor.play(script, count)

    def check() -> None:
        kernels.check_matmul(tile)

    return execute, check


def _measure(name: str, execute: Callable[[int], None], check: Callable[[], None]) -> Measurement:
    execute(2)  # compiles
    count = 1
    while True:
        start = time.perf_counter()
        execute(count)
        spent = time.perf_counter() - start
        if spent > ROUND_SECONDS / 4:
            break
        count *= 4
    count = max(1, int(count * ROUND_SECONDS / spent))
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        execute(count)
        rounds.append((time.perf_counter() - start) / count * 1e9)
    check()
    median = statistics.median(rounds)
    instructions = next((n for start, n in _INSTRUCTIONS.items() if name.startswith(start)), 0)
    note = f"{1000 * instructions / median:.0f} MIPS" if instructions else ""
    return Measurement(name, median, min(rounds), max(rounds), note)


def _warm(chosen: Sequence[str]) -> None:
    """Execute each figure's instructions a few times, which compiles what the cache does not hold."""
    for name in chosen:
        try:
            execute, _check = _prepare(name)
            execute(2)
        except BhemuError:
            continue  # the measuring process reports it


if __name__ == "__main__":
    _warm(sys.argv[1:])
