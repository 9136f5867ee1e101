"""Lanes: 16 or 32 integers that are worked on side by side.

The matrix unit has 16 columns, the vector unit 32 lanes. A lane value is written like a number: `+ - * & | ^ ~ << >>`
(`>>` keeps the sign) and comparisons (signed), which give a mask. Arithmetic wraps at the width, 32 bits unless
`widen`ed to 64. The other operand may be a Python integer. Shift amounts must be below the width: clamp them with
`minimum` first.

    load16(array, row), store16(array, row, value)   16 elements at flat position 16 * row of a 16- or 32-bit array
    load32, store32                                  the same with 32 lanes
    load16_at(array, position)                       16 elements from any flat position
    store16_at(array, position, value)               the same, to it
    where(mask, a, b)                                select; `mask & mask`, `mask | mask`, `~mask`
    minimum, maximum, less_unsigned                  signed minimum and maximum; unsigned comparison
    shift_right_logical, leading_zeros, population_count
    widen, widen_unsigned, narrow                    32 to 64 bits and back
    to_floats                                        signed integers as binary32 bits, rounded to nearest even
    add_floats, subtract_floats                      of lanes that hold binary32 (widened: binary64) bits, as in IEEE
    multiply_add_floats                              a * b + c of binary32 bits, rounded once
    load_row_pair, store_row_pair                    two rows of a 16-bit array as 32 lanes of 16 bits
    pack_rows                                        two rows of 16 lanes, cut to 16 bits, as 32 lanes of 16 bits
    pack_high_rows                                   the same with the high halves
    pack_quads, pack_high_quads, quads_of_rows       the same in turn: four columns of one row, four of the other
    first_row_words, second_row_words                a row of two such pairs as 16 words: (low halves, high halves)
    as_halves, as_words                              16 lanes of 32 bits as 32 of 16 bits, low half first, and back
    splat16, splat32, iota16, iota32                 the same value in all lanes; 0, 1, 2, ...
    mask16, mask32, mask_bits, as_integers           masks from and to integers (bit n = lane n); 0 / 1 lanes
    gather(table, indices)                           table[index] in each lane; indices must be inside the table
    opaque(value)                                    the same, computed as written: LLVM combines nothing across it
    horizontal_sum, horizontal_maximum, horizontal_minimum, lane, shuffle

Compiled, a lane value is an LLVM vector; with Numba disabled it is a NumPy array and the same text runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bhemu.machine.codegen import JIT

if TYPE_CHECKING or not JIT:  # to compiled code they look the same; the compiled ones are Numba intrinsics
    from bhemu.machine._lanes_plain import (
        add_floats,
        as_halves,
        as_integers,
        as_words,
        first_row_words,
        gather,
        horizontal_maximum,
        horizontal_minimum,
        horizontal_sum,
        iota16,
        iota32,
        lane,
        leading_zeros,
        less_unsigned,
        load16,
        load16_at,
        load32,
        load_row_pair,
        mask16,
        mask32,
        mask_bits,
        maximum,
        minimum,
        multiply_add_floats,
        narrow,
        opaque,
        pack_high_quads,
        pack_high_rows,
        pack_quads,
        pack_rows,
        population_count,
        quads_of_rows,
        second_row_words,
        shift_right_logical,
        shuffle,
        splat16,
        splat32,
        store16,
        store16_at,
        store32,
        store_row_pair,
        subtract_floats,
        to_floats,
        where,
        widen,
        widen_unsigned,
    )
else:
    from bhemu.machine._lanes_compiled import (
        add_floats,
        as_integers,
        gather,
        horizontal_maximum,
        horizontal_minimum,
        horizontal_sum,
        iota16,
        iota32,
        lane,
        leading_zeros,
        less_unsigned,
        load16,
        load16_at,
        load32,
        mask16,
        mask32,
        mask_bits,
        maximum,
        minimum,
        multiply_add_floats,
        narrow,
        opaque,
        population_count,
        shift_right_logical,
        shuffle,
        splat16,
        splat32,
        store16,
        store16_at,
        store32,
        subtract_floats,
        to_floats,
        where,
        widen,
        widen_unsigned,
    )
    from bhemu.machine._lanes_halves import (
        as_halves,
        as_words,
        first_row_words,
        load_row_pair,
        pack_high_quads,
        pack_high_rows,
        pack_quads,
        pack_rows,
        quads_of_rows,
        second_row_words,
        store_row_pair,
    )

__all__ = [
    "add_floats",
    "as_halves",
    "as_integers",
    "as_words",
    "first_row_words",
    "gather",
    "horizontal_maximum",
    "horizontal_minimum",
    "horizontal_sum",
    "iota16",
    "iota32",
    "lane",
    "leading_zeros",
    "less_unsigned",
    "load16",
    "load16_at",
    "load32",
    "load_row_pair",
    "mask16",
    "mask32",
    "mask_bits",
    "maximum",
    "minimum",
    "multiply_add_floats",
    "narrow",
    "opaque",
    "pack_high_quads",
    "pack_high_rows",
    "pack_quads",
    "pack_rows",
    "population_count",
    "quads_of_rows",
    "second_row_words",
    "shift_right_logical",
    "shuffle",
    "splat16",
    "splat32",
    "store16",
    "store16_at",
    "store32",
    "store_row_pair",
    "subtract_floats",
    "to_floats",
    "where",
    "widen",
    "widen_unsigned",
]
