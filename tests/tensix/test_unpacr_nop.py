"""UNPACR_NOP on Blackhole (I.7, 001.8)."""

from __future__ import annotations

import pytest

from bhemu.errors import (
    ConfigurationError,
    MissingSpecification,
    NonContractualBehavior,
    UndefinedBehavior,
)
from tests.tensix.unpacker import FP32, TF32, Unpacker

POP, CLEAR, NOTHING, POP_NAMED = range(4)
MARK = 0x12345


def marked(unpacker: int, **options: bool) -> Unpacker:
    """Both banks of both register files hold MARK."""
    u = Unpacker(unpacker, **options)
    u.t["srca"][:] = MARK
    u.t["srcb"][:] = MARK
    return u


def content(u: Unpacker, bank: int) -> set[int]:
    return {int(cell) for cell in u.src(bank).reshape(-1)}


@pytest.mark.rule("I.7", "001.8.3c")
@pytest.mark.parametrize("unpacker", [0, 1])
@pytest.mark.parametrize(
    ("operands", "cell"),
    [
        ({"Src_ClrVal_Ctrl": 0}, 0),
        ({"Src_ClrVal_Ctrl": 1}, 0x7FFFF),
        ({"Src_ClrVal_Ctrl": 2, "Clr_to1_fmt_Ctrl": 0}, 15),
        ({"Src_ClrVal_Ctrl": 2, "Clr_to1_fmt_Ctrl": 1}, 127),
        ({"Src_ClrVal_Ctrl": 2, "Clr_to1_fmt_Ctrl": 2}, 0x110),
    ],
)
def test_the_current_bank_is_cleared_to_a_value(unpacker: int, operands: dict[str, int], cell: int) -> None:
    """Zero, minus infinity, one as FP16, BF16 or INT8; the clear value reaches SrcB too."""
    u = marked(unpacker)
    u.t["unpack"]["bank"][unpacker] = 1
    assert u.nop(Unpack_Pop=CLEAR, **operands)
    assert content(u, 1) == {cell}
    assert content(u, 0) == {MARK}
    assert {int(c) for c in u.t["srca" if unpacker else "srcb"].reshape(-1)} == {MARK}
    assert u.t["unpack"]["bank"][unpacker] == 1


@pytest.mark.rule("I.7", "001.8.3a")
def test_both_banks_are_cleared_with_bank_clr_ctrl() -> None:
    u = marked(1)
    assert u.nop(Unpack_Pop=CLEAR, Bank_Clr_Ctrl=1)
    assert content(u, 0) == content(u, 1) == {0}


@pytest.mark.rule("I.7")
def test_the_clear_value_register_is_refused_unless_the_user_takes_its_low_19_bits() -> None:
    """I.7, III.7: words 53, 63."""
    u = marked(1)
    u.set("UNP1_NOP_REG_CLR_VAL_nop_reg_clr_val", 0xFFF80081)
    with pytest.raises(MissingSpecification, match="word 63"):
        u.nop(Unpack_Pop=CLEAR, Src_ClrVal_Ctrl=3)
    assert content(u, 0) == {MARK}
    u.t["allow_open"] = 1
    assert u.nop(Unpack_Pop=CLEAR, Src_ClrVal_Ctrl=3)
    assert content(u, 0) == {0x81}


@pytest.mark.rule("I.7", "001.8.3b")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_the_clear_waits_for_the_bank_that_stall_clr_cntrl_names(unpacker: int) -> None:
    """0 the matrix unit's current bank, 1 the unpacker's own."""
    for own in (0, 1):
        u = marked(unpacker)
        u.t["unpack"]["bank"][unpacker] = 1
        awaited = 1 if own else 0  # the matrix unit is on bank 0
        u.t["src_owner"][unpacker, awaited] = 1
        assert not u.nop(Unpack_Pop=CLEAR, Stall_Clr_Cntrl=own)
        assert content(u, 1) == {MARK}
        u.t["src_owner"][unpacker, awaited] = 0
        u.t["src_owner"][unpacker, 1 - awaited] = own  # the other bank does not matter when waiting for the own one
        assert u.coprocessor.drain(0)
        assert content(u, 1) == {0}


@pytest.mark.rule("I.7", "U11", "001.8.2a")
@pytest.mark.parametrize("operands", [{"Set_Dvalid": 1}, {"Clr_to1_fmt_Ctrl": 3}])
def test_the_bank_is_handed_over_with_the_configured_output_format(operands: dict[str, int]) -> None:
    """After the clear, or with format 3 without one."""
    u = marked(1)
    u.formats(FP32, TF32)
    u.set("SRCB_SET_Base", 1)
    assert u.nop(Unpack_Pop=CLEAR, **operands)
    assert content(u, 0) == ({0} if "Set_Dvalid" in operands else {MARK})
    assert list(u.t["src_owner"][1]) == [1, 0]
    assert u.t["src_format"][1, 0] == TF32
    assert u.t["unpack"]["bank"][1] == 1
    assert u.t["unpack"]["src_row"][0, 1] == 16


