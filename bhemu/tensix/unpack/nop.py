"""UNPACR_NOP: what happens in order with UNPACR but moves no datums (rule I.7)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import config
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import config_bank, config_field, thread_field
from bhemu.machine.faults import DONE, REFUSED, WAIT, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import splat16, store16
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.banks import UNPACKER
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction
from bhemu.tensix.overlay_phases import pop_messages
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.completion import hand_over

# Unpack_Pop
POP: Final = 0
CLEAR: Final = 1
NOTHING: Final = 2
POP_NAMED: Final = 3

# Src_ClrVal_Ctrl
CLEAR_TO_ZERO: Final = 0
CLEAR_TO_MINUS_INFINITY: Final = 1
CLEAR_TO_ONE: Final = 2
CLEAR_TO_REGISTER: Final = 3

SET_DVALID_ONLY: Final = 3
"""Clr_to1_fmt_Ctrl: no clear, just the hand-over."""

_CELL_BITS: Final = 0x7FFFF
_ONE_CELL: Final = (15, 127, (1 << 8) | 16)
"""The number one as FP16, BF16 / TF32 and INT8 cell (I.2)."""


def _bits(*names: str) -> int:
    """Opcode bits and those of the named operands."""
    operands = {operand.name: operand.mask for operand in INSTRUCTIONS["UNPACR_NOP"].fields}
    return 0xFF000000 | sum(operands[name] for name in ("Unpacker_Select", "Unpack_Pop", *names))


# Bits of the word that each form reads
_PLAIN_BITS: Final = _bits()
_CLEAR_BITS: Final = _bits("Set_Dvalid", "Clr_to1_fmt_Ctrl", "Stall_Clr_Cntrl", "Bank_Clr_Ctrl", "Src_ClrVal_Ctrl")
_POP_NAMED_BITS: Final = _bits("Stream_Id", "Msg_Clr_Cnt")

# The enhanced pop lays other fields over those operands (I.7): [2] 1, [3] accumulate, [14:4] count, [15] and [22]
# register address select, [21:16] stream.
_ENHANCED_BITS: Final = _bits("Stream_Id") | 0x40FFFC
_ENHANCED: Final = 1 << 2
_ACCUMULATE: Final = 1 << 3
_SUM_MASK: Final = 0x1FFFF

_OUT_FORMAT: Final = (config("THCON_SEC0_REG2_Out_data_format"), config("THCON_SEC1_REG2_Out_data_format"))
_CLEAR_VALUE: Final = (config("UNP0_NOP_REG_CLR_VAL_nop_reg_clr_val"), config("UNP1_NOP_REG_CLR_VAL_nop_reg_clr_val"))
_STREAM: Final = (
    thread_register("NOC_OVERLAY_MSG_CLEAR_StreamId_0"),
    thread_register("NOC_OVERLAY_MSG_CLEAR_StreamId_1"),
)
_MESSAGES: Final = (
    thread_register("NOC_OVERLAY_MSG_CLEAR_MsgNum_0"),
    thread_register("NOC_OVERLAY_MSG_CLEAR_MsgNum_1"),
)
_LETTER_A: Final = ord("A")


@kernel
def _clear_bank(t: TileRecord, unpacker: Int, bank: Int, cell: Int) -> None:
    cells = splat16(cell)
    for row in range(64):
        if unpacker == 0:
            store16(t.srca, bank * 64 + row, cells)
        else:
            store16(t.srcb, bank * 64 + row, cells)


@kernel
def _pop(t: TileRecord, stream: Int, count: Int) -> Any:
    """Take messages off a stream."""
    held = np.int64(t.stream_messages[stream])
    if count > held:
        return refuse(t, faults.STREAM_EMPTY, count, stream, held)
    return pop_messages(t, stream, count)


@kernel
def _pop_enhanced(t: TileRecord, unpacker: Int, word: Int) -> Any:
    """Up to 2047 messages; fields as SETREG had them (001.8.5)."""
    select = ((word >> 21) & 2) | ((word >> 15) & 1)
    if select:
        return refuse(t, faults.POP_REGISTER, select)
    stream = (word >> 16) & 0x3F
    count = (word >> 4) & 0x7FF
    if word & _ACCUMULATE == 0:
        return _pop(t, stream, count)
    if not open_choice(t, faults.POP_ACCUMULATE):
        return REFUSED
    if count == 0:
        t.unpack.accumulator[unpacker] = 0
        return DONE
    total = (np.int64(t.unpack.accumulator[unpacker]) + count) & _SUM_MASK
    status = _pop(t, stream, total)
    if status == DONE:
        t.unpack.accumulator[unpacker] = total
    return status


@kernel
def _clear(
    t: TileRecord, thread: Int, unpacker: Int, value: Int, both: Int, own_bank: Int, one_format: Int, set_dvalid: Int
) -> Any:
    bank = np.int64(t.unpack.bank[unpacker])
    only_set = one_format == SET_DVALID_ONLY
    if not only_set:
        # The matrix unit's bank ("data ready is 0") or the unpacker's own ("write ready is 1") (001.8.3b)
        awaited = bank if own_bank else np.int64(t.matrix.bank[unpacker])
        if t.src_owner[unpacker, awaited] != UNPACKER:
            return WAIT
        if one_format and value != CLEAR_TO_ONE:
            return refuse(t, faults.NOP_ONE_FORMAT, one_format)
    if (set_dvalid or only_set) and t.src_owner[unpacker, bank] != UNPACKER:
        return refuse(t, faults.ALREADY_VALID, _LETTER_A + unpacker, bank)
    config_state = config_bank(t, thread)
    cell: Int = np.int64(0)
    if not only_set:
        if value == CLEAR_TO_MINUS_INFINITY:
            cell = np.int64(_CELL_BITS)
        elif value == CLEAR_TO_ONE:
            cell = np.int64(_ONE_CELL[one_format])
        elif value == CLEAR_TO_REGISTER:
            if not open_choice(t, faults.CLEAR_REGISTER):
                return REFUSED
            cell = config_field(t, config_state, _CLEAR_VALUE[unpacker]) & _CELL_BITS
        _clear_bank(t, unpacker, bank, cell)
        if both:
            _clear_bank(t, unpacker, bank ^ 1, cell)
    if set_dvalid or only_set:
        hand_over(t, thread, unpacker, config_field(t, config_state, _OUT_FORMAT[unpacker]))
    return DONE


@instruction(
    Mode("clear SrcA to zero", VERIFIED, vectors="unpack:clrval0", rule="I.7"),
    Mode("clear SrcA to minus infinity", VERIFIED, vectors="unpack:clrval1", rule="I.7"),
    Mode("clear SrcB to zero", VERIFIED, vectors="unpack:nop_srcb", rule="I.7"),
    Mode("wait for the matrix unit's bank", VERIFIED, vectors="unpack:stall_ctrl0", rule="I.7"),
    Mode("wait for the unpacker's own bank", VERIFIED, vectors="unpack:stall_ctrl1", rule="I.7"),
    Mode("clear and hand over", VERIFIED, vectors="unpack:UNPACR_NOP", rule="I.7"),
    Mode("clear SrcB to minus infinity", DOCUMENTED, rule="001.8.3c"),
    Mode("clear to one", DOCUMENTED, rule="I.7"),
    Mode("clear both banks", DOCUMENTED, rule="I.7"),
    Mode("hand over only", DOCUMENTED, rule="001.8.2a"),
    Mode("no operation", DOCUMENTED, rule="I.7"),
    Mode("pop messages of the configured or a named stream", DOCUMENTED, rule="001.8.4"),
    Mode("pop up to 2047 messages", DOCUMENTED, rule="001.8.5"),
    Mode("clear to a register's value", OPEN, rule="I.7"),
    Mode("pop with accumulation (SETREG)", OPEN, rule="001.8.5"),
    reserved=0x408E00,  # address select and count bits of the enhanced pop; the other forms refuse them below
)
def UNPACR_NOP(
    t: TileRecord,
    thread: Int,
    Unpacker_Select: Int,
    Stream_Id: Int,
    Msg_Clr_Cnt: Int,
    Set_Dvalid: Int,
    Clr_to1_fmt_Ctrl: Int,
    Stall_Clr_Cntrl: Int,
    Bank_Clr_Ctrl: Int,
    Src_ClrVal_Ctrl: Int,
    Unpack_Pop: Int,
    word: Int,
) -> AnyInt:
    unpacker = Unpacker_Select
    enhanced = Unpack_Pop == POP_NAMED and word & _ENHANCED
    known = _PLAIN_BITS
    if Unpack_Pop == CLEAR:
        known = _CLEAR_BITS
    elif Unpack_Pop == POP_NAMED:
        known = _ENHANCED_BITS if enhanced else _POP_NAMED_BITS
    if word & ~known:
        return refuse(t, faults.NOP_STRAY, word & ~known, Unpack_Pop)
    if Unpack_Pop == CLEAR:
        return _clear(
            t, thread, unpacker, Src_ClrVal_Ctrl, Bank_Clr_Ctrl, Stall_Clr_Cntrl, Clr_to1_fmt_Ctrl, Set_Dvalid
        )
    if Unpack_Pop == POP:
        stream = thread_field(t, thread, _STREAM[unpacker])
        return _pop(t, stream, thread_field(t, thread, _MESSAGES[unpacker]))
    if enhanced:
        return _pop_enhanced(t, unpacker, word)
    if Unpack_Pop == POP_NAMED:
        return _pop(t, Stream_Id, Msg_Clr_Cnt)
    return DONE
