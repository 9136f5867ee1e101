"""States and instruction scripts that `bhemu bench` times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.formats import DataFormat
from bhemu.isa.instructions import encode
from bhemu.isa.names import Block, Condition, Counters, Semaphore, WhileSemaphore
from bhemu.machine.dst import cell_of_bf16
from bhemu.machine.kernel import plain

A_ADDRESS: Final = 0x10000
B_ADDRESS: Final = 0x12000
OUT_ADDRESS: Final = 0x14000
SCRIPT_ADDRESS: Final = 0x170000

UNPACR_FACE: Final = encode("UNPACR", OvrdThreadId=1, Last=1)
UNPACR_A: Final = encode("UNPACR", OvrdThreadId=1, SetDatValid=1, Last=1)
UNPACR_B: Final = encode("UNPACR", Unpack_block_selection=1, OvrdThreadId=1, SetDatValid=1, Last=1)
PACR_LAST: Final = encode("PACR", Last=1)


def nothing(tile: Tile) -> None:
    """The state after reset."""


def prepare_unpack(in_format: str, out_format: str | None = None, *, datums: int = 256) -> Callable[[Tile], None]:
    """Both unpackers configured for tiles of `in_format`; each UNPACR brings `datums` datums."""
    source = DataFormat.parse(in_format)
    target = DataFormat.parse(out_format) if out_format else source

    def prepare(tile: Tile) -> None:
        values = np.random.default_rng(1).standard_normal((32, 32)).astype(np.float32)
        tile.write_tensor(A_ADDRESS, values, source)
        tile.write_tensor(B_ADDRESS, values.T.copy(), source)
        config = tile.config
        for unpacker, address in ((0, A_ADDRESS), (1, B_ADDRESS)):
            sec = f"THCON_SEC{unpacker}"
            config[f"{sec}_REG0_TileDescriptor_in_data_format"] = source.code
            config[f"{sec}_REG0_TileDescriptor_uncompressed"] = 1
            config[f"{sec}_REG0_TileDescriptor_x_dim"] = 256
            config[f"{sec}_REG0_TileDescriptor_y_dim"] = 1
            config[f"{sec}_REG0_TileDescriptor_z_dim"] = 4
            config[f"{sec}_REG2_Out_data_format"] = target.code
            config[f"{sec}_REG2_Disable_zero_compress_cntx0"] = 1
            config[f"{sec}_REG3_Base_address"] = address // 16 - 1
        config["THCON_SEC0_REG5_Dest_cntx0_address"] = 64
        config["THCON_SEC0_REG5_Tile_x_dim_cntx0"] = 256
        config["ALU_FORMAT_SPEC_REG0_SrcA"] = target.code
        config["ALU_FORMAT_SPEC_REG1_SrcB"] = target.code
        config["SRCA_SET_SetOvrdWithAddr"] = 1
        both = Counters.UNPACK0 | Counters.UNPACK1
        tile.execute(0, encode("SETADCXX", CntSetMask=both, x_end2=datums - 1, x_start=0))

    return prepare


def prepare_math(data_format: str, *, fp32: bool = False) -> Callable[[Tile], None]:
    """Both source banks filled and owned by the matrix unit, LRegs and Dst with ordinary numbers."""

    def prepare(tile: Tile) -> None:
        prepare_unpack(data_format, datums=1024)(tile)
        tile.config["ALU_ACC_CTRL_Fp32_enabled"] = int(fp32)
        tile.config["ALU_ACC_CTRL_SFPU_Fp32_enabled"] = int(fp32)
        tile.execute(0, [UNPACR_A, UNPACR_B])
        rng = np.random.default_rng(2)
        tile.lregs[:8] = rng.standard_normal((8, 32)).astype(np.float32).view(np.uint32)

    return prepare


def prepare_pack(intermediate: str, out_format: str, *, fp32: bool = False) -> Callable[[Tile], None]:
    """The packer configured to write tiles, Dst filled with ordinary BF16 numbers."""
    inner, outer = DataFormat.parse(intermediate), DataFormat.parse(out_format)

    def prepare(tile: Tile) -> None:
        values = np.random.default_rng(3).standard_normal((1024, 16)).astype(np.float32).view(np.uint32) >> 16
        tile.dst.cells[...] = plain(cell_of_bf16)(values).astype(np.uint16)
        config = tile.config
        config["ALU_FORMAT_SPEC_REG2_Dstacc"] = inner.code
        config["PCK0_ADDR_CTRL_XY_REG_0_Ystride"] = 32
        config["PCK0_ADDR_CTRL_ZW_REG_0_Zstride"] = 512
        config["PCK0_ADDR_CTRL_ZW_REG_0_Wstride"] = 2048
        config["PCK_DEST_RD_CTRL_Read_32b_data"] = int(fp32)
        config["PCK_EDGE_OFFSET_SEC0_mask"] = 0xFFFF
        config["PACK_COUNTERS_SEC0_pack_reads_per_xy_plane"] = 1
        config["THCON_SEC0_REG1_Disable_zero_compress"] = 1
        config["THCON_SEC0_REG1_In_data_format"] = inner.code
        config["THCON_SEC0_REG1_Out_data_format"] = outer.code
        config["THCON_SEC0_REG1_Exp_section_size"] = 4 if outer.is_bfp else 0
        config["THCON_SEC0_REG1_L1_Dest_addr"] = OUT_ADDRESS // 16 - 1
        pack = config.for_thread(2)
        pack["ADDR_MOD_PACK_SEC1_YsrcIncr"] = 4
        pack["ADDR_MOD_PACK_SEC2_YsrcClear"] = 1
        pack["ADDR_MOD_PACK_SEC2_ZsrcIncr"] = 1
        pack["ADDR_MOD_PACK_SEC3_YsrcClear"] = 1
        pack["ADDR_MOD_PACK_SEC3_ZsrcClear"] = 1
        tile.execute(2, encode("SETADCXX", CntSetMask=Counters.PACK, x_end2=15, x_start=0))

    return prepare


# Address modifiers of MVMUL that walk through the faces of both tiles; see examples/matmul.py.
_MODIFIERS: Final = {
    0: (0x0800, 0x008),
    1: (0x4010, 0x008),
    2: (0x6040, 0x008),
    4: (0x7060, 0x400),
    5: (0xC0C0, 0x2C00),
}


def prepare_matmul(tile: Tile, phases: int, fp32: bool) -> list[tuple[int, int]]:
    """Everything configured; returns the words of one tile product: (thread, word)."""
    prepare_pack("bf16", "bf16", fp32=fp32)(tile)
    prepare_unpack("bf16", datums=1024)(tile)
    tile.config["ALU_ACC_CTRL_Fp32_enabled"] = int(fp32)
    math = [encode("ZEROACC", clear_mode=3)]
    for index, (sources, dst) in _MODIFIERS.items():
        math.append(encode("SETC16", setc16_reg=12 + index, setc16_value=sources))
        math.append(encode("SETC16", setc16_reg=28 + index, setc16_value=dst))
    math.append(encode("SEMINIT", max_value=2, init_value=0, sem_sel=Semaphore.MATH_PACK.mask))
    math.append(encode("REPLAY", start_idx=16, len=15, load_mode=1))
    math += [encode("MVMUL", addr_mode=modifier) for modifier in (0, 1, 0, 2, 0, 1, 0, 4, 0, 1, 0, 2, 0, 1, 0)]
    tile.execute(1, math)
    nop = encode("NOP")
    body = encode("REPLAY", start_idx=16, len=15)
    tile.record.frontend.mop_config[1] = [phases, 1, nop, encode("MVMUL", addr_mode=5), nop, body, nop, body, body]
    rows = encode("PACR", AddrMode=1)
    tile.record.frontend.mop_config[2] = [
        4,
        4,
        nop,
        nop,
        nop,
        rows,
        nop,
        encode("PACR", AddrMode=3, Last=1),
        encode("PACR", AddrMode=2),
    ]
    mask = Semaphore.MATH_PACK.mask
    return [
        (0, UNPACR_A),
        (0, UNPACR_B),
        (1, encode("SEMWAIT", stall_res=Block.MATH, sem_sel=mask, wait_sem_cond=WhileSemaphore.MAX)),
        (1, encode("MOP", mop_type=1)),
        (1, encode("SETRWC", clear_ab_vld=3, BitMask=0b1111)),
        (1, encode("STALLWAIT", stall_res=Block.SYNC, wait_res=Condition.MATH)),
        (1, encode("SEMPOST", sem_sel=mask)),
        (2, encode("SEMWAIT", stall_res=Block.TDMA, sem_sel=mask, wait_sem_cond=WhileSemaphore.ZERO)),
        (2, encode("MOP", mop_type=1)),
        (2, encode("STALLWAIT", stall_res=Block.MATH, wait_res=Condition.PACK)),
        (2, encode("ZEROACC", clear_mode=2, where=0)),
        (2, encode("SEMGET", sem_sel=mask)),
    ]


def check_matmul(tile: Tile) -> None:
    """Raise AssertionError unless the last product in L1 is about right (a bench of wrong results is worthless)."""
    a = tile.read_tensor(A_ADDRESS, (32, 32), "bf16").astype(np.float64)
    b = tile.read_tensor(B_ADDRESS, (32, 32), "bf16").astype(np.float64)
    got = tile.read_tensor(OUT_ADDRESS, (32, 32), "bf16").astype(np.float64)
    exact = b @ a
    if np.abs(got - exact).max() > 0.1 * np.abs(exact).max():  # LoFi drops the lower bits of both factors
        raise AssertionError("the product is wrong")
