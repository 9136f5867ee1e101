"""Operands of matrix products that are kept decoded, and not compared with Src while no word can have changed it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.isa.registers import thread
from bhemu.isa.roles import ROLES
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT
from bhemu.machine.state import new_tiles, reset
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tensix.src_rows import LEAVES_SRC, WRITES_SRC
from tests.tensix.matrix_unit import BF16, cell

THREAD = 1
COMPARED = ("dst", "dst_valid", "srca", "srcb", "rwc", "src_owner")
PRODUCTS = ("MVMUL", "DOTPV", "GAPOOL")
CHANGES = (
    *(encode("ZEROSRC", zero_val=0, write_mode=1, bank_mask=0, src_mask=mask) for mask in (1, 2)),
    *(encode("MOVD2A", addr_mode=0, instr_mod=2, src=row, dst=8 * row) for row in (0, 16, 36)),
    *(encode("MOVD2B", addr_mode=0, instr_mod=2, src=row, dst=8 * row) for row in (0, 8, 20)),
    *(encode("MOVB2A", addr_mode=0, instr_mod=2, srca=row, srcb=row) for row in (0, 16, 52)),
    encode("TRNSPSRCB"),
    *(encode("SHIFTXA", shift_mode=mode) for mode in (2, 3)),
)
OTHERS = (
    *(encode("SETRWC", clear_ab_vld=clear, BitMask=0) for clear in (1, 2, 3)),
    *(encode("SETRWC", BitMask=3, rwc_a=a, rwc_b=b) for a in (0, 4, 8) for b in (0, 4, 8)),
    *(encode("INCRWC", rwc_a=a, rwc_b=b) for a in (0, 8) for b in (0, 8)),
    encode("NOP"),
    encode("ZEROACC", clear_mode=3),
)


def tile(seed: int) -> tuple[Any, Any, Coprocessor]:
    """Both banks of both files have small numbers and belong to the matrix unit, for ever."""
    rng = np.random.default_rng(seed)
    tiles = new_tiles(1)
    reset(tiles, 0)
    t: Any = tiles[0]
    t.src_owner[...] = 1
    for name in ("CLR_DVALID_SrcA_Disable", "CLR_DVALID_SrcB_Disable"):
        word, lsb, mask = thread(name)
        t.thread_config[THREAD, word] |= mask << lsb
    t.src_format[...] = BF16
    for file in (t.srca, t.srcb):
        values = rng.integers(0, 2, file.shape) << 18 | rng.integers(120, 130, file.shape) << 10
        values |= rng.integers(0, 128, file.shape) << 3
        file[...] = np.vectorize(cell)(values)
    t.dst[...] = rng.integers(0, 1 << 16, t.dst.shape, dtype=np.uint16) & 0xFF7F
    return tiles, t, Coprocessor(tiles)


def words(seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    program: list[int] = []
    while len(program) < FIFO_PUSH_LIMIT - 1:
        kind = rng.random()
        if kind < 0.6:
            name = str(rng.choice(PRODUCTS))
            modes = {} if name == "DOTPV" else {"instr_mod19": 1 if name == "GAPOOL" else int(rng.integers(0, 2))}
            program.append(encode(name, dst=8 * int(rng.integers(0, 60)), **modes))
        else:
            word = int(rng.choice(CHANGES if kind < 0.8 else OTHERS))
            # SHIFTXA shifts what the latest product has read.
            program += [encode("MVMUL"), word] if word >> 24 == INSTRUCTIONS["SHIFTXA"].opcode else [word]
    return program


@pytest.mark.parametrize("seed", range(40))
def test_a_stretch_of_words_computes_what_they_do_one_by_one(seed: int) -> None:
    """Words that are executed alone always find their operands compared."""
    results = []
    for whole in (True, False):
        _, t, coprocessor = tile(seed)
        for word in words(seed):
            assert coprocessor.push(THREAD, word)
            if not whole:
                coprocessor.drain(THREAD)
        coprocessor.drain(THREAD)
        assert t.src_epoch == t.src_compared == 0
        assert not t.prepared.compared.any()
        results.append({name: t[name].copy() for name in COMPARED})
    for name in COMPARED:
        np.testing.assert_array_equal(results[0][name], results[1][name], err_msg=name)


def test_what_the_host_writes_between_two_stretches_is_seen() -> None:
    results = []
    for change in (0, 1 << 17):
        _, t, coprocessor = tile(1)
        for _ in range(2):
            assert coprocessor.push(THREAD, encode("MVMUL"))
            assert coprocessor.drain(THREAD)
            t.srca[0, 3, 5] ^= change
            t.srcb[0, 2, 5] ^= change
        results.append(t.dst.copy())
    assert (results[0] != results[1]).any()


def test_the_table_of_instructions_that_leave_src_is_that_of_their_roles() -> None:
    for name, instruction in INSTRUCTIONS.items():
        if LEAVES_SRC[instruction.opcode]:
            assert {role.file for role in ROLES[name].writes}.isdisjoint({"srca", "srcb", "mmio"}), name
    assert LEAVES_SRC[INSTRUCTIONS["MVMUL"].opcode]
    assert not LEAVES_SRC[INSTRUCTIONS["UNPACR"].opcode]


def test_the_table_of_instructions_that_write_src_is_that_of_their_roles() -> None:
    writers = {n for n, roles in ROLES.items() if {role.file for role in roles.writes} & {"srca", "srcb"}}
    table = {name for name in writers if WRITES_SRC[INSTRUCTIONS[name].opcode]}
    assert writers - table == {"ZEROSRC"}
    assert int(WRITES_SRC.sum()) == len(table)


@pytest.mark.rule("math F27")
@pytest.mark.parametrize("bank_mask", [0, 1])
def test_zerosrc_leaves_cells_that_were_never_written_alone(bank_mask: int) -> None:
    """In the C library they are zero, and their memory is untouched. Here they are not, to see whether it writes."""
    _, t, coprocessor = tile(1)
    zero = encode("ZEROSRC", zero_val=0, write_mode=1, bank_mask=bank_mask, src_mask=3)
    before = t.srca.copy(), t.srcb.copy()
    t.src_fresh = 1
    coprocessor.push(THREAD, zero)
    assert coprocessor.drain(THREAD)
    np.testing.assert_array_equal((t.srca, t.srcb), before)
    coprocessor.push(THREAD, encode("MOVD2A", addr_mode=0, instr_mod=2, src=0, dst=0))
    coprocessor.push(THREAD, zero)
    assert coprocessor.drain(THREAD)
    assert t.src_fresh == 0
    for cells in (t.srca, t.srcb):
        assert not cells[slice(None) if bank_mask else 0].any()


def test_zerosrc_may_write_minus_infinity_to_cells_that_were_never_written() -> None:
    _, t, coprocessor = tile(1)
    t.src_fresh = 1
    coprocessor.push(THREAD, encode("ZEROSRC", zero_val=1, write_mode=1, bank_mask=1, src_mask=1))
    assert coprocessor.drain(THREAD)
    assert t.src_fresh == 0
    assert (t.srca == t.srca[0, 0, 0]).all()
