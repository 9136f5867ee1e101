"""Configuration unit: everything that writes Config and ThreadConfig (I.10, I.11).

Every path, a core's store through the memory map included, writes Config through `write_config`, so that shared words,
words that act when written and the units' decoded copies are handled in one place.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.registers import (
    CONFIG_WORDS,
    FIRST_SHARED_WORD,
    THREAD_WORDS,
    WRITABLE_MASK,
    config,
)
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import UNITS_OF_ENTRY, UNITS_OF_WORD, config_bank, config_field
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import ALL_CONFIG_DIRTY
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction
from bhemu.tensix.overlay import load_stream_register
from bhemu.tensix.prng import seed_prng

WORD_BITS: Final = 0xFFFFFFFF

STATE_RESET_WORD: Final = config("STATE_RESET_EN")[0]
SEED_WORD: Final = config("PRNG_SEED_Seed_Val")[0]
_SCRATCH_WORD: Final = config("SCRATCH_SEC0_val")[0]
_OWN_SCRATCH: Final = 3
"""Scratch selector of CFGSHIFTMASK that takes the word of the own thread (I.11)."""

_RESET_COUNTER_0: Final = thread_register("UNPACK_MISC_CFG_CfgContextCntReset_0")
_RESET_COUNTER_1: Final = thread_register("UNPACK_MISC_CFG_CfgContextCntReset_1")
_ADVANCE_COUNTER_0: Final = thread_register("UNPACK_MISC_CFG_CfgContextCntInc_0")
_ADVANCE_COUNTER_1: Final = thread_register("UNPACK_MISC_CFG_CfgContextCntInc_1")
_CONTEXT_COUNT: Final = (config("THCON_SEC0_REG2_Context_count"), config("THCON_SEC1_REG2_Context_count"))
_COUNT_NON_LOG2: Final = (
    config("THCON_SEC0_REG2_Context_count_non_log2"),
    config("THCON_SEC1_REG2_Context_count_non_log2"),
)
_NON_LOG2_EN: Final = (
    config("THCON_SEC0_REG2_Context_count_non_log2_en"),
    config("THCON_SEC1_REG2_Context_count_non_log2_en"),
)
_COUNTER_MASK: Final = 7
_FP16A_FORCE: Final = thread_register("FP16A_FORCE_Enable")
_STREAM_ID: Final = thread_register("STREAM_ID_SYNC_SEC0_BankSel")
"""Stream of selector 0; selectors 1 to 3 have the next entries."""

NO_WORD = fault(
    "config.no-word",
    UndefinedBehavior,
    "Config has no word {0}",
    remedy="Config words are 0 to 223",
    rule="I.10",
)
NO_ENTRY = fault(
    "config.no-entry",
    UndefinedBehavior,
    "ThreadConfig has no entry {0}",
    remedy="ThreadConfig entries are 0 to 67",
    rule="I.10",
)
FP16A_FORCED = fault(
    "config.fp16a-force",
    MissingSpecification,
    "FP16A_FORCE is set to {0}: the documents describe it, the reference says that Blackhole does not have it",
    remedy="leave FP16A_FORCE at 0, or allow open choices to have it stored without effect",
    rule="math F1",
)


@kernel
def _home(bank: Int, word: Int) -> Int:
    """The bank that stores a word: what both banks share is kept in bank 0."""
    return 0 if word >= FIRST_SHARED_WORD else bank


@kernel
def read_config(t: TileRecord, bank: Int, word: Int) -> Int:
    """Value of a Config word, 0 <= word < 224; words that act when written read as 0."""
    return np.int64(t.config[_home(bank, word), word])


@kernel
def _mark_both(t: TileRecord, units: Int) -> None:
    """Tell units that what they keep decoded of either bank is stale."""
    t.config_dirty[0] = np.uint32(np.int64(t.config_dirty[0]) | units)
    t.config_dirty[1] = np.uint32(np.int64(t.config_dirty[1]) | units)


@kernel
def _mark(t: TileRecord, bank: Int, word: Int, units: Int) -> None:
    """Tell units that their decoded copies of words are stale; `word` says whether both banks are meant."""
    if word >= FIRST_SHARED_WORD:
        _mark_both(t, units)
    else:
        t.config_dirty[bank] = np.uint32(np.int64(t.config_dirty[bank]) | units)


@kernel
def _put(t: TileRecord, bank: Int, word: Int, value: Int) -> Int:
    """Store a word and act on it, STATE_RESET_EN excepted; returns the units to mark."""
    if word == SEED_WORD:
        seed_prng(t, value)
        return 0
    t.config[_home(bank, word), word] = np.uint32(value & np.int64(WRITABLE_MASK[word]))
    return np.int64(UNITS_OF_WORD[word])


@kernel
def _put_or_reset(t: TileRecord, bank: Int, word: Int, value: Int) -> Int:
    """The same for the writers that STATE_RESET_EN obeys."""
    if word == STATE_RESET_WORD:
        for i in range(FIRST_SHARED_WORD):
            t.config[bank, i] = np.uint32(0)
        return ALL_CONFIG_DIRTY
    return _put(t, bank, word, value)


@kernel
def store_config(t: TileRecord, bank: Int, word: Int, value: Int) -> None:
    """Write a Config word without the reset that a write of STATE_RESET_EN means, as RMWCIB does.

    Bits outside the word's fields are not kept. A write of PRNG_SEED seeds the generators and keeps nothing. Words from
    180 on are one for both banks. Instruction caches (RISCV_IC_INVALIDATE) belong to the cores: nothing is kept here.
    """
    _mark(t, bank, word, _put(t, bank, word, value))


@kernel
def write_config(t: TileRecord, bank: Int, word: Int, value: Int) -> None:
    """Write a Config word: WRCFG, CFGSHIFTMASK, STREAMWRCFG, and stores of the cores (I.10).

    Writing STATE_RESET_EN, whatever the value, zeroes the bank's words below 180; for the rest see `store_config`.

    Args:
        bank: 0 or 1.
        word: 0 to 223; the caller checks.
        value: 0 to 2**32 - 1.
    """
    _mark(t, bank, word, _put_or_reset(t, bank, word, value))


@instruction(
    Mode("32 bits", VERIFIED, vectors="scalar:wrcfg32", rule="I.11"),
    Mode("128 bits", VERIFIED, vectors="scalar:wrcfg128", rule="I.11"),
    Mode("128 bits, unaligned indices (low two bits dropped)", DOCUMENTED, rule="003.4.1b"),
    Mode("STATE_RESET_EN", DOCUMENTED, rule="I.10"),
)
def WRCFG(t: TileRecord, thread: Int, GprAddress: Int, wr128b: Int, CfgReg: Int) -> Int:
    if CfgReg >= CONFIG_WORDS:
        return refuse(t, NO_WORD, CfgReg)
    bank = config_bank(t, thread)
    if not wr128b:
        write_config(t, bank, CfgReg, np.int64(t.gpr[thread, GprAddress]))
        return DONE
    gpr, word = GprAddress & ~3, CfgReg & ~3
    units: Int = 0
    for i in range(4):
        units |= _put_or_reset(t, bank, word + i, np.int64(t.gpr[thread, gpr + i]))
    _mark(t, bank, word, units)  # four aligned words are all shared or all banked
    return DONE


@instruction(Mode("32 bits", VERIFIED, vectors="scalar:rdcfg", rule="I.11"))
def RDCFG(t: TileRecord, thread: Int, GprAddress: Int, CfgReg: Int) -> Int:
    if CfgReg >= CONFIG_WORDS:
        return refuse(t, NO_WORD, CfgReg)
    t.gpr[thread, GprAddress] = np.uint32(read_config(t, config_bank(t, thread), CfgReg))
    return DONE


@kernel
def _command_counter(
    t: TileRecord, thread: Int, unpacker: Int, value: Int, reset: tuple[Int, Int, Int], advance: tuple[Int, Int, Int]
) -> None:
    """Reset a context counter, then advance it once, as an UNPACR's CfgContextCntInc would (U11).

    The vendor's register description calls the increment a command; that it does not repeat with every UNPACR while the
    bit is set (III.17) is its plain reading.
    """
    if (value >> reset[1]) & reset[2]:
        t.unpack.context_counter[thread, unpacker] = 0
    if (value >> advance[1]) & advance[2]:
        bank = config_bank(t, thread)
        count = 1 << config_field(t, bank, _CONTEXT_COUNT[unpacker])
        if config_field(t, bank, _NON_LOG2_EN[unpacker]):
            count = config_field(t, bank, _COUNT_NON_LOG2[unpacker])
        following = (np.int64(t.unpack.context_counter[thread, unpacker]) + 1) & _COUNTER_MASK
        t.unpack.context_counter[thread, unpacker] = 0 if following >= count else following


@instruction(
    Mode("16 bits", VERIFIED, vectors="scalar:setc16", rule="I.11"),
    Mode("context counter resets", DOCUMENTED, rule="I.10"),
    Mode("context counter increments", DOCUMENTED, rule="001.9.3a"),
    Mode("FP16A_FORCE", OPEN, rule="math F1"),
)
def SETC16(t: TileRecord, thread: Int, setc16_reg: Int, setc16_value: Int) -> Int:
    if setc16_reg >= THREAD_WORDS:
        return refuse(t, NO_ENTRY, setc16_reg)
    if setc16_reg == _FP16A_FORCE[0] and setc16_value != 0 and not open_choice(t, FP16A_FORCED, setc16_value):
        return REFUSED
    t.thread_config[thread, setc16_reg] = np.uint16(setc16_value)
    units = np.int64(UNITS_OF_ENTRY[setc16_reg])
    if units:
        _mark_both(t, units)
    if setc16_reg == _RESET_COUNTER_0[0]:
        _command_counter(t, thread, 0, setc16_value, _RESET_COUNTER_0, _ADVANCE_COUNTER_0)
        _command_counter(t, thread, 1, setc16_value, _RESET_COUNTER_1, _ADVANCE_COUNTER_1)
    return DONE


@kernel
def _modify_byte(t: TileRecord, thread: Int, byte: Int, mask: Int, data: Int, word: Int) -> Int:
    """RMWCIB: replace the bits under `mask` in one byte of a Config word; bytes count from the lowest."""
    if word >= CONFIG_WORDS:
        return refuse(t, NO_WORD, word)
    bank = config_bank(t, thread)
    keep = ~(mask << (8 * byte))
    store_config(t, bank, word, (read_config(t, bank, word) & keep) | ((data & mask) << (8 * byte)))
    return DONE


@instruction(Mode("byte 0", VERIFIED, vectors="scalar:rmwcib0", rule="I.11"))
def RMWCIB0(t: TileRecord, thread: Int, Mask: Int, Data: Int, CfgRegAddr: Int) -> Int:
    return _modify_byte(t, thread, 0, Mask, Data, CfgRegAddr)


@instruction(Mode("byte 1", VERIFIED, vectors="scalar:rmwcib1", rule="I.11"))
def RMWCIB1(t: TileRecord, thread: Int, Mask: Int, Data: Int, CfgRegAddr: Int) -> Int:
    return _modify_byte(t, thread, 1, Mask, Data, CfgRegAddr)


@instruction(Mode("byte 2", VERIFIED, vectors="scalar:rmwcib2", rule="I.11"))
def RMWCIB2(t: TileRecord, thread: Int, Mask: Int, Data: Int, CfgRegAddr: Int) -> Int:
    return _modify_byte(t, thread, 2, Mask, Data, CfgRegAddr)


@instruction(Mode("byte 3", VERIFIED, vectors="scalar:rmwcib3", rule="I.11"))
def RMWCIB3(t: TileRecord, thread: Int, Mask: Int, Data: Int, CfgRegAddr: Int) -> Int:
    return _modify_byte(t, thread, 3, Mask, Data, CfgRegAddr)


@kernel
def rotate_right(value: Int, amount: Int) -> Int:
    """A 32-bit value rotated right by 0 to 31 bits."""
    return ((value >> amount) | (value << (32 - amount))) & WORD_BITS


# Operations of CFGSHIFTMASK (I.11)
_OR: Final = 0
_AND: Final = 1
_XOR: Final = 2
_ADD: Final = 3
_OR_NOT: Final = 4
_AND_NOT: Final = 5
_XOR_NOT: Final = 6


@instruction(
    Mode("add of a whole scratch word", VERIFIED, vectors="scalar:cfgshiftmask", rule="I.11"),
    Mode("other operations, mask and rotation", DOCUMENTED, rule="I.11"),
)
def CFGSHIFTMASK(
    t: TileRecord,
    thread: Int,
    disable_mask_on_old_val: Int,
    operation: Int,
    mask_width: Int,
    right_cshift_amt: Int,
    scratch_sel: Int,
    CfgReg: Int,
) -> Int:
    if CfgReg >= CONFIG_WORDS:
        return refuse(t, NO_WORD, CfgReg)
    bank = config_bank(t, thread)
    section = thread if scratch_sel == _OWN_SCRATCH else scratch_sel
    mask = (2 << mask_width) - 1
    operand = rotate_right(read_config(t, bank, _SCRATCH_WORD + section) & mask, right_cshift_amt)
    value = read_config(t, bank, CfgReg)
    if not disable_mask_on_old_val:
        value &= ~rotate_right(mask, right_cshift_amt)
    if operation == _OR:
        value |= operand
    elif operation == _AND:
        value &= operand
    elif operation == _XOR:
        value ^= operand
    elif operation == _ADD:
        value += operand
    elif operation == _OR_NOT:
        value |= ~operand
    elif operation == _AND_NOT:
        value &= ~operand
    elif operation == _XOR_NOT:
        value ^= ~operand
    else:
        value -= operand
    write_config(t, bank, CfgReg, value & WORD_BITS)
    return DONE


@instruction(Mode("overlay register", DOCUMENTED, rule="I.11"))
def STREAMWRCFG(t: TileRecord, thread: Int, stream_id_sel: Int, StreamRegAddr: Int, CfgReg: Int) -> Int:
    if CfgReg >= CONFIG_WORDS:
        return refuse(t, NO_WORD, CfgReg)
    stream = np.int64(t.thread_config[thread, _STREAM_ID[0] + stream_id_sel]) & _STREAM_ID[2]
    status, value = load_stream_register(t, stream, StreamRegAddr)
    if status == DONE:
        write_config(t, config_bank(t, thread), CfgReg, value)
    return status
