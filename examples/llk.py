"""Steps that the examples share: what a kernel library's headers would give.

The sequences are those of a real kernel: configure once; then, a tile at a time, two configuration contexts for the
unpackers in turn, the semaphore MATH_PACK and the two halves of Dst between math and pack.
"""

from __future__ import annotations

from bhemu import Block, Condition, Core, Counters, DataFormat, Semaphore, Tensor, WhileSemaphore

FACE_ROWS = 16
FACE_DATUMS = 256
TILE_DATUMS = 1024
TILE_ROWS = 64
"""Dst rows of a 32x32 tile."""
HALF = 512
"""Dst rows of one half: math fills one while pack empties the other."""

PC_BUFFERED_CONTEXTS = 2


# --- unpack
# ---------------------------------------------------------------------------------------------------------------


def configure_unpacker(core: Core, unpacker: int, tensor: Tensor, source: DataFormat | None = None) -> None:
    """Tell unpacker 0 (SrcA) or 1 (SrcB) the tensor's format in L1 and its format in the source register."""
    sec = f"THCON_SEC{unpacker}"
    out = source or tensor.format
    fields = {
        f"{sec}_REG0_TileDescriptor_in_data_format": tensor.format.code,
        f"{sec}_REG0_TileDescriptor_uncompressed": 1,
        f"{sec}_REG0_TileDescriptor_y_dim": 1,
        f"{sec}_REG0_TileDescriptor_z_dim": 4,
        f"{sec}_REG2_Out_data_format": out.code,
        f"{sec}_REG2_Throttle_mode": 2,
        f"UNP{unpacker}_ADDR_CTRL_ZW_REG_1_Zstride": FACE_DATUMS * 2,
    }
    fields |= {f"{sec}_REG2_Disable_zero_compress_cntx{context}": 1 for context in range(8)}
    if unpacker == 0:
        # Unpacker 0 subtracts four rows of 16 datums from its output address, so that is where row 0 lies (U8).
        for context in range(PC_BUFFERED_CONTEXTS):
            fields[f"THCON_SEC0_REG5_Dest_cntx{context}_address"] = 4 * 16
            fields[f"THCON_SEC0_REG5_Tile_x_dim_cntx{context}"] = FACE_DATUMS
        fields["ALU_FORMAT_SPEC_REG0_SrcA"] = out.code
    else:
        fields["THCON_SEC1_REG0_TileDescriptor_x_dim"] = FACE_DATUMS
        fields["ALU_FORMAT_SPEC_REG1_SrcB"] = out.code
    core.config.write(fields)


def start_unpack(core: Core, datums: int) -> None:
    """Reset the unpackers' counters; each UNPACR brings `datums` datums."""
    core.config["SRCA_SET_SetOvrdWithAddr"] = 1
    core.SETC16(setc16_reg=41, setc16_value=0)  # both unpackers start with context 0
    core.SETADCXY(CntSetMask=Counters.UNPACK0 | Counters.UNPACK1, BitMask=0b1111)
    core.SETADCZW(CntSetMask=Counters.UNPACK0 | Counters.UNPACK1, BitMask=0b1111)
    core.SETADCXX(CntSetMask=Counters.UNPACK0 | Counters.UNPACK1, x_end2=datums - 1, x_start=0)
    core.SEMINIT(max_value=PC_BUFFERED_CONTEXTS, init_value=0, sem_sel=Semaphore.UNPACK_SYNC.mask)
    core.wait_idle()


