"""The words that the expanders consume, should one reach the back end (math Y9).

MOP, MOP_CFG and REPLAY are executed by the expanders, before the gate (see fetch.py). Played out of the
replay buffer they are not expanded again, and no unit knows them.
"""

from __future__ import annotations

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, VERIFIED, Mode, instruction

NOT_EXPANDED = fault(
    "frontend.not-expanded",
    UndefinedBehavior,
    "the word reached the back end: words out of the replay buffer are not expanded again",
    remedy="keep MOP, MOP_CFG and REPLAY out of the replay buffer",
    rule="math Y9",
)


@instruction(
    Mode("template 0, masked loop", VERIFIED, vectors="frontend:mop0", rule="math Y7"),
    Mode("template 1, double loop", VERIFIED, vectors="frontend:mop1", rule="math Y8"),
    Mode("counts beyond 32 and 64, loop of 129 passes", DOCUMENTED, rule="math Y8"),
)
def MOP(t: TileRecord, thread: Int, word: Int) -> Int:
    return refuse(t, NOT_EXPANDED)


@instruction(Mode("upper mask half", VERIFIED, vectors="frontend:zmask_hi", rule="math Y5"), reserved=0xFF0000)
def MOP_CFG(t: TileRecord, thread: Int) -> Int:
    return refuse(t, NOT_EXPANDED)


@instruction(
    Mode("record", VERIFIED, vectors="frontend:load_only", rule="math Y9"),
    Mode("record and execute", VERIFIED, vectors="frontend:load_execute", rule="math Y9"),
    Mode("play", VERIFIED, vectors="frontend:replay", rule="math Y9"),
    reserved=0xC,
)
def REPLAY(t: TileRecord, thread: Int) -> Int:
    return refuse(t, NOT_EXPANDED)


@instruction(Mode("consumed without effect", DOCUMENTED, rule="math Y4"), reserved=0xFFFFFF)
def RESOURCEDECL(t: TileRecord, thread: Int) -> Int:
    """A hint for the ordering of RISC-V accesses, which happen in program order here."""
    return DONE
