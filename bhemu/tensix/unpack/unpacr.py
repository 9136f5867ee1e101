"""UNPACR: datums from L1 to SrcA, SrcB or Dst (rules U1-U12)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import config_bank, thread_field
from bhemu.machine.faults import DONE, REFUSED, WAIT, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, TileRecord, UnpackDecodedRecord, UnpackWalkRecord
from bhemu.machine.unpacker_state import SINGLE
from bhemu.tensix.banks import UNPACKER
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction
from bhemu.tensix.unpack import faults
from bhemu.tensix.unpack.address import L1_END, datum_range, output_address, tile_start, wrap
from bhemu.tensix.unpack.completion import advance_adc, advance_context, finish_bank
from bhemu.tensix.unpack.compressed import NO_LIMIT, compressed_range, count_offset, datum_offset
from bhemu.tensix.unpack.decode import settings
from bhemu.tensix.unpack.place import BIAS_ROWS, TO_DST_16, TO_DST_32, TO_SRCA, TO_SRCA_TRANSPOSED, TO_SRCB
from bhemu.tensix.unpack.walk import (
    REFUSED_WALK,
    advanced,
    is_whole_rows,
    needs_rehearsal,
    walk_datums,
    walk_rows,
)

_CONTEXT_OFFSET: Final = (
    thread_register("UNPACK_MISC_CFG_CfgContextOffset_0"),
    thread_register("UNPACK_MISC_CFG_CfgContextOffset_1"),
)
_SET_OVRD: Final = thread_register("SRCA_SET_SetOvrdWithAddr")

_SRC_ROWS: Final = 64
_DST_ROW_MASK: Final = 0x3FF
_BROADCAST_ROWS: Final = 8
NOT_FOUND: Final = -1


def _bits(*without: str) -> int:
    """Bits of all operands but these."""
    return sum(operand.mask for operand in INSTRUCTIONS["UNPACR"].fields if operand.name not in without)


# Operands that mean nothing to the forms that move no data (001.10b); Last is 1 in LLK and 0 in the documents.
_INCREMENT_STRAY: Final = _bits("Unpack_block_selection", "CfgContextCntInc", "Last")
_FLUSH_STRAY: Final = _bits("Unpack_block_selection", "SearchCacheFlush", "OvrdThreadId", "Last")


@kernel
def _target(d: UnpackDecodedRecord, unpacker: Int) -> Int:
    if unpacker == 1:
        return TO_SRCB
    if d.to_dst:
        return TO_DST_32 if d.out_format & 3 == 0 else TO_DST_16
    return TO_SRCA_TRANSPOSED if d.haloize else TO_SRCA


@kernel
def _check_rows(
    t: TileRecord, d: UnpackDecodedRecord, thread: Int, target: Int, out: Int, last: Int, set_ovrd: Int
) -> bool:
    """False, with the refusal noted, when the rows from `out` to `last` may not be written (U9, U10, U12)."""
    top = last >> 4
    row = t.unpack.src_row[thread, 0]
    if target == TO_SRCB:
        return True  # rows count modulo 64: LLK's custom matrix multiplication walks over the end on purpose
    if target in (TO_DST_16, TO_DST_32):
        if set_ovrd:
            refuse(t, faults.OVRD_DST)
            return False
        return True
    top -= BIAS_ROWS
    if not set_ovrd:
        if top >= 16:
            refuse(t, faults.ROW_SRCA, top)
            return False
        if top + row >= _SRC_ROWS:
            refuse(t, faults.ROW_SRCA_SUM, top + row, top, row)
            return False
    first = (out >> 4) - BIAS_ROWS
    if last - out >= 16 and first & (d.burst_rows - 1):
        return open_choice(t, faults.BURST, first, d.burst_rows)
    return True


@kernel
def _find(
    t: TileRecord,
    d: UnpackDecodedRecord,
    w: UnpackWalkRecord,
    thread: Int,
    adc_thread: Int,
    unpacker: Int,
    start: Int,
    row_search: Int,
) -> AnyInt:
    """Set which datums `w` reads and where they are; returns the number of the first in its tile, or NOT_FOUND."""
    address = start * 16 + d.start_index_section
    exponents = address
    address += d.exponent_skip
    counts: Int = np.int64(0)
    drop, keep = np.int64(0), np.int64(NO_LIMIT)
    if d.uncompressed:
        first, count = datum_range(t, d, thread, adc_thread, unpacker, row_search)
        data = address + first * d.datum_size
    else:
        first, count, drop, keep = compressed_range(t, d, thread, adc_thread, unpacker, start, row_search)
        data = address + datum_offset(d, first)
        counts = address + count_offset(d, first)
    if count < 0:
        return np.int64(NOT_FOUND)
    exponents += first
    if d.fifo:
        data = wrap(d, data)
        exponents = wrap(d, exponents)
        counts = wrap(d, counts)
    if (d.tileize or d.haloize) and data & 0xFF:
        refuse(t, faults.START_ALIGNMENT, data >> 4)
        return np.int64(NOT_FOUND)
    w.datum = data
    w.exponents = exponents
    w.counts = counts
    w.index = 0
    w.end = count
    w.drop = drop
    w.keep = keep
    return first


@kernel
def _move(t: TileRecord, d: UnpackDecodedRecord, w: UnpackWalkRecord, bias: Int, copies: Int, wraps: Bool) -> Int:
    """Move the datums that `w` describes, whole rows first; rows that a FIFO may wrap go datum by datum."""
    rows: Int = np.int64(0) if copies > 1 or wraps else w.end >> 4
    if is_whole_rows(d, w, rows):
        walk_rows(t, d, w, bias, rows)
        done = rows << 4
        if done == w.end:
            return DONE
        w.index = done
        w.datum = advanced(d, w.datum, done)
        w.exponents += done
        w.out += done
    for copy in range(copies):
        if walk_datums(t, d, w, bias + copy, True) == REFUSED_WALK:
            return REFUSED
    return DONE


@kernel
def _transfer(
    t: TileRecord,
    d: UnpackDecodedRecord,
    thread: Int,
    adc_thread: Int,
    unpacker: Int,
    start: Int,
    row_search: Int,
    broadcast: Int,
) -> Int:
    """The transfer of the tile at `start`; everything is checked before the first register is written."""
    w = t.unpack.walk
    first = _find(t, d, w, thread, adc_thread, unpacker, start, row_search)
    if first == NOT_FOUND:
        return REFUSED
    out = output_address(t, d, thread, unpacker)
    if out < 0:
        return REFUSED
    count = np.int64(w.end)
    if count == 0:
        return DONE

    reads = w.zero == 0 or d.uncompressed == 0
    data_end, exponents_end = np.int64(0), np.int64(0)
    if reads and d.uncompressed != 0:
        data_end = advanced(d, w.datum, count - 1) + d.datum_size
        exponents_end = w.exponents + count if d.exponent_section else np.int64(0)
    rehearse = reads and needs_rehearsal(d, data_end, exponents_end)
    if not rehearse and (data_end > L1_END or exponents_end > L1_END):
        return refuse(t, faults.OUT_OF_L1, max(data_end, exponents_end) >> 4, start, first)

    set_ovrd = thread_field(t, thread, _SET_OVRD)
    bias = np.int64(0)
    if unpacker == 0:
        bias -= BIAS_ROWS
    if unpacker == 1 or not (d.to_dst or set_ovrd):
        bias += np.int64(t.unpack.src_row[thread, unpacker])
    w.target = _target(d, unpacker)
    w.row_mask = _DST_ROW_MASK if d.to_dst else _SRC_ROWS - 1  # Src rows count modulo 64 (U9)
    w.out = out
    end = out + count * (1 + d.upsample_zeros)
    if rehearse:
        end = walk_datums(t, d, w, bias, False)
        if end == REFUSED_WALK:
            return REFUSED
    if end == out:
        return DONE
    last = end - 1 - (d.upsample_zeros if d.interleave else 0)
    copies = 1
    if broadcast:
        if end - out > 16 or out & 15:
            return refuse(t, faults.BROADCAST_ROWS, end - out)
        if not open_choice(t, faults.BROADCAST, out >> 4):
            return REFUSED
        copies = _BROADCAST_ROWS
        last += 16 * (copies - 1)
    if not _check_rows(t, d, thread, w.target, out, last, set_ovrd):
        return REFUSED
    return _move(t, d, w, bias, copies, rehearse and d.fifo != 0)


@kernel
def _other_form(t: TileRecord, thread: Int, unpacker: Int, increment: Int, word: Int) -> Any:
    """The forms that move no data: context-counter increment and cache flush (001.10b)."""
    stray = word & (_INCREMENT_STRAY if increment else _FLUSH_STRAY)
    if stray:
        return refuse(t, faults.FORM_MIX, stray)
    if increment:
        # The caches of row start indices hold nothing that L1 does not, so that flushing them changes no state.
        bank = config_bank(t, thread)
        d = settings(t, unpacker, bank, np.int64(SINGLE))
        advance_context(t, d, thread, unpacker, np.int64(t.unpack.context_counter[thread, unpacker]))
    return DONE


@instruction(
    Mode("multi-context form, contexts 0 and 1", VERIFIED, vectors="unpack:context1", rule="U2, U3"),
    Mode("to SrcA", VERIFIED, vectors="unpack:to_srca", rule="U9"),
    Mode("to SrcB", VERIFIED, vectors="unpack:to_srcb", rule="U9"),
    Mode("to Dst, 32 bits", VERIFIED, vectors="unpack:to_dst", rule="U10"),
    Mode("FP32 to TF32", VERIFIED, vectors="unpack:fp32->tf32", rule="I.5"),
    Mode("FP32 to BF16", VERIFIED, vectors="unpack:fp32->bf16", rule="I.5"),
    Mode("FP32 to FP16", VERIFIED, vectors="unpack:fp32->fp16", rule="I.5"),
    Mode("FP32 to Dst", VERIFIED, vectors="unpack:fp32->fp32", rule="I.5"),
    Mode("INT32 to Dst", VERIFIED, vectors="unpack:int32->int32", rule="I.5"),
    Mode("BF16", VERIFIED, vectors="unpack:bf16->bf16", rule="I.5"),
    Mode("FP16", VERIFIED, vectors="unpack:fp16->fp16", rule="I.5"),
    Mode("FP8 E5M2", VERIFIED, vectors="unpack:e5m2", rule="I.5"),
    Mode("FP8 E4M3", VERIFIED, vectors="unpack:e4m3", rule="I.5"),
    Mode("BFP8", VERIFIED, vectors="unpack:bfp8->bfp8", rule="I.5"),
    Mode("BFP4", VERIFIED, vectors="unpack:bfp4->bfp4", rule="I.5"),
    Mode("BFP2", VERIFIED, vectors="unpack:bfp2->bfp2", rule="I.5"),
    Mode("BFP8, BFP4 and BFP2 with the output format of another", DOCUMENTED, rule="I.5"),
    Mode("INT8", VERIFIED, vectors="unpack:int8", rule="I.2"),
    Mode("UINT8", VERIFIED, vectors="unpack:uint8", rule="I.2"),
    Mode("INT16", VERIFIED, vectors="unpack:int16->int16", rule="I.2"),
    Mode("forced shared exponent, unpacker 0", VERIFIED, vectors="unpack:force_shared_exp", rule="I.5"),
    Mode("transpose (haloize)", VERIFIED, vectors="unpack:haloize", rule="U9"),
    Mode("tilize, unpacker 0", VERIFIED, vectors="unpack:tileize", rule="U7"),
    Mode("destination address of the context, added", VERIFIED, vectors="unpack:dest_add", rule="U8"),
    Mode("destination address of the context, replacing", VERIFIED, vectors="unpack:dest_replace", rule="U8"),
    Mode("counter increments", VERIFIED, vectors="unpack:adc_increment", rule="U11"),
    Mode("bank hand-over", VERIFIED, vectors="unpack:set_dvalid1", rule="U11"),
    Mode("single-context form", DOCUMENTED, rule="U2"),
    Mode("contexts 2 to 7, context counter, CfgContextId, ADC of another thread", DOCUMENTED, rule="U2, U3, U11"),
    Mode("format override of a context", DOCUMENTED, rule="U3"),
    Mode("compressed tiles, RowSearch", DOCUMENTED, rule="U5, I.4"),
    Mode("NoBFPExpSection, DigestSize, forced exponent on unpacker 1", DOCUMENTED, rule="U5, 001.1.2c"),
    Mode("FIFO limit and size", DOCUMENTED, rule="U6"),
    Mode("tilize on unpacker 1", DOCUMENTED, rule="U7"),
    Mode("unaligned output, address bases, W counter", DOCUMENTED, rule="U8"),
    Mode("SrcB rows beyond 63, which wrap", DOCUMENTED, rule="U9"),
    Mode("rows below 4, column shift, SrcRow, SetOvrdWithAddr = 0", DOCUMENTED, rule="U9"),
    Mode("BFP8a, BFP4a, BFP2a", DOCUMENTED, rule="I.5"),
    Mode("8- and 16-bit formats and TF32 to Dst", DOCUMENTED, rule="I.2, I.5"),
    Mode("upsampling", DOCUMENTED, rule="001.12a"),
    Mode("zeros instead of data (ZeroWrite2)", DOCUMENTED, rule="001.2.6d"),
    Mode("context-counter increment, cache flush", DOCUMENTED, rule="001.10b"),
    Mode("TF32 to Src", OPEN, rule="001.3.2i"),
    Mode("SrcB row broadcast", OPEN, rule="001.2.1b"),
    Mode("SrcA rows that start inside a burst", OPEN, rule="U12"),
)
def UNPACR(
    t: TileRecord,
    thread: Int,
    Unpack_block_selection: Int,
    CfgContextCntInc: Int,
    CfgContextId: Int,
    AddrCntContextId: Int,
    OvrdThreadId: Int,
    SetDatValid: Int,
    srcb_bcast: Int,
    ZeroWrite2: Int,
    AutoIncContextID: Int,
    RowSearch: Int,
    SearchCacheFlush: Int,
    Ch1Y: Int,
    Ch1Z: Int,
    Ch0Y: Int,
    Ch0Z: Int,
    word: Int,
) -> AnyInt:
    unpacker = Unpack_block_selection
    if CfgContextCntInc or SearchCacheFlush:
        return _other_form(t, thread, unpacker, CfgContextCntInc, word)
    t.unpack.walk.zero = ZeroWrite2  # written before it is read: see `_layout` of machine/state.py
    src_bank = np.int64(t.unpack.bank[unpacker])
    if t.src_owner[unpacker, src_bank] != UNPACKER:
        return WAIT  # U1, also when the target is Dst

    context: Int = np.int64(0)
    slot: Int = np.int64(SINGLE)
    adc_thread = thread
    if OvrdThreadId:
        context = np.int64(t.unpack.context_counter[thread, unpacker]) if AutoIncContextID else CfgContextId
        context = (context + thread_field(t, thread, _CONTEXT_OFFSET[unpacker])) & 7
        if unpacker == 1 and context >= 2:
            return refuse(t, faults.CONTEXT_SRCB, context)
        if AddrCntContextId == 3:
            return refuse(t, faults.ADC_3)
        if AddrCntContextId != 0:
            adc_thread = AddrCntContextId  # 0 means the issuing thread (U2)
        slot = context
    bank = config_bank(t, thread)
    d = settings(t, unpacker, bank, slot)
    if d.fault:
        return refuse(t, d.fault, d.in_format, d.out_format)
    if d.tf32_to_src and not open_choice(t, faults.TF32_TO_SRC):
        return REFUSED
    if srcb_bcast and unpacker == 0:
        return refuse(t, faults.BROADCAST_SRCA)

    t.unpack.walk.bank = src_bank
    start = tile_start(t, d, unpacker, bank, context)
    status = _transfer(t, d, thread, adc_thread, unpacker, start, RowSearch, srcb_bcast)
    if status != DONE:
        return status

    if OvrdThreadId and AutoIncContextID:
        advance_context(t, d, thread, unpacker, context)
    advance_adc(t, thread, unpacker, Ch1Y, Ch1Z, Ch0Y, Ch0Z)
    if adc_thread != thread:
        advance_adc(t, adc_thread, unpacker, Ch1Y, Ch1Z, Ch0Y, Ch0Z)
    finish_bank(t, d, thread, unpacker, SetDatValid)
    return DONE
