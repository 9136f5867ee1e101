"""Add 1.0 to every datum on the vector unit. The result is float32(x) + 1 cut to BF16, bit for bit."""

import llk
import numpy as np

from bhemu import Block, Condition, Program

ONE = 10
"""LReg 10 holds 1.0 (math V1)."""
NEXT_COLUMNS = 7
"""Address modifier that steps to the other columns, then to the next four rows (math V2)."""

program = Program("add 1.0 on the vector unit")
program.dimension("M", 320)
program.dimension("N", 32)
a = program.input("a", ("M", "N"), "bf16")
c = program.output("c", ("M", "N"), "bf16")


@program.reference
def reference(a):
    return np.asarray(a) + 1.0


@program.unpack
def unpack(core):
    llk.configure_unpacker(core, 0, a)
    llk.start_unpack(core, llk.FACE_DATUMS)
    unpacker = llk.Unpack(core)
    face = llk.unpacr(core, 0, next_face=True)
    for tile in range(a.tiles):
        unpacker.tiles({0: a.tile_address(tile)}, [face] * 4)


@program.math
def math(core):
    llk.configure_math(core, fp32=False)
    llk.set_address_modifier(core, 0, SrcAIncr=8, DestIncr=8)
    llk.set_address_modifier(core, 1, SrcAClear=1, DestIncr=8)
    llk.set_address_modifier(core, NEXT_COLUMNS, DestIncr=2)
    llk.set_address_modifier(core, 3)
    with core.record(start=0):
        core.SFPLOAD(lreg_ind=0, instr_mod0=0, sfpu_addr_mode=3)
        core.SFPADD(lreg_src_a=ONE, lreg_src_b=ONE, lreg_src_c=0, lreg_dest=0)
        core.SFPNOP()
        core.SFPSTORE(lreg_ind=0, instr_mod0=0, sfpu_addr_mode=NEXT_COLUMNS)
    core.set_mop_double_loop(outer=1, inner=32, loop=core.word.REPLAY(start_idx=0, len=4))
    dst = llk.DstHalves(core)
    for _ in range(a.tiles):
        dst.acquire()
        for _face in range(4):
            core.MOVA2D(instr_mod=2, addr_mode=0)
            core.MOVA2D(instr_mod=2, addr_mode=1)
            core.SETRWC(clear_ab_vld=1)
        core.SETRWC(BitMask=0b0100)
        core.STALLWAIT(stall_res=Block.SFPU, wait_res=Condition.MATH)
        core.MOP(mop_type=1)
        core.SETRWC(BitMask=0b0100)
        dst.commit()


@program.pack
def pack(core):
    llk.configure_pack(core, c)
    packer = llk.Pack(core)
    for tile in range(c.tiles):
        packer.wait_for_math()
        packer.tile(c.tile_address(tile))
        packer.release()
