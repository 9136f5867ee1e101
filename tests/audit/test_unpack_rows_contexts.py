"""Audit rows 001.7 to 001.10: unpack to Dst, UNPACR_NOP, contexts and their counter."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import decode, encode
from bhemu.isa.names import Block, Condition, Semaphore, WhileSemaphore
from tests.tensix.unpacker import BF16, FP32, INT32, TF32, TILE, Unpacker, counting, unpacr

CONTEXT_CONTROL = 41


def setc16(u: Unpacker, entry: int, value: int) -> None:
    assert u.issue(encode("SETC16", setc16_reg=entry, setc16_value=value))


def issue_on(u: Unpacker, thread: int, text: str) -> bool:
    """Execute on another thread of the same tile."""
    assert u.coprocessor.push(thread, assemble(text))
    return u.coprocessor.drain(thread)


# --- 001.7: unpack to Dst -------------------------------------------------------------------------------------------


@pytest.mark.rule("001.7.1")
@pytest.mark.parametrize("kind", [FP32, INT32])
def test_32_bit_data_has_no_way_but_to_dst(kind: int) -> None:
    u = Unpacker(0)
    u.formats(kind)
    u.l1([0x89AB_CDEF] * 16, "<u4")
    with pytest.raises(UndefinedBehavior, match=f"output format {kind} does not fit a Src register"):
        u.unpack()
    u.to_dst()
    assert u.unpack()
    assert set(u.dst32(0)) == {0x89AB_CDEF}


@pytest.mark.rule("001.7.3")
def test_the_unpack_waits_while_its_semaphore_is_at_its_maximum() -> None:
    """SEMWAIT on max holds the unpacker, SEMPOST says that Dst is written, the math thread takes it down."""
    u = counting(0)
    u.to_dst()
    one = Semaphore.UNPACK_TO_DEST.mask
    assert issue_on(u, 1, f"SEMINIT 1, 0, {one}")
    wait = encode("SEMWAIT", stall_res=Block.UNPACK, sem_sel=one, wait_sem_cond=WhileSemaphore.MAX)
    post = encode("SEMPOST", sem_sel=one)
    for word in (wait, unpacr(0), post):
        assert u.issue(word)
    assert u.t["sync"]["semaphore"][Semaphore.UNPACK_TO_DEST] == 1
    assert u.t["dst"][0, 0] == 1
    u.t["dst"][:] = 0
    for word in (wait, unpacr(0), post):
        assert u.coprocessor.push(0, word)
    assert not u.coprocessor.drain(0)
    assert not u.t["dst"].any()
    assert issue_on(u, 1, f"SEMGET {one}")
    assert u.coprocessor.drain(0)
    assert u.t["dst"][0, 0] == 1
    assert u.t["sync"]["semaphore"][Semaphore.UNPACK_TO_DEST] == 1


@pytest.mark.rule("001.7.4a", "001.7.4c")
@pytest.mark.parametrize("row", [0, 7, 64, 200])
@pytest.mark.parametrize("kind", [INT32, BF16])
def test_the_destination_is_16_times_4_plus_row_in_datums(row: int, kind: int) -> None:
    """001.7.4a: the value is a row of Dst; 001.7.4c: datums whatever the width; the strides add to it."""
    u = Unpacker(0)
    u.to_dst()
    u.formats(kind)
    u.l1([0x5555_5555] * 16, "<u4")
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + row))
    assert u.unpack()
    u.set("UNP0_ADDR_CTRL_XY_REG_1_Ystride", 16 * (4 if kind == INT32 else 2))
    u.adc(y1=3)
    assert u.unpack()
    physical = [r + 8 * (r // 8) if kind == INT32 else r for r in (row, row + 3)]
    halves = [p + 8 for p in physical] if kind == INT32 else []
    assert set(np.flatnonzero(u.t["dst"].any(axis=1))) == {*physical, *halves}


@pytest.mark.rule("001.7.4b")
def test_entry_5_must_be_0_for_dst_and_4_for_srca() -> None:
    """SETC16 5, 0 clears bit 2, SetOvrdWithAddr, and the base row."""
    u = counting(0)
    u.to_dst()
    setc16(u, 5, 4)
    with pytest.raises(UndefinedBehavior, match="SRCA_SET_SetOvrdWithAddr"):
        u.unpack()
    setc16(u, 5, 0)
    assert u.unpack()
    assert u.t["dst"][0, 0] == 1


# --- 001.8: UNPACR_NOP ----------------------------------------------------------------------------------------------


@pytest.mark.rule("001.8.0")
@pytest.mark.parametrize(
    ("bits", "name", "value"),
    [
        (0x1, "Unpack_Pop", 1),
        (0x3, "Unpack_Pop", 3),
        (0x4, "Src_ClrVal_Ctrl", 1),
        (0xC, "Src_ClrVal_Ctrl", 3),
        (0x10, "Bank_Clr_Ctrl", 1),
        (0x20, "Stall_Clr_Cntrl", 1),
        (0xC0, "Clr_to1_fmt_Ctrl", 3),
        (0x100, "Set_Dvalid", 1),
        (0x7000, "Msg_Clr_Cnt", 7),
        (0x3F0000, "Stream_Id", 63),
        (0x800000, "Unpacker_Select", 1),
    ],
)
def test_unpacr_nop_has_blackholes_fields(bits: int, name: str, value: int) -> None:
    operands = decode(0x43000000 | bits).operands
    assert {key: found for key, found in operands.items() if found} == {name: value}


def marked() -> Unpacker:
    u = Unpacker(1)
    u.t["srcb"][:] = 0x155
    u.t["stream_messages"][:] = 100
    u.set("NOC_OVERLAY_MSG_CLEAR_StreamId_1", 5)
    u.set("NOC_OVERLAY_MSG_CLEAR_MsgNum_1", 4)
    return u


def what_happened(u: Unpacker) -> str:
    """The one thing that an UNPACR_NOP of unpacker 1 did."""
    popped = {n: 100 - int(left) for n, left in enumerate(u.t["stream_messages"]) if left != 100}
    cleared = not u.src(0).any()
    handed = bool(u.t["src_owner"][1, 0])
    return f"popped {popped}" if popped else "cleared" if cleared else "handed over" if handed else "nothing"


@pytest.mark.rule("001.8.0", "001.8.1")
@pytest.mark.parametrize(
    ("low", "effect"),
    [
        (0, "popped {5: 4}"),  # stream and count from ThreadConfig 43
        (1, "cleared"),
        (2, "nothing"),
        (3 | 6 << 12 | 9 << 16, "popped {9: 6}"),
        (7 | 0x51 << 4 | 9 << 16, "popped {9: 81}"),  # the enhanced pop, which Wormhole's mode 7 (set dvalid) was not
        (0xC1, "handed over"),  # clear with format 3: hand over alone
    ],
)
def test_the_two_low_bits_of_unpacr_nop_choose_its_function(low: int, effect: str) -> None:
    """Two bits select; those above are fields of their own, so 7 hands nothing over."""
    u = marked()
    assert u.issue(0x43800000 | low)
    assert what_happened(u) == effect


@pytest.mark.rule("001.8.1")
def test_mode_4_is_a_pop_with_a_clear_value_and_no_register_write() -> None:
    """The bits decode as Unpack_Pop 0, Src_ClrVal_Ctrl 1, which go together with no effect of their own."""
    u = marked()
    assert decode(0x43800004).operands["Src_ClrVal_Ctrl"] == 1
    with pytest.raises(UndefinedBehavior, match="0x4 of the word have no function with Unpack_Pop = 0"):
        u.issue(0x43800004)
    assert what_happened(u) == "nothing"


@pytest.mark.rule("001.8.2b")
def test_the_clear_that_hands_over_waits_for_the_bank() -> None:
    """Stall_Clr_Cntrl 1 for the unpacker's own bank, 0 for the matrix unit's."""
    for own in (0, 1):
        u = marked()
        u.t["unpack"]["bank"][1] = 1
        u.t["src_owner"][1, own] = 1
        assert not u.nop(Unpack_Pop=1, Stall_Clr_Cntrl=own, Set_Dvalid=1)
        assert (u.t["srcb"] == 0x155).all()
        assert u.t["unpack"]["bank"][1] == 1
        u.t["src_owner"][1, own] = 0
        assert u.coprocessor.drain(0)
        assert not u.src(1).any()
        assert u.t["unpack"]["bank"][1] == 0


@pytest.mark.rule("001.8.2c")
@pytest.mark.parametrize(
    ("condition", "file", "holding_owner"),
    [
        (Condition.SRCA_CLEARED, 0, 1),  # C5 while the matrix unit has the bank
        (Condition.SRCB_CLEARED, 1, 1),  # C6
        (Condition.SRCA_VALID, 0, 0),  # C7 while it has not
        (Condition.SRCB_VALID, 1, 0),  # C8
    ],
)
def test_source_conditions_have_blackholes_numbers(condition: Condition, file: int, holding_owner: int) -> None:
    assert condition == 1 << (5, 6, 7, 8)[file + 2 * (holding_owner == 0)]
    u = Unpacker(1)
    u.t["src_owner"][...] = 1 - holding_owner
    u.t["src_owner"][file, 0] = holding_owner
    assert u.coprocessor.push(0, encode("STALLWAIT", stall_res=Block.UNPACK, wait_res=condition))
    assert u.coprocessor.push(0, encode("UNPACR_NOP", Unpacker_Select=1, Unpack_Pop=2))
    assert not u.coprocessor.drain(0)
    u.t["src_owner"][file, 0] = 1 - holding_owner
    assert u.coprocessor.drain(0)


@pytest.mark.rule("001.8.2c")
def test_wormholes_numbers_do_not_wait_for_the_sources() -> None:
    """C10 and C11 are the core's accesses and the vector unit."""
    for owner in (0, 1):
        u = Unpacker(1)
        u.t["src_owner"][...] = owner
        assert u.coprocessor.push(0, encode("STALLWAIT", stall_res=Block.UNPACK, wait_res=1 << 10 | 1 << 11))
        assert u.coprocessor.push(0, encode("UNPACR_NOP", Unpacker_Select=1, Unpack_Pop=2))
        assert u.coprocessor.drain(0)


