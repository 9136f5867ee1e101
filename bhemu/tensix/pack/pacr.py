"""PACR: rows of Dst through the stages of the packer to L1 (P1 to P12)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.config_access import PACK_BIT, config_bank
from bhemu.machine.counters import CH0_X, CH1_X, PACKER
from bhemu.machine.faults import DONE, REFUSED, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load16, mask16, maximum, splat16, store16, where
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, Lanes, PackRecord, TileRecord
from bhemu.tensix.instruction import DOCUMENTED, OPEN, VERIFIED, Mode, instruction
from bhemu.tensix.pack.compression import close_tile, end_row, open_tile, push, write_gathered
from bhemu.tensix.pack.decode import NO_MASK, decode
from bhemu.tensix.pack.early_conversion import early_conversion
from bhemu.tensix.pack.edge_mask import advance, edge_mask
from bhemu.tensix.pack.faults import (
    CONTEXT_KEEP,
    DATUM_COUNT,
    FORMAT_CHANGE,
    L1_SOURCE_RANGE,
    MASK_SPILLS,
    MISALIGNED,
    OUT_OF_L1,
    PARTIAL_BFP_ROW,
    ROW_END,
    STRIDED,
    ZERO_WRITE_COUNT,
)
from bhemu.tensix.pack.fields import config
from bhemu.tensix.pack.histogram import count_exponents, record_maximum, statistics_enabled
from bhemu.tensix.pack.input_address import first_datum, input_address, move_counters
from bhemu.tensix.pack.late_conversion import fp16_from_fp32
from bhemu.tensix.pack.output_address import ALL, stream_addresses, write_datums
from bhemu.tensix.pack.relu import exponent_threshold, exponents, relu
from bhemu.tensix.pack.row_pairs import lie_together, pack_pairs

_DESCALE_VALUE: Final = config("INT_DESCALE_VALUES_SEC0_Value")
ZERO: Final = np.int64(0)
NO_ADC: Final = 3
"""AddrCntContext that names no ADC; it selects ADC 0."""

# RowPadZero [19:18]: when; [20]: what, the sum of the rows or (0) each of them
PAD_ALWAYS: Final = 1
PAD_WITHOUT_CONCAT: Final = 2
PAD_WITH_LAST: Final = 3
PAD_TOTAL: Final = 4


@kernel
def _descale(t: TileRecord) -> AnyInt:
    """Right shift of integer magnitudes (INT_DESCALE, 002.5.2e)."""
    pack = t.pack
    if pack.descale_by_z == 0:
        return pack.descale
    z = pack.z & 63
    word = _DESCALE_VALUE[0] + (z >> 2)
    return (np.int64(t.config[0, word]) >> ((z & 3) * 8)) & 31


@kernel
def _row_from_dst(t: TileRecord, row: Int, column: Int, count: Int, bins: Bool) -> tuple[Lanes, Lanes]:
    """Sixteen intermediate datums of a Dst row, and their exponents, after the stages that only Dst data passes."""
    pack = t.pack
    value = early_conversion(t, pack.early, _descale(t), row)
    if pack.edge_free == 0:
        value = edge_mask(pack, value, column, count)
    if pack.relu != 0:
        value = relu(pack, value)
    if pack.narrow != 0:
        value = fp16_from_fp32(value)
    exponent = exponents(pack, value)
    if bins:
        count_exponents(pack, value, column, count)
    if pack.threshold != 0:
        value = exponent_threshold(pack, value)
    return value, exponent


@kernel
def _whole_rows(t: TileRecord, row: Int, step: Int, mask: Int, bins: Bool) -> None:
    """Rows of sixteen datums that need no gathering, interface by interface."""
    pack = t.pack
    if pack.bf16_pairs != 0 and mask == 15 and step == 1 and not bins and lie_together(pack, row):
        pack_pairs(t, row)
        return
    seen = splat16(0)
    rows = 0
    for i in range(4):
        if (mask >> i) & 1 != 0:
            value, exponent = _row_from_dst(t, row + i * step, ZERO, ALL, bins)
            seen = maximum(seen, exponent)
            write_datums(t, value, ALL)
            rows += 1
    pack.datums += rows * 16
    if pack.edge_free != 0:
        advance(pack, rows * 16)
    record_maximum(pack, seen)


@kernel
def _row_from_l1(t: TileRecord, address: Int, count: Int) -> AnyInt:
    """`count` datums of L1 in the layout of their intermediate format; BFP datums have exponent 0 (002.3.4)."""
    pack = t.pack
    for i in range(16):
        pack.row[i] = 0
    for i in range(count):
        if pack.size_shift == 2:
            pack.row[i] = t.l1_u32[(address >> 2) + i]
        elif pack.size_shift == 1:
            pack.row[i] = t.l1_u16[(address >> 1) + i]
        else:
            datum = np.int64(t.l1[address + i])
            if pack.exponent_shift == 7:  # BFP8: sign and mantissa of a BF16 with exponent 0
                datum = ((datum & 0x80) << 8) | (datum & 0x7F)
            elif pack.exponent_shift == 10:
                # BFP8a: sign and mantissa of an E5M7 with exponent 0; FP8 is the high byte of an FP16
                datum = datum << 8 if pack.fp8 != 0 else ((datum & 0x80) << 8) | ((datum & 0x7F) << 3)
            pack.row[i] = datum
    return load16(pack.row, 0)


@kernel
def _take(t: TileRecord, value: Lanes, column: Int, count: Int, phase: Int, pad: Bool) -> None:
    """Downsample (002.10) and append the datums of one interface; `pad` fills a partial row with zeros to sixteen."""
    pack = t.pack
    store16(pack.row, 0, value)
    kept = 0
    for i in range(count):
        if (pack.downsample >> ((phase + i) & 15)) & 1 != 0:
            push(t, np.int64(pack.row[column + i]))
            kept += 1
    if pad:
        for _ in range(kept, 16):
            push(t, ZERO)


@kernel
def _gathered_rows(t: TileRecord, start: Int, step: Int, mask: Int, count: Int, pad: Bool, bins: Bool) -> None:
    """Rows packed datum by datum: fewer than sixteen datums, downsampled, compressed, or after such rows."""
    pack = t.pack
    row, column = start >> 4, start & 15
    here = mask16(((1 << count) - 1) << column)
    seen = splat16(0)
    phase = 0
    for i in range(4):
        if (mask >> i) & 1 != 0:
            value, exponent = _row_from_dst(t, row + i * step, column, count, bins)
            seen = maximum(seen, where(here, exponent, 0))
            _take(t, value, column, count, phase, pad)
            phase += count
    if pack.edge_free != 0:
        advance(pack, phase)
    record_maximum(pack, seen)


@kernel
def _other_rows(t: TileRecord, start: Int, rows: Int, count: Int, zeros: Bool, pad: Bool) -> None:
    """Rows of zeros, or of L1 from byte address `start`."""
    for i in range(rows):
        value = splat16(0) if zeros else _row_from_l1(t, start + ((i * count) << t.pack.size_shift), count)
        _take(t, value, ZERO, count, i * count, pad)


@kernel
def _finish_context(pack: PackRecord, last: Int) -> None:
    """Advance the hardware context (P3): on Last, or after the programmed number of planes."""
    if pack.planes_per_context == 0:
        if last:
            pack.context = (pack.context + 1) & 3
    else:
        while pack.planes >= pack.planes_per_context:
            pack.planes -= pack.planes_per_context
            pack.context = (pack.context + 1) & 3


@kernel
def _selected(t: TileRecord, which: Int, ReadIntfSel: Int, ZeroWrite: Int, Flush: Int) -> tuple[Int, Int, Int, Int]:
    """(status, mask of interfaces, datums of each, rows): with ZeroWrite and no mask rows of sixteen zeros (P2, P3)."""
    pack, none = t.pack, np.int64(0)
    if Flush != 0:
        return np.int64(DONE), none, none, none
    x0, x1 = np.int64(t.adc[which, PACKER, CH0_X]), np.int64(t.adc[which, PACKER, CH1_X])
    count: Int = x1 - x0 + 1
    zero_rows: Int = none
    if ZeroWrite != 0 and ReadIntfSel == 0:
        if x0 != 0 or count & 15 != 0:
            return refuse(t, ZERO_WRITE_COUNT, x0, x1), none, none, none
        zero_rows = count >> 4
        count = np.int64(16)
    elif count < 1 or count > 16:
        return refuse(t, DATUM_COUNT, x1, x0, count), none, none, none
    mask: Int = np.int64(15 if ReadIntfSel == 0 else ReadIntfSel)
    if pack.auto_interfaces != 0 and pack.reads > pack.y and pack.reads - pack.y < 4:
        mask &= (1 << (pack.reads - pack.y)) - 1
    rows = zero_rows
    if rows == 0:
        for i in range(4):
            rows += (mask >> i) & 1
    return np.int64(DONE), mask, count, rows


@kernel
def _is_padded(RowPadZero: Int, Concat: Int, Last: Int) -> Bool:
    """True when zeros follow the rows (P3)."""
    when = RowPadZero & 3
    if when == PAD_WITHOUT_CONCAT:
        return Concat == 0
    return when == PAD_ALWAYS or (when == PAD_WITH_LAST and Last != 0)


@kernel
def _interfaces(t: TileRecord, first: Int, mask: Int) -> Int:
    """Refuse a mask that reaches beyond the fourth interface (P2), but for those that the reference executes."""
    executed = mask == 15 or mask == 5 or mask == 10 or mask == 3
    if not executed and (mask << (first & 3)) > 15:
        return refuse(t, MASK_SPILLS, mask, first)
    return DONE


@kernel
def _source(
    t: TileRecord, which: Int, mask: Int, count: Int, rows: Int, reads: Bool, strided: Bool
) -> tuple[Int, Int, Int]:
    """(status, first datum in Dst or byte in L1, rows from one interface to the next) of what a PACR reads."""
    pack, step = t.pack, np.int64(1)
    address = input_address(t, which)
    if address & ((1 << pack.size_shift) - 1) != 0:
        return refuse(t, MISALIGNED, address, 1 << pack.size_shift), step, step
    start = first_datum(t, which, address)
    if not reads:
        return np.int64(DONE), start & ~15, step
    if pack.source_l1 != 0:
        x = np.int64(t.adc[which, PACKER, CH0_X]) & pack.column_mask
        start = ((pack.l1_source << 18) + (address & 0x3FFF0) + (x << pack.size_shift)) & 0x1FFFFF
        end = start + ((rows * count) << pack.size_shift)
        return (refuse(t, L1_SOURCE_RANGE, end, L1_SIZE) if end > L1_SIZE else np.int64(DONE)), start, step
    if (start & 15) + count > 16:
        return refuse(t, ROW_END, start & 15, count), start, step
    if not strided:
        return _interfaces(t, start >> 4, mask), start, step
    settled = pack.remap != 0 and pack.swizzle != 0 and (mask == 15 or mask == 1 or mask == 3)
    status = DONE if settled or open_choice(t, STRIDED, pack.remap, pack.swizzle) else REFUSED
    return np.int64(status), start, np.int64(16 if pack.remap != 0 else 8)


@kernel
def _room(t: TileRecord, data: Int, exponents: Int, row_starts: Int, datums: Int, closes: Bool) -> Int:
    """Refuse a PACR whose streams would leave L1. Compressed output counts as if nothing could be left out."""
    pack = t.pack
    end = data + ((datums * pack.datum_bits + 7) >> 3)
    if pack.compressed != 0:
        groups = ((pack.augmented + datums + 1) >> 5) - (pack.augmented >> 5) + 1
        end = data + groups * (4 * pack.datum_bits + 16)
        row_end = row_starts + 4
        if row_end + 15 > L1_SIZE:
            return refuse(t, OUT_OF_L1, row_end, L1_SIZE)
    if closes:
        end = (end + 15) & ~15
    if end > L1_SIZE:
        return refuse(t, OUT_OF_L1, end, L1_SIZE)
    if pack.bfp_bits != 0:
        end = exponents + ((datums + 15) >> 4)
        if closes:
            end = (end + 15) & ~15
        if end > L1_SIZE:
            return refuse(t, OUT_OF_L1, end, L1_SIZE)
    return DONE


@kernel
def _open(t: TileRecord, row_starts: Int, exponents: Int, data: Int) -> None:
    pack = t.pack
    pack.open = 1
    pack.x = 0
    pack.y = 0
    pack.z = 0
    pack.row_start_start = row_starts
    pack.row_start_address = row_starts
    pack.exp_start = exponents
    pack.exp_address = exponents
    pack.data_start = data
    pack.data_address = data
    pack.group_count = 0
    pack.datums = 0
    open_tile(t)


@kernel
def _open_streams(t: TileRecord, which: Int, datums: Int, closes: Bool) -> Int:
    """Refuse what the open streams, or new ones, have no room for; open new ones where none are."""
    pack = t.pack
    row_starts, exponents, data = stream_addresses(t, which)
    if pack.open != 0:
        row_starts, exponents, data = pack.row_start_address, pack.exp_address, pack.data_address
        datums += pack.group_count
        if pack.datum_bits > 8 and data & ((pack.datum_bits >> 3) - 1) != 0:
            return refuse(t, FORMAT_CHANGE, data, pack.datum_bits)
    if _room(t, data, exponents, row_starts, datums, closes) != DONE:
        return REFUSED
    if pack.open == 0:
        _open(t, row_starts, exponents, data)
    return DONE


@kernel
def _close(t: TileRecord, thread: Int, last: Bool) -> None:
    """Complete the streams; with Last account for the tile, in 16-byte units."""
    pack = t.pack
    close_tile(t)
    pack.open = 0
    if last:
        size = (pack.data_address - pack.row_start_start) >> 4
        pack.last_tile_size = size
        pack.last_thread = thread
        pack.acc_tile_size[thread] = (np.int64(pack.acc_tile_size[thread]) + size + pack.header_units) & 0xFFFF


@kernel
def _ready(t: TileRecord, thread: Int, context: Int) -> Int:
    """Have the configuration of this bank and context decoded."""
    bank = config_bank(t, thread)
    key = 1 + bank + 2 * context + (8 if t.allow_open != 0 else 0)
    if t.pack.key == key and np.int64(t.config_dirty[bank]) & PACK_BIT == 0:
        return DONE
    t.pack.key = 0
    if decode(t, bank, context) != DONE:
        return REFUSED
    t.pack.key = key
    t.config_dirty[bank] = np.int64(t.config_dirty[bank]) & ~PACK_BIT
    return DONE


@instruction(
    Mode("whole rows, masks 0, 1, 3, 5, 10", VERIFIED, vectors="pack:stream", rule="P2"),
    Mode("eight datums", VERIFIED, vectors="pack:count8", rule="P2"),
    Mode("strided with remap and swizzle", VERIFIED, vectors="pack:strided", rule="P5"),
    Mode("edge masks, mode 0", VERIFIED, vectors="pack:edge_mask", rule="P7"),
    Mode("ReLU", VERIFIED, vectors="pack:relu1", rule="P8"),
    Mode("L1 accumulation in FP32, FP16, BF16", VERIFIED, vectors="pack:l1_acc", rule="I.9"),
    Mode("other interface masks and datum counts", DOCUMENTED, rule="P2"),
    Mode("Flush", DOCUMENTED, rule="P11"),
    Mode("ZeroWrite", DOCUMENTED, rule="P3"),
    Mode("RowPadZero", DOCUMENTED, rule="P3"),
    Mode("CfgContext 1 to 3, CtxtCtrl 1 and 2", DOCUMENTED, rule="P3"),
    Mode("OvrdThreadId", DOCUMENTED, rule="P3"),
    Mode("exponent histogram and threshold", DOCUMENTED, rule="002.7"),
    Mode("downsampling", DOCUMENTED, rule="002.10"),
    Mode("zero compression", DOCUMENTED, rule="002.11"),
    Mode("BFP8a, BFP4a, BFP2a, E5M2 output; Read_raw; TF32; INT_DESCALE mode 0", DOCUMENTED, rule="P6, P9"),
    Mode("edge mode 1 with 8-bit exponents", DOCUMENTED, rule="002.9"),
    Mode("edge mode 1 with 5-bit exponents", OPEN, rule="002.9.1e"),
    Mode("from L1", OPEN, rule="002.3.4"),
    Mode("strided otherwise; CtxtCtrl 3; automatic interfaces; L1 accumulation in INT32", OPEN, rule="P2, P5"),
)
def PACR(
    t: TileRecord,
    thread: Int,
    CfgContext: Int,
    RowPadZero: Int,
    DstAccessMode: Int,
    AddrMode: Int,
    AddrCntContext: Int,
    ZeroWrite: Int,
    ReadIntfSel: Int,
    OvrdThreadId: Int,
    Concat: Int,
    CtxtCtrl: Int,
    Flush: Int,
    Last: Int,
) -> Int:
    pack = t.pack
    context = CfgContext
    if CtxtCtrl != 0:
        if CtxtCtrl == 2:
            pack.context = 0
            pack.planes = 0
            return DONE
        if CtxtCtrl == 3 and not open_choice(t, CONTEXT_KEEP):
            return REFUSED
        context = pack.context
    if _ready(t, thread, context) != DONE:
        return REFUSED
    which = thread
    if OvrdThreadId != 0:
        which = 0 if AddrCntContext == NO_ADC else AddrCntContext
    status, mask, count, rows = _selected(t, which, ReadIntfSel, ZeroWrite, Flush)
    if status != DONE:
        return REFUSED
    reads, closes = ZeroWrite == 0 and Flush == 0, Last != 0 or Flush != 0
    status, start, step = _source(t, which, mask, count, rows, reads, DstAccessMode != 0)
    if status != DONE:
        return REFUSED
    padded = _is_padded(RowPadZero, Concat, Last)
    pad_rows, pad_total = padded and RowPadZero < PAD_TOTAL, padded and RowPadZero >= PAD_TOTAL
    partial = count & 15 != 0 and not pad_rows and pack.downsample == NO_MASK
    if pack.bfp_bits != 0 and partial and not open_choice(t, PARTIAL_BFP_ROW, count):
        return REFUSED
    datums = rows * (16 if pad_rows else count) + (16 if pad_total else 0)
    if _open_streams(t, which, datums, closes) != DONE:
        return REFUSED

    planes = pack.planes
    from_dst = reads and pack.source_l1 == 0
    bins = from_dst and statistics_enabled(t)
    if not from_dst:
        _other_rows(t, start, rows, count, ZeroWrite != 0, pad_rows)
    elif count == 16 and pack.downsample == NO_MASK and pack.compressed == 0 and pack.group_count == 0:
        _whole_rows(t, start >> 4, step, mask, bins)
    else:
        _gathered_rows(t, start, step, mask, count, pad_rows, bins)
    if pad_total:
        while pack.datums & 15 != 0:
            push(t, ZERO)
    if pack.compressed != 0:
        if Concat == 0:
            end_row(t)
    elif pack.bfp_bits == 0:
        write_gathered(t)
    if closes:
        _close(t, thread, Last != 0)
    if CtxtCtrl != 0:
        _finish_context(pack, Last != 0)
    else:
        pack.planes = planes
    move_counters(t, thread, which, AddrMode)
    return DONE
