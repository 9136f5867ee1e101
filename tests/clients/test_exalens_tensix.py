"""The coprocessor under the unmodified tt-exalens 0.4.2: dumps with values, SrcA, Dst (`make test-clients`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from bhemu.isa.assembler import assemble
from bhemu.isa.registers import CONFIG_FIELDS

pytestmark = pytest.mark.clients

Script = Callable[[str], str]
BF16 = 5
"""Code of the format, in configuration fields."""


def cells(out: str) -> dict[str, list[str]]:
    """Rows of all tables in a dump: {name: the values behind it, of every table that has the name}."""
    found: dict[str, list[str]] = {}
    for line in out.splitlines():
        for table in re.split(r"│\s+│", line):
            name, *values = [column.strip() for column in table.strip("│ ").split("│")]
            if re.fullmatch(r"\w+", name):
                found.setdefault(name, []).extend(value for value in values if re.fullmatch(r"[\w.,-]+", value))
    return found


def test_dumps_show_what_is_there(script: Script) -> None:
    """Configuration by `tensix-reg`, GPRs and counters by instructions, which tt-exalens injects."""
    words = {
        1: ["SETDMAREG value=0x1234, RegIndex16b=26", "SETDMAREG value=0x5678, RegIndex16b=27"],
        0: ["SETRWC rwc_d=5, rwc_b=6, rwc_a=7, BitMask=7", "SETADC CntSetMask=1, DimensionIndex=1, Value=0x12"],
        2: ["SETRWC rwc_d=9, BitMask=4", "SETADC CntSetMask=4, ChannelIndex=1, DimensionIndex=2, Value=0x2b"],
    }
    program = [(assemble(text), thread) for thread, texts in words.items() for text in texts]
    out = script(
        f"""
from ttexalens.debug_tensix import TensixDebug
tensix = TensixDebug(core)
for word, thread in {program}:
    tensix.inject_instruction(word, thread)
for name, value in (("ALU_FORMAT_SPEC_REG2_Dstacc", 5), ("ALU_ACC_CTRL_Fp32_enabled", 1),
                    ("UNPACK_CONFIG0_out_data_format", 1), ("UNPACK_TILE_DESCRIPTOR1_y_dim", 77),
                    ("PACK_CONFIG01_out_data_format", 6), ("PACK_CONFIG01_l1_dest_addr", 0x1234)):
    command(f"tensix-reg {{name}} --write {{value}}")
for dump in ("alu", "unpack", "pack", "gpr -t 1", "rwc", "adc", "rwc -a 0x1000", "adc -a 0x1000"):
    command("tensix " + dump)
"""
    )
    shown = {part.partition("\n")[0]: cells(part) for part in out.split("Executing command: tensix ")[1:]}
    assert len(shown) == 8, out

    alu = shown["alu"]
    assert alu["Format_Dstacc"] == ["TensixDataFormat.Float16_b"]
    assert (alu["Fp32_enabled"], alu["SFPU_Fp32_enabled"]) == (["True"], ["False"])
    unpack = shown["unpack"]
    assert unpack["out_data_format"] == ["TensixDataFormat.Float16", "TensixDataFormat.Float32"]
    assert unpack["y_dim"] == ["0", "77"]
    pack = shown["pack"]
    assert pack["out_data_format"] == ["TensixDataFormat.Bfp8_b"]
    assert pack["l1_dest_addr"] == ["0x1234"]
    gpr = {name: values for name, values in shown["gpr -t 1"].items() if values not in (["0"], ["0x0"])}
    assert [int(value, 0) for values in gpr.values() for value in values] == [0x56781234], gpr
    for dump in ("rwc", "rwc -a 0x1000"):
        rwc = shown[dump]
        seen = [rwc[name] for name in ("rwc0_srca", "rwc0_srcb", "rwc0_dst", "rwc1_dst", "rwc2_dst")]
        assert seen[:2] + seen[3:] == [["0x7"], ["0x6"], ["0x0"], ["0x9"]], rwc
        assert set(seen[2]) == {"0x5"}, rwc
    for dump in ("adc", "adc -a 0x1000"):
        names = [f"{axis}_{part}" for axis in "xyzw" for part in ("counter", "cr")]
        adc = {name: sorted(int(value, 16) for value in shown[dump][name]) for name in names}
        zeros = [0] * 6  # unpacker 0, unpacker 1 and packer, two channels each
        set_ones = {"y_counter": 0x12, "y_cr": 0x12, "z_counter": 0x2B, "z_cr": 0x2B}
        assert adc == {name: sorted([*zeros[1:], set_ones.get(name, 0)]) for name in names}, adc


def test_dst_is_dumped_as_it_was_written(script: Script) -> None:
    out = script(
        """
from ttexalens.debug_tensix import TensixDebug
from ttexalens.register_store import TensixDataFormat as Format
tensix = TensixDebug(core)
def same(seen, expected):
    assert list(seen) == expected, [(i, a, b) for i, (a, b) in enumerate(zip(seen, expected)) if a != b][:4]