# --- 001.9, 001.10: contexts ----------------------------------------------------------------------------------------


@pytest.mark.rule("001.9.1")
def test_unpacker_0_has_eight_contexts_and_unpacker_1_two() -> None:
    for unpacker, count in ((0, 8), (1, 2)):
        for context in range(8):
            u = Unpacker(unpacker)
            u.base(TILE + 64 * context, context)
            u.l1([context + 1] * 16, address=TILE + 64 * context)
            if context < count:
                assert u.unpack(CfgContextId=context)
                assert u.values()[0, 0] == context + 1
            else:
                with pytest.raises(UndefinedBehavior, match=f"context {context} on unpacker 1"):
                    u.unpack(CfgContextId=context)


@pytest.mark.rule("001.9.2")
@pytest.mark.parametrize(("unpacker", "base", "offset"), [(0, 76, 92), (1, 124, 140)])
def test_the_two_contexts_of_the_ping_pong_have_adjacent_words(unpacker: int, base: int, offset: int) -> None:
    """Base and offset words follow each other."""
    u = counting(unpacker)
    words = u.t["config"][0]
    words[base : base + 2] = TILE // 16 - 1, TILE // 16 - 1 + 0x10
    words[offset : offset + 2] = 1, 2
    for context, datum in ((0, 8), (1, 128 + 16)):
        assert u.unpack(CfgContextId=context)
        assert u.values()[0, 0] == datum + 1


