"""Output address: the three streams of a tile in L1 (P11), and the bytes that go into them.

A stream takes its address when a PACR finds none open, and keeps it until Last or Flush. Silicon collects 16 bytes
before it writes; here the bytes of an unfinished unit are in L1 at once, as in the reference. Software cannot rely on
either before Last or Flush, which fill the unit with zeros.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.counters import CH1_W, CH1_Y, CH1_Z, PACKER
from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import (
    horizontal_sum,
    iota16,
    load16,
    load16_at,
    store16,
    store16_at,
    widen,
)
from bhemu.machine.types import Int, Lanes, TileRecord
from bhemu.tensix.pack.accumulate import accumulate
from bhemu.tensix.pack.bfp_assembly import shared_exponent, signed_magnitudes
from bhemu.tensix.pack.late_conversion import late_conversion

_ADDRESS_MASK: Final = 0x7FFFFFFF
"""Bit 31 of L1_Dest_addr has no function on Blackhole."""
_UNIT_MASK: Final = 0x1FFFF
"""Stream addresses have 17 bits of 16-byte units."""


@kernel
def stream_addresses(t: TileRecord, which: Int) -> tuple[Int, Int, Int]:
    """Byte addresses (row starts, exponents, datums) that newly opened streams get by ADC `which`."""
    pack = t.pack
    y, z = np.int64(t.adc[which, PACKER, CH1_Y]), np.int64(t.adc[which, PACKER, CH1_Z])
    w = np.int64(t.adc[which, PACKER, CH1_W])
    offset = pack.l1_base + y * pack.y1_stride + z * pack.z1_stride + w * pack.w1_stride
    unit = (pack.l1_address + (offset >> 4)) & _ADDRESS_MASK
    if pack.add_offset != 0:
        unit += pack.l1_dest_addr_offset
    if unit > pack.fifo_limit * 2 + 1:
        unit -= pack.fifo_size * 2
    row_starts = (unit & _UNIT_MASK) << 4
    if pack.compressed != 0:
        unit += pack.row_start_size
    exponents = (unit & _UNIT_MASK) << 4
    if pack.has_exp_section != 0:
        unit += pack.exp_size
    return row_starts, exponents, (unit & _UNIT_MASK) << 4


@kernel
def _write_whole(t: TileRecord, value: Lanes) -> None:
    """Append sixteen datums of 8, 16 or 32 bits."""
    pack = t.pack
    address = pack.data_address
    if pack.datum_bits == 16:
        if pack.accumulate != 0:
            value = accumulate(pack.out_format, load16_at(t.l1_u16, address >> 1), value)
        store16_at(t.l1_u16, address >> 1, value)
        pack.data_address = address + 32
    elif pack.datum_bits == 32:
        if pack.accumulate != 0:
            value = accumulate(pack.out_format, load16_at(t.l1_u32, address >> 2), value)
        store16_at(t.l1_u32, address >> 2, value)
        pack.data_address = address + 64
    else:
        store16_at(t.l1, address, value)
        pack.data_address = address + 16


@kernel
def _write_some(t: TileRecord, value: Lanes, count: Int) -> None:
    """Append the first `count` datums, fewer than sixteen, of 8, 16 or 32 bits."""
    pack = t.pack
    bits = pack.datum_bits
    if pack.accumulate != 0:
        for i in range(count):
            if bits == 16:
                pack.row[i] = t.l1_u16[(pack.data_address >> 1) + i]
            else:
                pack.row[i] = t.l1_u32[(pack.data_address >> 2) + i]
        value = accumulate(pack.out_format, load16(pack.row, 0), value)
    store16(pack.row, 0, value)
    for i in range(count):
        if bits == 16:
            t.l1_u16[(pack.data_address >> 1) + i] = pack.row[i] & 0xFFFF
        elif bits == 32:
            t.l1_u32[(pack.data_address >> 2) + i] = pack.row[i]
        else:
            t.l1[pack.data_address + i] = pack.row[i] & 0xFF
    pack.data_address += count * (bits >> 3)


@kernel
def _write_group(t: TileRecord, value: Int) -> None:
    """Append a BFP group: one exponent byte, and sixteen magnitudes, the first in the lowest bits (I.4)."""
    pack = t.pack
    bits = pack.bfp_bits
    shared = shared_exponent(pack.bfp_family_a, value)
    t.l1[pack.exp_address] = shared
    pack.exp_address += 1
    codes = signed_magnitudes(pack.bfp_family_a, bits, shared, value)
    address = pack.data_address
    if bits == 8:
        store16_at(t.l1, address, codes)
    elif bits == 4:
        packed = horizontal_sum(widen(codes) << widen(iota16() * 4))
        t.l1_u32[address >> 2] = packed & 0xFFFFFFFF
        t.l1_u32[(address >> 2) + 1] = (packed >> 32) & 0xFFFFFFFF
    else:
        t.l1_u32[address >> 2] = horizontal_sum(codes << (iota16() * 2)) & 0xFFFFFFFF
    pack.data_address = address + 2 * bits


@kernel
def write_datums(t: TileRecord, value: Lanes, count: Int) -> None:
    """Convert sixteen intermediate datums and append the first `count`; a BFP group is always whole."""
    pack = t.pack
    value = late_conversion(pack, value)
    if pack.bfp_bits != 0:
        _write_group(t, value)
    elif count == 16:
        _write_whole(t, value)
    else:
        _write_some(t, value, count)


ALL: Final = np.int64(16)
"""Count for `write_datums`; no literal, so that one compiled function serves all counts."""


@kernel
def zero_fill(t: TileRecord, address: Int, end: Int) -> Int:
    """Zero the bytes from `address` to `end` - 1; returns `end`."""
    for i in range(address, end):
        t.l1[i] = 0
    return end


@kernel
def fill_unit(t: TileRecord, address: Int) -> Int:
    """Zero the rest of a 16-byte unit that has been begun; returns the address after it."""
    return zero_fill(t, address, (address + 15) & ~15)
