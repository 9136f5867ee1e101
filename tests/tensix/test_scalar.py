"""Scalar unit: GPRs, immediates, arithmetic and packer state (I.11; rows 003.1, 003.2, 003.6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.api.tile import Tile
from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import encode

pytestmark = pytest.mark.plain

THREAD = 2
ALL_ONES = 0xFFFFFFFF
words_of_32_bits = st.integers(0, ALL_ONES)


def gpr(tile: Tile, thread: int = THREAD) -> list[int]:
    return [int(v) for v in tile.record.gpr[thread]]


@pytest.mark.rule("003.1e", "003.2.1b")
@pytest.mark.parametrize("half", [0, 1, 62, 63, 126, 127])
def test_setdmareg_writes_one_half_of_an_own_gpr(tile: Tile, half: int) -> None:
    tile.record.gpr[...] = 0x11112222
    tile.execute(THREAD, encode("SETDMAREG", value=0xBEEF, RegIndex16b=half))
    assert gpr(tile)[half // 2] == (0xBEEF2222 if half % 2 else 0x1111BEEF)
    assert (tile.record.gpr == 0x11112222).sum() == 3 * 64 - 1


@pytest.mark.rule("003.2.1a", "003.7", "003.6.2a")
def test_setdmareg_words_of_the_seed_carry_16_bits(tile: Tile) -> None:
    """The four words set GPR 28 and 29 to the Y, Z and W strides 32, 512 and 2048; the WRCFG words store them."""
    tile.execute(THREAD, [0x45000038, 0x45002039, 0x4502003A, 0x4508003B])
    assert gpr(tile)[28:30] == [0x00200000, 0x08000200]
    tile.execute(THREAD, [0xB01C000C, 0xB01D000D])  # 003.6.2d
    assert [int(v) for v in tile.record.config[0, 12:14]] == [0x00200000, 0x08000200]


@pytest.mark.rule("003.1f")
def test_gpr_0_is_an_ordinary_register(tile: Tile) -> None:
    tile.execute(THREAD, encode("SETDMAREG", value=1, RegIndex16b=0))
    assert gpr(tile)[0] == 1


@pytest.mark.rule("003.1c", "003.1d")
def test_a_thread_reads_and_writes_its_own_gprs_only(tile: Tile) -> None:
    tile.record.gpr[0, 1], tile.record.gpr[1, 1], tile.record.gpr[2, 1] = 10, 20, 30
    for thread in range(3):
        tile.execute(thread, encode("ADDDMAREG", 1, 2, 5, 1))
    assert [gpr(tile, thread)[2] for thread in range(3)] == [15, 25, 35]


@pytest.mark.rule("003.2.5")
def test_dmanop_changes_nothing(tile: Tile) -> None:
    tile.record.gpr[...] = 7
    tile.execute(THREAD, encode("DMANOP"))
    assert (tile.record.gpr == 7).all()


ARITHMETIC = {
    ("ADDDMAREG", None): lambda a, b: a + b,  # 003.2.2a
    ("SUBDMAREG", None): lambda a, b: a - b,  # 003.2.4
    ("MULDMAREG", None): lambda a, b: (a & 0xFFFF) * (b & 0xFFFF),  # 003.2.3
    ("BITWOPDMAREG", 0): lambda a, b: a & b,  # 003.8
    ("BITWOPDMAREG", 1): lambda a, b: a | b,
    ("BITWOPDMAREG", 2): lambda a, b: a ^ b,
    ("SHIFTDMAREG", 0): lambda a, b: a << (b % 32),
    ("SHIFTDMAREG", 1): lambda a, b: a >> (b % 32),
    ("CMPDMAREG", 0): lambda a, b: int(a > b),
    ("CMPDMAREG", 1): lambda a, b: int(a < b),
    ("CMPDMAREG", 2): lambda a, b: int(a == b),
}


@pytest.mark.rule("003.2")
@pytest.mark.parametrize(("mnemonic", "operation"), ARITHMETIC)
@settings(max_examples=60)
@given(left=words_of_32_bits, right=words_of_32_bits, constant=st.integers(0, 63), same=st.booleans())
def test_arithmetic_of_gprs_and_constants_wraps_at_32_bits(
    shared_tile: Tile, mnemonic: str, operation: int | None, left: int, right: int, constant: int, same: bool
) -> None:
    tile = shared_tile
    tile.reset()
    right = left if same else right
    tile.record.gpr[THREAD, 50], tile.record.gpr[THREAD, 63] = left, right
    selected = {} if operation is None else {"OpSel": operation}
    operands = {"ResultRegIndex": 7, "OpARegIndex": 50, **selected}
    model = ARITHMETIC[mnemonic, operation]
    tile.execute(THREAD, encode(mnemonic, OpBRegIndex=63, **operands))
    assert gpr(tile)[7] == model(left, right) & ALL_ONES
    tile.execute(THREAD, encode(mnemonic, OpBisConst=1, OpBRegIndex=constant, **operands))
    assert gpr(tile)[7] == model(left, constant) & ALL_ONES


@pytest.mark.parametrize(("mnemonic", "first"), [("BITWOPDMAREG", 3), ("SHIFTDMAREG", 2), ("CMPDMAREG", 3)])
def test_undefined_operations_are_refused(tile: Tile, mnemonic: str, first: int) -> None:
    for operation in range(first, 8):
        with pytest.raises(UndefinedBehavior, match=f"OpSel {operation} selects no operation"):
            tile.execute(THREAD, encode(mnemonic, OpSel=operation, ResultRegIndex=1))


# --- SETDMAREG of packer state --------------------------------------------------------------------

HISTOGRAM = list(range(100, 132))


@pytest.fixture
def packed(tile: Tile) -> Tile:
    """A tile whose packer has accounts to read."""
    pack = tile.record.pack
    pack["acc_tile_size"] = [1, 2, 0x10123]
    pack["last_tile_size"] = 0x88
    pack["last_thread"] = THREAD
    pack["all_zero_flags"] = 0x80000005
    pack["histogram"] = HISTOGRAM
    pack["histogram_max"] = 0x9A
    tile.config["THCON_SEC0_REG1_Out_data_format"] = 6
    tile.config["THCON_SEC0_REG1_Disable_zero_compress"] = 1
    tile.record.gpr[...] = 0x77777777
    return tile


def word(first: int) -> int:
    return int.from_bytes(bytes(HISTOGRAM[first : first + 4]), "little")


SOURCES = {
    0: [0x01230088, 0, 0, 0],  # 003.2.1d
    1: [0x80000005, 0, 0, 0],
    2: [0x89, 0x00160000, 0x80000005, 0],  # 003.2.1e
    3: [0, 0, 0, 0],
    4: [0, 0, 0, 0],
    5: [0, 0, 0, 0],
    6: [word(0), word(4), word(8), word(12)],  # 003.2.1f
    7: [word(16), word(20), word(24), word(28)],
    8: [1, 0, 0, 0],  # 003.2.1g
    9: [0x9A, 0, 0, 0],
    **{source: [0, 0, 0, 0] for source in range(10, 16)},  # 003.2.1h
}


@pytest.mark.rule("003.2.1c")
@pytest.mark.parametrize("source", SOURCES)
def test_setdmareg_copies_a_signal_source_as_four_words(packed: Tile, source: int) -> None:
    signal = encode("SETDMAREG", form="signal", ResultSize=2, InputSource=source, RegIndex16b=2 * 10)
    packed.execute(THREAD, signal)
    assert gpr(packed)[8:12] == SOURCES[source]
    assert (packed.record.gpr == 0x77777777).sum() == 3 * 64 - 4


@pytest.mark.rule("003.2.1i")
@pytest.mark.parametrize("half", range(8))
def test_result_size_0_moves_any_half_to_any_half_and_1_a_word(packed: Tile, half: int) -> None:
    packed.execute(
        THREAD, encode("SETDMAREG", form="signal", ResultSize=0, InputSource=6, InputHalfReg=half, RegIndex16b=21)
    )
    packed.execute(
        THREAD, encode("SETDMAREG", form="signal", ResultSize=1, InputSource=6, InputHalfReg=half, RegIndex16b=25)
    )
    source = SOURCES[6][half // 2]
    assert gpr(packed)[10] == (source >> 16 * (half % 2) & 0xFFFF) << 16 | 0x7777
    assert gpr(packed)[12] == source
    assert (packed.record.gpr == 0x77777777).sum() == 3 * 64 - 2


@pytest.mark.rule("003.2.1i")
def test_result_size_3_writes_the_header_fields_only(packed: Tile) -> None:
    packed.execute(THREAD, encode("SETDMAREG", form="signal", ResultSize=3, InputSource=2, RegIndex16b=2 * 13))
    assert gpr(packed)[12:16] == [0x77770089, 0x77167777, 0x80000005, 0x77777777]


@pytest.mark.rule("003.2.1d")
def test_the_last_tile_size_is_that_of_the_thread_that_packed(packed: Tile) -> None:
    packed.execute(1, encode("SETDMAREG", form="signal", ResultSize=1, InputSource=0, RegIndex16b=0))
    assert gpr(packed, 1)[0] == 0x00020000


@pytest.mark.rule("003.2.1g")
@pytest.mark.parametrize(("packers", "sizes"), [(0, [1, 2, 0x10123]), (1, [0, 0, 0]), (14, [1, 2, 0x10123])])
def test_source_8_clears_the_accumulated_size_of_a_selected_packer(
    packed: Tile, packers: int, sizes: list[int]
) -> None:
    packed.execute(THREAD, encode("SETDMAREG", form="signal", WhichPackers=packers, InputSource=8))
    assert packed.record.pack["acc_tile_size"].tolist() == sizes


@pytest.mark.rule("003.2.1f")
def test_packers_that_blackhole_does_not_have_have_no_histogram(packed: Tile) -> None:
    packed.execute(
        THREAD, encode("SETDMAREG", form="signal", ResultSize=2, WhichPackers=1, InputSource=6, RegIndex16b=0)
    )
    assert gpr(packed)[:4] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "instruction",
    [
        encode("SETDMAREG", form="signal", InputSource=10, reserved=1 << 19),
        encode("ADDDMAREG", reserved=1 << 18),
        encode("DMANOP", reserved=1),
        encode("LOADIND", reserved=1 << 21),
        encode("ATCAS", reserved=1 << 22),
    ],
)
def test_reserved_bits_are_refused(tile: Tile, instruction: int) -> None:
    with pytest.raises(UndefinedBehavior, match="belong to no operand"):
        tile.execute(THREAD, instruction)


def test_rstdma_is_refused_because_nobody_documents_it(tile: Tile) -> None:
    with pytest.raises(MissingSpecification, match="RSTDMA"):
        tile.execute(THREAD, encode("RSTDMA"))