def first_datums(u: Unpacker) -> list[int]:
    """First datum for unpacker 0 and unpacker 1 by an UNPACR each with context number 0."""
    result = []
    for unpacker, file in ((0, "srca"), (1, "srcb")):
        assert u.issue(unpacr(unpacker))
        cell = int(u.t[file][0, 0, 0])
        result.append(cell >> 3 & 0xFF00 | cell & 0xFF)
    return result


def contexts() -> Unpacker:
    """Both unpackers; datums of context n are n."""
    u = Unpacker(0)
    u.adc(x=0, x1=15)
    u.t["adc"][0, 1] = u.t["adc"][0, 0]
    for unpacker, count in ((0, 8), (1, 2)):
        u.unpacker = unpacker
        for context in range(count):
            u.base(TILE + 64 * context, context)
            u.l1([context] * 16, address=TILE + 64 * context)
    return u


@pytest.mark.rule("001.9.3b", "001.9.3c")
@pytest.mark.parametrize(
    ("value", "chosen"),
    [(0x0000, [0, 0]), (0x0101, [1, 1]), (0x0104, [4, 1]), (0x0007, [7, 0]), (0x00C3, [3, 0]), (0xC100, [0, 1])],
)
def test_offsets_are_two_fields_of_4_bits(value: int, chosen: list[int]) -> None:
    """001.9.3b: [3:0] and [11:8]; 001.9.3c: 0x0104 is context 4 for unpacker 0 and 1 for unpacker 1."""
    u = contexts()
    setc16(u, CONTEXT_CONTROL, value)
    assert first_datums(u) == chosen