class Unpack:
    """Unpacks tiles with the two configuration contexts in turn, so that one is written while the other is in use."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.context = 0

    def tiles(self, addresses: dict[int, int], words: list[int]) -> None:
        """Unpack one tile for each unpacker.

        Args:
            addresses: L1 byte address by unpacker.
            words: the UNPACR words to issue.
        """
        core = self.core
        core.wait_until(
            lambda: bool(core.tile.semaphores[Semaphore.UNPACK_SYNC] < PC_BUFFERED_CONTEXTS), "a free unpacker context"
        )
        suffix = "Base_cntx1_address" if self.context else "Base_address"
        # The unpacker adds one 16-byte unit for a header that nobody stores, hence the - 1 (rules I.4).
        core.config.store({f"THCON_SEC{u}_REG3_{suffix}": address // 16 - 1 for u, address in addresses.items()})
        core.semaphore_post(Semaphore.UNPACK_SYNC)
        core.SETADCZW(CntSetMask=Counters.UNPACK0 | Counters.UNPACK1, BitMask=0b1111)
        core.STALLWAIT(stall_res=Block.UNPACK, wait_res=Condition.TRISC_CFG)
        for word in words:
            core.issue(word)
        core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.UNPACK0 | Condition.UNPACK1)
        core.SEMGET(sem_sel=Semaphore.UNPACK_SYNC.mask)
        self.context ^= 1
        core.SETC16(setc16_reg=41, setc16_value=0x0101 * self.context)


def unpacr(core: Core, unpacker: int, *, next_face: bool = False) -> int:
    """An UNPACR that fills the current bank and hands it to the matrix unit; `next_face` steps to the next face in
    L1."""
    return core.word.UNPACR(Unpack_block_selection=unpacker, Ch0Z=int(next_face), OvrdThreadId=1, SetDatValid=1, Last=1)


# --- math
# -----------------------------------------------------------------------------------------------------------------


def configure_math(core: Core, *, fp32: bool) -> None:
    """Choose the view of Dst and prepare the handshake with pack."""
    core.config.write({"ALU_ACC_CTRL_Fp32_enabled": int(fp32), "ALU_ACC_CTRL_SFPU_Fp32_enabled": int(fp32)})
    core.SEMINIT(max_value=2, init_value=0, sem_sel=Semaphore.MATH_PACK.mask)
    core.ZEROACC(clear_mode=3)
    core.SETRWC(BitMask=0b1111)


class DstHalves:
    """Math's side of the two halves of Dst."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.half = 0

    def acquire(self) -> None:
        """Wait until pack has emptied the half, and point the matrix and vector unit at it."""
        self.core.SEMWAIT(
            stall_res=Block.MATH | Block.SFPU, sem_sel=Semaphore.MATH_PACK.mask, wait_sem_cond=WhileSemaphore.MAX
        )
        self.core.config["DEST_TARGET_REG_CFG_MATH_Offset"] = self.half * HALF

    def commit(self) -> None:
        """Hand the half to pack."""
        self.core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.MATH | Condition.SFPU)
        self.core.SEMPOST(sem_sel=Semaphore.MATH_PACK.mask)
        self.half ^= 1


def set_address_modifier(core: Core, index: int, **fields: int) -> None:
    """Set an address modifier of the matrix and vector unit, fields as the register map names them: `SrcAIncr=8`."""
    names = ("SrcAIncr", "SrcACR", "SrcAClear", "SrcBIncr", "SrcBCR", "SrcBClear")
    values = {f"ADDR_MOD_AB_SEC{index}_{name}": fields.pop(name, 0) for name in names}
    names = ("DestIncr", "DestCR", "DestClear", "FidelityIncr", "FidelityClear")
    values |= {f"ADDR_MOD_DST_SEC{index}_{name}": fields.pop(name, 0) for name in names}
    if fields:
        raise ValueError(f"no such address modifier fields: {', '.join(fields)}")
    core.config.write(values)


# --- pack
# -----------------------------------------------------------------------------------------------------------------

TMP_LOW, TMP_HIGH = 24, 25
"""Halves of GPR 12, in which the pack thread makes addresses."""
TMP = TMP_LOW // 2