@pytest.mark.rule("U11", "001.2.7c")
def test_handing_over_a_bank_of_the_matrix_unit_is_refused_and_nothing_is_cleared() -> None:
    u = marked(0)
    u.t["unpack"]["bank"][0] = 1
    u.t["src_owner"][0, 1] = 1
    with pytest.raises(NonContractualBehavior, match="SrcA bank 1"):
        u.nop(Unpack_Pop=CLEAR, Set_Dvalid=1)
    assert content(u, 1) == {MARK}
    with pytest.raises(NonContractualBehavior, match="SrcA bank 1"):
        u.nop(Unpack_Pop=CLEAR, Clr_to1_fmt_Ctrl=3)


def test_a_format_of_one_without_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Clr_to1_fmt_Ctrl is 2"):
        marked(0).nop(Unpack_Pop=CLEAR, Clr_to1_fmt_Ctrl=2)


@pytest.mark.rule("I.7")
def test_the_plain_form_does_nothing_and_does_not_wait() -> None:
    u = marked(0)
    u.t["src_owner"][:] = 1
    assert u.nop(Unpack_Pop=NOTHING)
    assert content(u, 0) == {MARK}


@pytest.mark.rule("001.8.4")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_the_pop_takes_stream_and_count_from_thread_config(unpacker: int) -> None:
    """Entries 42 and 43."""
    u = Unpacker(unpacker)
    u.set("NOC_OVERLAY_MSG_CLEAR_StreamId_{}", 9)
    u.set("NOC_OVERLAY_MSG_CLEAR_MsgNum_{}", 2)
    u.t["stream_messages"][9] = 5
    assert u.nop(Unpack_Pop=POP)
    assert u.t["stream_messages"][9] == 3


@pytest.mark.rule("I.7", "001.8.4")
def test_the_named_pop_takes_stream_and_count_from_the_word() -> None:
    u = Unpacker()
    u.t["stream_messages"][33] = 7
    assert u.nop(Unpack_Pop=POP_NAMED, Stream_Id=33, Msg_Clr_Cnt=7)
    assert u.t["stream_messages"][33] == 0
    with pytest.raises(UndefinedBehavior, match="1 messages are popped from stream 33, which holds 0"):
        u.nop(Unpack_Pop=POP_NAMED, Stream_Id=33, Msg_Clr_Cnt=1)


def enhanced(unpacker: int, stream: int, count: int, accumulate: int = 0, select: int = 0) -> int:
    """The enhanced pop's own layout of the word (I.7)."""
    word = 0x43000007 | unpacker << 23 | (select >> 1) << 22 | stream << 16 | (select & 1) << 15
    return word | count << 4 | accumulate << 3


@pytest.mark.rule("I.7", "001.8.5")
def test_the_enhanced_pop_takes_up_to_2047_messages() -> None:
    u = Unpacker()
    u.t["stream_messages"][63] = 3000
    assert u.issue(enhanced(1, 63, 2047))
    assert u.t["stream_messages"][63] == 953


@pytest.mark.rule("001.8.5")
def test_accumulation_follows_setreg_only_where_the_user_accepts_it() -> None:
    """Count 0 clears the sum, any other is added and the sum popped."""
    u = Unpacker()
    u.t["stream_messages"][4] = 100
    with pytest.raises(MissingSpecification, match="accumulate"):
        u.issue(enhanced(1, 4, 3, accumulate=1))
    u.t["allow_open"] = 1
    for count, left in ((3, 97), (4, 90), (0, 90), (5, 85)):
        assert u.issue(enhanced(1, 4, count, accumulate=1))
        assert u.t["stream_messages"][4] == left


@pytest.mark.rule("001.8.5")
@pytest.mark.parametrize("select", [1, 2, 3])
def test_other_registers_of_the_enhanced_pop_are_refused(select: int) -> None:
    with pytest.raises(MissingSpecification, match=f"select {select}"):
        Unpacker().issue(enhanced(1, 4, 3, select=select))


@pytest.mark.rule("I.7")
@pytest.mark.parametrize(
    ("word", "stray"),
    [
        (0x43000000 | 1 << 8, "0x100"),  # Set_Dvalid belongs to the clear
        (0x43000002 | 1 << 5, "0x20"),
        (0x43000001 | 3 << 16, "0x30000"),
        (0x43000001 | 1 << 9, "0x200"),
        (0x43000003 | 1 << 15, "0x8000"),
        (0x43000003 | 1 << 3, "0x8"),
    ],
)
def test_bits_without_a_function_in_their_form_are_refused(word: int, stray: str) -> None:
    with pytest.raises(UndefinedBehavior, match=f"bits {stray} of the word"):
        Unpacker().issue(word)