@pytest.mark.rule("001.9.3d")
def test_setc16_of_0x1010_resets_both_counters_and_offsets() -> None:
    u = contexts()
    setc16(u, CONTEXT_CONTROL, 0x0101)
    u.t["unpack"]["context_counter"][:] = 5
    setc16(u, CONTEXT_CONTROL, 0x1010)
    assert u.t["unpack"]["context_counter"].tolist() == [[0, 0], [5, 5], [5, 5]]
    assert first_datums(u) == [0, 0]


@pytest.mark.rule("001.9.4")
def test_setc16_of_0_and_0x0101_switches_both_unpackers() -> None:
    u = contexts()
    seen = []
    for context in (1, 0, 1):
        setc16(u, CONTEXT_CONTROL, 0x0101 if context else 0)
        seen.append(first_datums(u))
    assert seen == [[1, 1], [0, 0], [1, 1]]


@pytest.mark.rule("001.9.5a", "001.9.5b")
def test_tiles_alternate_between_two_contexts() -> None:
    """001.9.5a: address, SEMPOST by the core, STALLWAIT, UNPACRs, SEMGET, switch. 001.9.5b: UNPACR takes nothing."""
    u = Unpacker(1)
    sync = Semaphore.UNPACK_SYNC
    assert issue_on(u, 0, f"SEMINIT 2, 0, {sync.mask}")
    for n in range(4):
        assert u.t["sync"]["semaphore"][sync] < 2  # what the core waits for
        address = TILE + 0x100 * n
        u.l1([100 + n] * 16, address=address)
        u.base(address, n % 2)
        u.base(0x17FFF0, 1 - n % 2)  # the other context's tile is none
        u.t["sync"]["semaphore"][sync] += 1  # the core's post
        assert issue_on(u, 0, f"STALLWAIT {Block.UNPACK:d}, {Condition.TRISC_CFG:d}")
        u.t["src_owner"][...] = 0
        assert u.unpack(SetDatValid=1)
        assert u.values(n % 2)[0, 0] == 100 + n
        assert u.t["sync"]["semaphore"][sync] == 1  # still taken
        assert issue_on(u, 0, f"SEMGET {sync.mask}")
        assert u.t["sync"]["semaphore"][sync] == 0
        setc16(u, CONTEXT_CONTROL, 0x0101 if n % 2 == 0 else 0)


@pytest.mark.rule("001.10a")
def test_the_counter_form_adds_the_offset_and_steps_with_a_wrap() -> None:
    """Context counter + offset; afterwards the sum + 1, or 0 from 1 << Context_count on."""
    u = contexts()
    u.unpacker = 0
    u.set("THCON_SEC0_REG2_Context_count", 2)
    for offset, counter, visited, after in ((0, 0, 0, 1), (1, 1, 2, 3), (0, 3, 3, 0), (2, 0, 2, 3), (4, 1, 5, 0)):
        setc16(u, CONTEXT_CONTROL, offset)
        u.t["unpack"]["context_counter"][0, 0] = counter
        assert u.unpack(AutoIncContextID=1, CfgContextId=6)  # the number in the word plays no part
        assert u.values()[0, 0] == visited
        assert u.t["unpack"]["context_counter"][0, 0] == after


@pytest.mark.rule("001.8.0", "I.7")
def test_set_dvalid_gives_the_bank_its_configured_format() -> None:
    """Word 120 bits 3:0, not the format that was unpacked last."""
    u = marked()
    u.formats(FP32, TF32)
    u.l1([0x3F800000] * 16, "<u4")
    assert u.unpack(SetDatValid=1)
    u.formats(BF16)
    assert u.nop(Unpack_Pop=1, Stall_Clr_Cntrl=1, Set_Dvalid=1)
    assert list(u.t["src_format"][1]) == [TF32, BF16]


@pytest.mark.rule("001.8.1")
def test_pops_by_a_register_address_are_refused() -> None:
    """Bits 22 and 15 of the enhanced form choose an address that no source names."""
    with pytest.raises(MissingSpecification, match="select 1"):
        marked().issue(0x43800007 | 1 << 15 | 1 << 4)