floats = [(i - 1024) / 8 for i in range(2048)]
tensix.write_regfile(2, floats, Format.Float32)
same(tensix.read_regfile(2, 2), floats)
whole = [-(2**31)] + [i * 104729 - 50_000_000 for i in range(1, 1023)] + [2**31 - 1]
tensix.write_regfile(2, whole, Format.Int32)
same(tensix.read_regfile(2, 1), whole)
# 16-bit rows through the debug array port; tt-exalens shows the two columns of a word the other way round
short = [float((37 * i + 11) % 251 - 125) for i in range(1024)]
tensix.write_regfile(2, short, Format.Float32)
tensix.register_store.write_register("ALU_FORMAT_SPEC_REG2_Dstacc", 5)
rows = [list(tensix.read_regfile(2))[i ^ 1] for i in range(16)]
same(rows, short[:16])
tensix.write_regfile(2, short, Format.Float32)
command("dr 2 -t 1")
"""
    )
    dump = out.partition("Executing command: dr 2 -t 1\n")[2]
    values = [float(text) for text in re.findall(r"(-?\d+\.\d+)\t", dump)]
    assert values == [float((37 * i + 11) % 251 - 125) for i in range(1024)]


def configuration() -> dict[int, int]:
    """Words that let unpacker 0 bring faces of BF16 from 0x20000 to SrcA."""
    sec = "THCON_SEC0"
    fields = {
        f"{sec}_REG0_TileDescriptor_in_data_format": BF16,
        f"{sec}_REG0_TileDescriptor_uncompressed": 1,
        f"{sec}_REG0_TileDescriptor_y_dim": 1,
        f"{sec}_REG0_TileDescriptor_z_dim": 4,
        f"{sec}_REG2_Out_data_format": BF16,
        f"{sec}_REG2_Throttle_mode": 2,
        f"{sec}_REG2_Disable_zero_compress_cntx0": 1,
        f"{sec}_REG5_Dest_cntx0_address": 4 * 16,  # four rows are subtracted (U8)
        f"{sec}_REG5_Tile_x_dim_cntx0": 256,
        f"{sec}_REG3_Base_address": 0x20000 // 16 - 1,  # one unit is added (rules I.4)
        "UNP0_ADDR_CTRL_ZW_REG_1_Zstride": 512,
        "ALU_FORMAT_SPEC_REG0_SrcA": BF16,
        "ALU_FORMAT_SPEC_REG2_Dstacc": BF16,
    }
    words: dict[int, int] = {}
    for name, value in fields.items():
        field = CONFIG_FIELDS[name]
        words[field.word] = words.get(field.word, 0) | value << field.lsb
    return words


def test_srca_is_dumped_as_it_was_unpacked(script: Script) -> None:
    """Two faces go into the two banks; tt-exalens shows one after the other, twice.

    It passes them through row 0 of Dst, and saves rows 0 to 3 in one register for even and odd columns, so that even
    columns come back as odd ones.
    """
    start = ["SETC16 setc16_reg=5, setc16_value=4", "SETC16 setc16_reg=41, setc16_value=0"]
    start += ["SETADCXY CntSetMask=3, BitMask=15", "SETADCZW CntSetMask=3, BitMask=15"]
    start += ["SETADCXX CntSetMask=3, x_end2=255, x_start=0"]
    face = "UNPACR Unpack_block_selection=0, Ch0Z=1, OvrdThreadId=1, SetDatValid=1, Last=1"
    script(
        f"""
import struct
from ttexalens.debug_tensix import TensixDebug
from ttexalens.register_store import TensixDataFormat as Format
tensix = TensixDebug(core)
before = [float(i % 100 - 50) for i in range(1024)]
tensix.write_regfile(2, before, Format.Float32)
values = [(i * 37 + 11) % 256 - 128.0 for i in range(512)]
lib.write_to_device(core, 0x20000, b"".join(struct.pack("<f", value)[2:] for value in values), context=context)
for word, value in {json.dumps(configuration())}.items():
    tensix.mem_access.write(0xFFEF0000 + 4 * int(word), value.to_bytes(4, "little"))
for word in {[assemble(text) for text in start]}:
    tensix.inject_instruction(word, 0)
for _ in range(2):
    tensix.inject_instruction({assemble(face)}, 0)
    pass_clocks(40)
shown = list(tensix.read_regfile("SRCA"))
seen = [shown[i ^ 1] for i in range(len(shown))]  # tt-exalens shows the two columns of a word the other way round
assert seen == values + values, [(i, a, b) for i, (a, b) in enumerate(zip(seen, values + values)) if a != b][:4]
tensix.register_store.write_register("ALU_FORMAT_SPEC_REG2_Dstacc", 0)
dst = list(tensix.read_regfile(2, 1))
assert dst[:64] == [before[i | 1] for i in range(64)], dst[:64]
assert dst[64:] == before[64:]
"""
    )
