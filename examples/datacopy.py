"""Copy a tensor through SrcA and Dst: unpack, MOVA2D, pack. Bit-exact for every datum that is no denormal or NaN."""

import llk

from bhemu import Program

program = Program("datacopy")
program.dimension("M", 64)
program.dimension("N", 64)
a = program.input("a", ("M", "N"), "bf16")
c = program.output("c", ("M", "N"), "bf16")


@program.reference
def reference(a):
    return a


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
    dst = llk.DstHalves(core)
    for _ in range(a.tiles):
        dst.acquire()
        for _face in range(4):
            core.MOVA2D(instr_mod=2, addr_mode=0)
            core.MOVA2D(instr_mod=2, addr_mode=1)
            core.SETRWC(clear_ab_vld=1)
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
