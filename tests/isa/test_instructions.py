"""The instruction table, and encode and decode against it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.errors import AssemblyError
from bhemu.isa import BY_OPCODE, INSTRUCTIONS, UNITS, Field, Instruction, decode, encode, instruction
from bhemu.isa.instruction_table import SUB_UNITS
from bhemu.isa.timing import TIMINGS

# (instruction, form name or None, fields) of every layout.
LAYOUTS = [
    (row, form.name if form else None, (form or row).fields)
    for row in INSTRUCTIONS.values()
    for form in (row.forms or (None,))
]
# Opcodes that no source defines: the list of the specification, kept apart from the table on purpose.
UNDEFINED = [
    *(0x00, 0x06, 0x07, 0x0D, 0x0E, 0x0F, 0x19, 0x1F, 0x20, *range(0x2A, 0x30), *range(0x3B, 0x40), 0x47),
    *(*range(0x4C, 0x50), 0x5F, 0x65, *range(0x69, 0x70), *range(0x9A, 0xA0), *range(0xA8, 0xB0), *range(0xB9, 0x100)),
]


def layout_id(layout: tuple[Instruction, str | None, tuple[Field, ...]]) -> str:
    return layout[0].mnemonic + (f".{layout[1]}" if layout[1] else "")


def union(fields: tuple[Field, ...]) -> int:
    bits = 0
    for field in fields:
        bits |= field.mask
    return bits


# The table -----------------------------------------------------------------------------------------------------------


def test_the_table_has_the_137_blackhole_opcodes_and_no_other() -> None:
    assert len(INSTRUCTIONS) == 137
    assert [op for op in range(256) if BY_OPCODE[op] is None] == UNDEFINED
    assert all(BY_OPCODE[row.opcode] is row for row in INSTRUCTIONS.values())


def test_every_unit_has_its_number_of_instructions() -> None:
    assert Counter(row.unit for row in INSTRUCTIONS.values()) == {
        "frontend": 4,
        "misc": 11,
        "sync": 8,
        "scalar": 18,
        "config": 9,
        "unpack": 2,
        "pack": 3,
        "matrix": 39,
        "vector": 42,
        "mover": 1,
    }
    assert {row.unit for row in INSTRUCTIONS.values()} == set(UNITS)


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_fields_are_named_once_ordered_and_do_not_overlap(
    layout: tuple[Instruction, str | None, tuple[Field, ...]],
) -> None:
    _, _, fields = layout
    assert all(23 >= field.msb >= field.lsb >= 0 for field in fields)
    assert all(upper.lsb > lower.msb for upper, lower in pairwise(fields))
    names = [field.name for field in fields]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name not in ("form", "reserved") for name in names)


def test_only_the_macro_operands_of_setdmareg_overlap() -> None:
    overlapping = [
        row.mnemonic
        for row in INSTRUCTIONS.values()
        if sum(field.width for field in row.fields) != union(row.fields).bit_count()
    ]
    assert overlapping == ["SETDMAREG"]


def test_forms_of_an_instruction_exclude_each_other_and_cover_every_word() -> None:
    for row in INSTRUCTIONS.values():
        if not row.forms:
            continue
        selector_bits = union(tuple(f for form in row.forms for f in form.fields if f.name in form.selectors))
        bits = [bit for bit in range(24) if selector_bits >> bit & 1]
        for pattern in range(1 << len(bits)):
            word = row.base | sum((pattern >> i & 1) << bit for i, bit in enumerate(bits))
            matching = [
                form
                for form in row.forms
                if all(f.extract(word) == form.selectors[f.name] for f in form.fields if f.name in form.selectors)
            ]
            assert len(matching) == 1
            assert decode(word).form is matching[0]


def test_parts_and_named_only_fields_lie_inside_fields() -> None:
    for row in INSTRUCTIONS.values():
        assert union(row.parts) & ~union(row.fields) == 0
        assert row.named_only <= {field.name for field in row.fields}
        assert not {part.name for part in row.parts} & {field.name for field in row.fields}
    assert [row.mnemonic for row in INSTRUCTIONS.values() if "ThreadOverride" in row.named_only] == [
        *("SETADCXY", "INCADCXY", "ADDRCRXY", "SETADCZW", "INCADCZW", "ADDRCRZW"),
    ]


@pytest.mark.parametrize(
    ("bit", "mnemonics"),
    [
        ("B1", "ATGETM ATRELM SEMINIT SEMPOST SEMGET"),
        ("B3", "UNPACR UNPACR_NOP"),
        ("B4", "XMOV"),
        (
            "B5",
            "SETDMAREG FLUSHDMA REG2FLOP LOADIND ADDDMAREG SUBDMAREG MULDMAREG BITWOPDMAREG SHIFTDMAREG CMPDMAREG "
            "DMANOP ATINCGET ATINCGETPTR ATSWAP ATCAS STOREIND STOREREG LOADREG",
        ),
        ("B7", "WRCFG RDCFG SETC16 RMWCIB0 RMWCIB1 RMWCIB2 RMWCIB3 STREAMWRCFG CFGSHIFTMASK"),
    ],
)
def test_a_block_bit_holds_the_words_of_its_class(bit: str, mnemonics: str) -> None:
    held = {row.mnemonic for row in INSTRUCTIONS.values() if bit in row.block and len(row.block) < 9}
    assert held == set(mnemonics.split())


def test_b0_holds_everything_of_b2_to_b5_and_the_address_counters() -> None:
    b0 = {row.mnemonic for row in INSTRUCTIONS.values() if row.is_held_by(0x001)}
    b2_to_b5 = {row.mnemonic for row in INSTRUCTIONS.values() if row.is_held_by(0x03C)}
    counters = {f"{verb}{what}" for verb in ("SETADC", "INCADC", "ADDRCR") for what in ("XY", "ZW")}
    assert b0 - b2_to_b5 == counters | {"SETADC", "SETADCXX", "SETDVALID", "RSTDMA"}
    assert b2_to_b5 <= b0


def test_wait_words_are_held_by_each_bit_and_nop_only_by_all_nine() -> None:
    for bit in range(9):
        held = {row.mnemonic for row in INSTRUCTIONS.values() if row.is_held_by(1 << bit)}
        assert {"STALLWAIT", "SEMWAIT", "STREAMWAIT"} <= held
        assert "NOP" not in held
    assert instruction("NOP").is_held_by(0x1FF)
    assert not instruction("NOP").is_held_by(0x0FF)
    assert not any(row.is_held_by(0x1FF) for row in INSTRUCTIONS.values() if row.unit == "frontend")
    assert not any(row.is_held_by(0) for row in INSTRUCTIONS.values())


def test_matrix_and_vector_words_are_held_by_their_own_bit_alone() -> None:
    assert {row.block for row in INSTRUCTIONS.values() if row.unit == "matrix"} == {("B6",)}
    assert {row.block for row in INSTRUCTIONS.values() if row.unit == "vector"} == {("B8",)}


def test_cycle_numbers_are_given_where_the_documents_state_them() -> None:
    latencies = {"MVMUL": 5, "MOVA2D": 4, "SFPMAD": 2, "SFPABS": 1, "SETC16": 1, "CFGSHIFTMASK": 2}
    assert {m: TIMINGS[m][0].latency for m in latencies} == latencies
    assert TIMINGS["SHIFTXB"][0].occupancy == 2
    assert TIMINGS["UNPACR"][0].latency is None
    assert all(row.summary for row in INSTRUCTIONS.values())


def test_vector_instructions_alone_have_a_sub_unit() -> None:
    for row in INSTRUCTIONS.values():
        assert (row.sub_unit in SUB_UNITS) is (row.unit == "vector"), row.mnemonic


# Known words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "mnemonic", "operands"),
    [
        # Seed listings, as rules 002.17.1c, 003.6.2a and 001.11.1b read them.
        (0x5480000F, "SETADCZW", {"CntSetMask": 4, "BitMask": 15}),
        (0x45000038, "SETDMAREG", {"value": 0x0000, "RegIndex16b": 56}),
        (0x45002039, "SETDMAREG", {"value": 0x0020, "RegIndex16b": 57}),
        (0x4502003A, "SETDMAREG", {"value": 0x0200, "RegIndex16b": 58}),
        (0x4508003B, "SETDMAREG", {"value": 0x0800, "RegIndex16b": 59}),
        (0xB3FF0000, "RMWCIB0", {"Mask": 0xFF}),
        (0xB47F0000, "RMWCIB1", {"Mask": 0x7F}),
        (0xB3070001, "RMWCIB0", {"Mask": 0x07, "CfgRegAddr": 1}),
        (0xB4800001, "RMWCIB1", {"Mask": 0x80, "CfgRegAddr": 1}),
        (0xB5010001, "RMWCIB2", {"Mask": 0x01, "CfgRegAddr": 1}),
        (0xB6600001, "RMWCIB3", {"Mask": 0x60, "CfgRegAddr": 1}),
        # One word by hand from the field table for each layout with something unusual about it.
        (0x5E803C00, "SETADCXX", {"CntSetMask": 4, "x_end2": 15}),
        (0x450020B9, "SETDMAREG", {"InputSource": 4, "RegIndex16b": 57}),
        (0x66E041C5, "STOREIND", {"Size": 3, "OffsetIndex": 1, "DataRegIndex": 7, "AddrRegIndex": 5}),
        (0x664041C5, "STOREIND", {"SizeSel": 1, "OffsetIndex": 1, "DataRegIndex": 7, "AddrRegIndex": 5}),
        (0x662041C5, "STOREIND", {"StoreToSrcB": 1, "OffsetIndex": 1, "DataRegIndex": 7, "AddrRegIndex": 5}),
        (0x540C0000, "SETADCZW", {"ThreadOverride": 3}),
        (0x63400000, "ATSWAP", {"SingleDataReg": 1}),
        (0x61010000, "ATINCGET", {"IntWidth": 4}),
        (0xA2400001, "STALLWAIT", {"stall_res": 0x80, "wait_res": 1}),
        (0x42000041, "UNPACR", {"SetDatValid": 1, "Last": 1}),
    ],
)
def test_known_words(word: int, mnemonic: str, operands: dict[str, int]) -> None:
    decoded = decode(word)
    assert decoded.mnemonic == mnemonic
    selectors = decoded.form.selectors if decoded.form else {}
    assert {k: v for k, v in decoded.operands.items() if v and k not in selectors} == {
        k: v for k, v in operands.items() if v and k not in selectors
    }
    assert decoded.reserved_bits == 0
    assert encode(mnemonic, **operands) == word


def test_positional_operands_are_those_of_the_llk_macros() -> None:
    # No operand for the thread override or ATSWAP's single register; 0x20 goes to half 57 as in the seeds.
    assert encode("SETADCZW", 4, 0, 0, 0, 0, 15) == 0x5480000F
    assert encode("ATSWAP", 1, 0xFF, 4, 5) == 0x63BFC105
    assert encode("SETDMAREG", 0, 0x20, 0, 57) == 0x45002039
    assert encode("STOREIND", 1, 0, 1, 1, 0, 7, 5) == 0x66A041C5
    assert encode("UNPACR", 1, 0x11, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1) == 0x428880C1
    assert encode("PACR", 0, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0, 1) == 0x41010301


def test_a_macro_value_may_spill_into_a_zero_operand_but_not_into_a_set_one() -> None:
    assert encode("SETDMAREG", 0, 0xBEEF, 0, 57) == encode("SETDMAREG", value=0xBEEF, RegIndex16b=57)
    assert encode("SETDMAREG", 2, 0x3EEF, 0, 57) == encode("SETDMAREG", value=0xBEEF, RegIndex16b=57)
    with pytest.raises(AssemblyError, match=r"Payload_SigSel = 49151 .* shares set bits"):
        encode("SETDMAREG", 2, 0xBFFF, 0, 57)


def test_parts_name_ranges_inside_a_field() -> None:
    assert encode("UNPACR", Ch1Y=2, Ch0Z=1) == encode("UNPACR", AddrMode=0x81)
    assert decode(encode("UNPACR", AddrMode=0x81))["Ch1Y"] == 2
    assert decode(encode("SETADC", 4, 0, 0, 0x2ABCD))["ThreadOverride"] == 2
    with pytest.raises(AssemblyError, match=r"two operands for the bits of Ch1Y \[22:21\]"):
        encode("UNPACR", AddrMode=0, Ch1Y=2)


# Coding --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
@given(data=st.data())
def test_encode_and_decode_are_inverse(
    layout: tuple[Instruction, str | None, tuple[Field, ...]], data: st.DataObject
) -> None:
    row, form, fields = layout
    selectors = row.form(form).selectors if form else {}
    operands = {f.name: selectors.get(f.name, data.draw(st.integers(0, f.max), f.name)) for f in fields}
    reserved = data.draw(st.integers(0, 0xFFFFFF)) & ~union(fields)
    word = encode(row.mnemonic, reserved=reserved, **operands)
    expected = row.opcode << 24 | reserved
    for f in fields:
        expected |= operands[f.name] << f.lsb
    assert word == expected
    decoded = decode(word)
    assert (decoded.instruction, decoded.operands, decoded.reserved_bits) == (row, operands, reserved)
    assert (decoded.form.name if decoded.form else None) == form
    free = [f for f in fields if f.name not in selectors and f.name not in row.named_only]
    in_place = [operands[f.name] for f in free]
    rest = {name: operands[name] for name in row.named_only}
    assert encode(row.mnemonic, *in_place, form=form, reserved=reserved, **rest) == expected


@given(st.integers(0, 0xFFFFFFFF))
def test_decode_loses_no_bit_of_any_word(word: int) -> None:
    if BY_OPCODE[word >> 24] is None:
        with pytest.raises(AssemblyError, match="which no source defines"):
            decode(word)
        return
    decoded = decode(word)
    assert encode(decoded.mnemonic, reserved=decoded.reserved_bits, **decoded.operands) == word


def test_operands_left_out_are_zero_and_numpy_integers_are_integers() -> None:
    assert encode("UNPACR") == 0x42000000
    assert encode("SETDMAREG") == 0x45000000
    assert encode("STOREIND") == 0x66000000
    # A shift in uint8 would lose the value.
    assert encode("SETADCXX", np.uint8(4), np.uint8(15), x_start=np.int64(1)) == 0x5E803C01


def test_names_choose_the_form() -> None:
    assert encode("STOREIND", DataRegIndex=1) == encode("STOREIND", form="Src", DataRegIndex=1)
    assert encode("STOREIND", SizeSel=1) == encode("STOREIND", form="MMIO")
    assert encode("STOREIND", Size=0) == encode("STOREIND", MemHierSel=1) == encode("STOREIND", form="L1")
    assert encode("SETDMAREG", 0x20, 57) == encode("SETDMAREG", form="immediate", value=0x20, RegIndex16b=57)
    assert encode("SETDMAREG", InputSource=9) == encode("SETDMAREG", SetSignalsMode=1, InputSource=9) == 0x45004880


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mnemonic", "operands", "named", "message", "remedy"),
    [
        ("SETADCX", (), {}, "no instruction is called 'SETADCX'", "SETADCXX"),
        ("setadcxx", (), {}, "no instruction is called 'setadcxx'", "SETADCXX"),
        ("QWERTY", (), {}, "no instruction is called 'QWERTY'", "INSTRUCTIONS"),
        ("SETADCXX", (), {"x_ed": 1}, "SETADCXX has no operand 'x_ed'", "x_end2"),
        ("STOREIND", (), {"OfsetIndex": 1}, "STOREIND has no operand 'OfsetIndex'", "OffsetIndex"),
        ("NOP", (), {"x": 1}, "NOP has no operand 'x'", "It has no operands."),
        ("NOP", (1,), {}, "NOP takes at most 0 operands in place, 1 given", "none"),
        ("SETADCXX", (8,), {}, "CntSetMask = 8 (0x8) is out of range 0..7 (0x7): bits [23:21]", None),
        ("SETADCXX", (), {"x_end2": 1024}, "x_end2 = 1024 (0x400) is out of range 0..1023 (0x3FF): bits [19:10]", None),
        ("SETADCXX", (), {"x_end2": -1}, "x_end2 = -1 is out of range 0..1023", "value & 0x3FF"),
        ("SETADCXX", (1,), {"CntSetMask": 1}, "two operands for the bits of CntSetMask [23:21]", "once"),
        ("SETADCXX", (1.5,), {}, "CntSetMask must be an integer, not 1.5", "give its bits as an integer"),
        ("SETADCXX", (), {"x_start": "3"}, "x_start must be an integer, not '3'", "give its bits as an integer"),
        ("SETADCXX", (1, 2, 3, 4), {}, "at most 3 operands in place, 4 given", "CntSetMask, x_end2, x_start"),
        ("SETADCXX", (), {"form": "x"}, "SETADCXX has no forms", "Leave form out."),
        ("STOREIND", (), {"form": "l1"}, "STOREIND has no form 'l1'", "L1"),
        ("STOREIND", (), {"form": 3}, "STOREIND has no form 3", "L1, MMIO, Src"),
        ("STOREIND", (), {"form": "L1", "MemHierSel": 0}, "form L1 has MemHierSel=1, not 0", None),
        ("STOREIND", (1, 2, 3, 4, 5), {}, "which form of STOREIND is meant", "L1(Size, OffsetIndex"),
        ("SETDMAREG", (1, 2, 3), {}, "which form of SETDMAREG is meant", "immediate(value, RegIndex16b)"),
        ("SETDMAREG", (), {"value": 3, "SetSignalsMode": 1}, "which form of SETDMAREG is meant", "form="),
        ("UNPACR", (), {"reserved": 1}, "UNPACR reserved = 0x1 sets bits that are not reserved (0x004000)", "names"),
        ("UNPACR", (), {"reserved": -1}, "UNPACR reserved = -0x1 sets bits that are not reserved", "names"),
    ],
)
def test_encode_refuses(
    mnemonic: str, operands: tuple[int, ...], named: dict[str, int], message: str, remedy: str | None
) -> None:
    for _ in range(2):  # the second time, a plan is cached
        with pytest.raises(AssemblyError) as refusal:
            encode(mnemonic, *operands, **named)
        assert message in refusal.value.message
        assert (refusal.value.remedy is None) == (remedy is None)
        assert (remedy or "") in (refusal.value.remedy or "")


def test_decode_refuses_what_is_not_an_instruction_word() -> None:
    with pytest.raises(AssemblyError, match="0x00000013 has opcode 0x00, which no source defines"):
        decode(0x13)
    for word in (-1, 1 << 32):
        with pytest.raises(AssemblyError, match="not a 32-bit instruction word"):
            decode(word)


def test_fields_of_every_layout_can_be_asked_for_by_name() -> None:
    assert instruction("STOREIND").field("StoreToSrcB") == Field("StoreToSrcB", 21, 21)
    assert instruction("SETDMAREG").field("value").width == 16
    with pytest.raises(AssemblyError, match="UNPACR has no operand 'Ch2Y'"):
        instruction("UNPACR").field("Ch2Y")