def configure_pack(core: Core, tensor: Tensor, *, intermediate: DataFormat | None = None, fp32: bool = False) -> None:
    """Tell the packer where datums stand in Dst, and the formats on its way to L1.

    Args:
        tensor: what is written.
        intermediate: format between Dst and the late conversion (default: the tensor's own).
        fp32: Dst holds 32-bit datums.
    """
    inner = intermediate or tensor.format
    size = 4 if inner.bits == 32 else 2
    core.config.write(
        {
            "ALU_FORMAT_SPEC_REG2_Dstacc": inner.code,
            "PCK0_ADDR_CTRL_XY_REG_0_Ystride": 16 * size,
            "PCK0_ADDR_CTRL_ZW_REG_0_Zstride": FACE_DATUMS * size,
            "PCK0_ADDR_CTRL_ZW_REG_0_Wstride": TILE_DATUMS * size,
            "PCK_DEST_RD_CTRL_Read_32b_data": int(fp32),
            "PCK_EDGE_OFFSET_SEC0_mask": 0xFFFF,
            "PACK_COUNTERS_SEC0_pack_reads_per_xy_plane": 1,
            "THCON_SEC0_REG1_Disable_zero_compress": 1,
            "THCON_SEC0_REG1_In_data_format": inner.code,
            "THCON_SEC0_REG1_Out_data_format": tensor.format.code,
            "THCON_SEC0_REG1_Exp_section_size": 4 if tensor.format.is_bfp else 0,
            # Four rows a PACR; at the end of a face the next face, at the end of the tile all counters to zero (P12).
            "ADDR_MOD_PACK_SEC0_YsrcIncr": 4,
            "ADDR_MOD_PACK_SEC1_YsrcClear": 1,
            "ADDR_MOD_PACK_SEC1_ZsrcClear": 1,
            "ADDR_MOD_PACK_SEC2_YsrcClear": 1,
            "ADDR_MOD_PACK_SEC2_ZsrcIncr": 1,
        }
    )
    core.SETADCXY(CntSetMask=Counters.PACK, BitMask=0b1111)
    core.SETADCZW(CntSetMask=Counters.PACK, BitMask=0b1111)
    core.SETADCXX(CntSetMask=Counters.PACK, x_end2=15, x_start=0)
    core.set_mop_double_loop(
        outer=4,
        inner=4,
        loop=core.word.PACR(AddrMode=0),
        last_of_inner=core.word.PACR(AddrMode=2),
        last=core.word.PACR(AddrMode=1, Last=1),
    )


class Pack:
    """Packs tiles out of the two halves of Dst."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.half = 0

    def wait_for_math(self) -> None:
        """Wait until math has filled a half."""
        self.core.SEMWAIT(stall_res=Block.TDMA, sem_sel=Semaphore.MATH_PACK.mask, wait_sem_cond=WhileSemaphore.ZERO)

    def tile(self, address: int, index: int = 0) -> None:
        """Pack tile `index` of the half to an L1 byte address."""
        core = self.core
        core.SETADC(CntSetMask=Counters.PACK, ChannelIndex=0, DimensionIndex=3, Value=index)
        core.config["DEST_TARGET_REG_CFG_PACK_SEC0_Offset"] = self.half * HALF
        unit = address // 16 - 1  # the packer adds one unit, as the unpacker does
        core.SETDMAREG(value=unit & 0xFFFF, RegIndex16b=TMP_LOW)
        core.SETDMAREG(value=unit >> 16, RegIndex16b=TMP_HIGH)
        core.STALLWAIT(stall_res=Block.CFG, wait_res=Condition.THCON | Condition.PACK)
        core.WRCFG(GprAddress=TMP, CfgReg=69)
        core.DMANOP()
        core.MOP(mop_type=1)
        core.tile_done()

    def release(self) -> None:
        """Clear the half and give it back to math."""
        core = self.core
        core.STALLWAIT(stall_res=Block.MATH, wait_res=Condition.PACK)
        core.ZEROACC(clear_mode=2, where=self.half)
        core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.PACK | Condition.MATH)
        core.SEMGET(sem_sel=Semaphore.MATH_PACK.mask)
        self.half ^= 1
