"""Words after which threads that wait need no look (`issue_queued` of tensix/frontend/run.py)."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError
from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS, encode
from bhemu.isa.roles import ROLES
from bhemu.tensix.frontend.run import ENDS_NO_WAIT

MATH = 1
VECTOR = (
    encode("SFPLOADI", lreg_ind=0, instr_mod0=2, imm16=3),
    encode("SFPLOADI", lreg_ind=1, instr_mod0=0, imm16=0x3F80),
    encode("SFPMOV", lreg_c=0, lreg_dest=2),
    encode("SFPSTORE", lreg_ind=1, instr_mod0=0, sfpu_addr_mode=7, dest_reg_addr=4),
    encode("INCRWC", rwc_d=2),
)
OTHERS = (
    encode("SEMPOST", sem_sel=1),
    encode("SEMGET", sem_sel=1),
    encode("SETDMAREG", value=5, RegIndex16b=8),
    encode("STALLWAIT", stall_res=0x40, wait_res=0x800),
    encode("SEMWAIT", stall_res=0x1FF, sem_sel=1, wait_sem_cond=1),
    encode("SETRWC", BitMask=4, rwc_d=0),
)
"""Some end a wait of another thread, some begin one."""


def test_words_that_end_no_wait_write_nothing_that_a_thread_waits_for() -> None:
    harmless = {"dst", "dst_stack", "lreg", "lane_flags", "flag_stack", "prng", "rwc", "vector_config"}
    for row in BY_OPCODE:
        if row is not None and ENDS_NO_WAIT[row.opcode]:
            assert {role.file for role in ROLES[row.mnemonic].writes} <= harmless, row.mnemonic
            assert not ROLES[row.mnemonic].gives, row.mnemonic
    assert ENDS_NO_WAIT[INSTRUCTIONS["SFPMAD"].opcode]
    assert not ENDS_NO_WAIT[INSTRUCTIONS["SEMPOST"].opcode]
    assert not ENDS_NO_WAIT[INSTRUCTIONS["SFPLOADMACRO"].opcode]


@pytest.mark.rule("tile E43")
@pytest.mark.parametrize("seed", range(20))
def test_cycles_at_once_do_what_they_do_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records = []
    programs = [
        [int(rng.choice(VECTOR if rng.random() < (0.9 if thread == MATH else 0.2) else OTHERS)) for _ in range(25)]
        for thread in range(3)
    ]
    for step in (1, 3, 1000):
        tile = Tile()
        tile.record.simulator_order = 1
        tile.record.sync.semaphore_max[0] = 15
        for thread, words in enumerate(programs):
            for word in words:
                assert tile.coprocessor.push(thread, word)
        for _ in range(1000 // step):
            tile.coprocessor.run(step)
        tile.record.handlers = 0
        records.append(tile.record.tobytes())
    assert records[0] == records[1] == records[2]


@pytest.mark.parametrize("before", [0, 4])
def test_a_word_among_them_is_refused(before: int) -> None:
    tile = Tile()
    tile.record.simulator_order = 1
    tile.coprocessor.push(MATH, encode("INCRWC", rwc_d=1))
    for _ in range(before):
        tile.coprocessor.push(MATH, VECTOR[0])
    refused = encode("SFPMOV", lreg_c=0, lreg_dest=2, instr_mod1=15)
    tile.coprocessor.push(MATH, refused, 1)
    tile.coprocessor.push(MATH, VECTOR[0])
    with pytest.raises(BhemuError, match=re.escape("SFPMOV")):
        tile.coprocessor.run(100)
    assert tile.record.fault_word == refused
    assert tile.record.clock == 1 + before
    assert tile.record.fault_line == 1
    assert tile.record.frontend.gate_word[MATH] == refused
    assert tile.record.frontend.ready_count[MATH] == 1
    tile.coprocessor.run(100)
    assert tile.record.issued[MATH, INSTRUCTIONS["SFPLOADI"].opcode] == before + 1
