"""REG2FLOP: a GPR to an address counter, or to THCON configuration words (I.11)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import FIRST_SHARED_WORD, config
from bhemu.machine.config_access import config_bank
from bhemu.machine.counters import CARRY
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.adc import CHANNEL_STEP, UNITS, X_MASK, Y_MASK, ZW_MASK
from bhemu.tensix.config import write_config
from bhemu.tensix.instruction import OPEN, Mode, instruction
from bhemu.tensix.scalar.halves import HALF_BITS, QUAD_REGISTER

THCON_FIRST: Final = config("THCON_SEC0_REG0_TileDescriptor")[0]
"""Config word that FlopIndex 0 names."""
_OTHER_THREAD: Final = 3
_COUNTERS: Final = 2
_QUAD: Final = 0
_WORD: Final = 1
_HALF: Final = 2

NOT_ON_BLACKHOLE: Final = fault(
    "scalar.reg2flop",
    MissingSpecification,
    "Blackhole's page of configuration no longer lists REG2FLOP, and software for Blackhole uses it",
    remedy="use WRCFG for configuration words and SETADC for address counters, or allow open choices to have what "
    "Wormhole does",
    rule="003.3h",
)
NO_TARGET: Final = fault(
    "scalar.reg2flop-target",
    UndefinedBehavior,
    "REG2FLOP with TargetSel {0} and FlopIndex {1} names no configuration word and no counter",
    remedy="TargetSel 0: FlopIndex 0 to 115 counts words from THCON_SEC0_REG0; 2, 3: counters",
    rule="003.3h",
)


@kernel
def _part(value: Int, size: Int, shift: Int) -> Int:
    """The part of a GPR that goes to a counter; combinations without a meaning give 0."""
    if size == _QUAD:
        return np.int64(0)
    if size == _WORD:
        return value if shift == 0 else np.int64(0)
    if size == _HALF:
        return (value >> (8 * shift)) & HALF_BITS if shift in (0, 2) else np.int64(0)
    return (value >> (8 * shift)) & 0xFF


@kernel
def _to_counter(t: TileRecord, thread: Int, unit: Int, counter: Int, value: Int) -> None:
    dimension = counter % CHANNEL_STEP
    mask = ZW_MASK
    if dimension == 0:
        mask = X_MASK
    elif dimension == 1:
        mask = Y_MASK
    t.adc[thread, unit, counter] = value & mask


@instruction(Mode("any", OPEN, rule="003.3h"))
def REG2FLOP(
    t: TileRecord,
    thread: Int,
    SizeSel: Int,
    TargetSel: Int,
    ByteOffset: Int,
    ContextId_2: Int,
    FlopIndex: Int,
    RegIndex: Int,
) -> Int:
    if not open_choice(t, NOT_ON_BLACKHOLE):
        return REFUSED
    if TargetSel >= _COUNTERS:
        owner = ContextId_2 if TargetSel == _OTHER_THREAD else thread
        unit = (FlopIndex >> 3) & 3
        if owner < THREADS and unit < UNITS:
            counter = CHANNEL_STEP * (FlopIndex >> 5 & 1) + (FlopIndex & 3) + CARRY * (FlopIndex >> 2 & 1)
            _to_counter(t, owner, unit, counter, _part(np.int64(t.gpr[thread, RegIndex]), SizeSel, ByteOffset))
        return DONE
    word = THCON_FIRST + FlopIndex
    if TargetSel != 0 or word >= FIRST_SHARED_WORD:
        return refuse(t, NO_TARGET, TargetSel, FlopIndex)
    bank = config_bank(t, thread)
    if SizeSel != _QUAD:
        write_config(t, bank, word, np.int64(t.gpr[thread, RegIndex]))
        return DONE
    for i in range(4):
        write_config(
            t, bank, THCON_FIRST + (FlopIndex & ~3) + i, np.int64(t.gpr[thread, (RegIndex & QUAD_REGISTER) + i])
        )
    return DONE
