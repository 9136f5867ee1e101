"""Matrix multiplication of BF16 tensors, any M, K, N that are multiples of 32; K is accumulated in Dst.

`--set fidelity=LoFi|HiFi2|HiFi3|HiFi4` chooses how many bits of each product are computed, `--set dst=fp32|bf16` what
Dst accumulates in.
"""

import llk

from bhemu import DataFormat, Program

program = Program("matrix multiplication")
program.parameter("fidelity", "HiFi4", choices=("LoFi", "HiFi2", "HiFi3", "HiFi4"), help="phases of a multiplication")
program.parameter("dst", "fp32", choices=("fp32", "bf16"), help="what Dst accumulates in")
program.dimension("M", 128)
program.dimension("K", 128)
program.dimension("N", 128)
a = program.input("a", ("M", "K"), "bf16")
b = program.input("b", ("K", "N"), "bf16")
c = program.output("c", ("M", "N"), "bf16")

PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}


@program.reference
def reference(a, b):
    return a @ b


@program.unpack
def unpack(core):
    # The matrix unit computes Dst += SrcB x SrcA, so the left matrix goes to SrcB. Each bank takes a whole tile.
    llk.configure_unpacker(core, 0, b)
    llk.configure_unpacker(core, 1, a)
    llk.start_unpack(core, llk.TILE_DATUMS)
    unpacker = llk.Unpack(core)
    words = [llk.unpacr(core, 0), llk.unpacr(core, 1)]
    rows, inner = a.tile_grid()
    columns = b.tile_grid()[1]
    for row in range(rows):
        for column in range(columns):
            for k in range(inner):
                unpacker.tiles({0: b.tile_address(k * columns + column), 1: a.tile_address(row * inner + k)}, words)


@program.math
def math(core):
    inner = a.tile_grid()[1]
    phases = PHASES[program.parameters["fidelity"]]
    llk.configure_math(core, fp32=program.parameters["dst"] == "fp32")
    # One MVMUL multiplies 8 rows of a face of the left tile (SrcB) with a face of the right tile (SrcA). Faces are
    # numbered 0 1 / 2 3: Dst 0 += 0x0, Dst 1 += 0x1, Dst 2 += 2x0, Dst 3 += 2x1, then 1x2, 1x3, 3x2, 3x3.
    llk.set_address_modifier(core, 0, SrcBIncr=8, DestIncr=8)
    llk.set_address_modifier(core, 1, SrcAIncr=16, SrcBCR=1, DestIncr=8)
    llk.set_address_modifier(core, 2, SrcACR=1, SrcBIncr=32, SrcBCR=1, DestIncr=8)
    llk.set_address_modifier(core, 4, SrcAIncr=32, SrcACR=1, SrcBIncr=48, SrcBCR=1, DestCR=1)
    llk.set_address_modifier(
        core, 5, SrcAClear=1, SrcACR=1, SrcBClear=1, SrcBCR=1, DestClear=1, DestCR=1, FidelityIncr=1
    )
    with core.record(start=16):
        for modifier in (0, 1, 0, 2, 0, 1, 0, 4, 0, 1, 0, 2, 0, 1, 0):
            core.MVMUL(addr_mode=modifier)
    core.set_mop_double_loop(
        outer=phases, inner=1, loop=core.word.REPLAY(start_idx=16, len=15), end0=core.word.MVMUL(addr_mode=5)
    )
    dst = llk.DstHalves(core)
    for _ in range(c.tiles):
        dst.acquire()
        for _k in range(inner):
            core.MOP(mop_type=1)
            core.SETRWC(clear_ab_vld=3, BitMask=0b1111)
        dst.commit()


@program.pack
def pack(core):
    llk.configure_pack(core, c, intermediate=DataFormat.BF16, fp32=program.parameters["dst"] == "fp32")
    packer = llk.Pack(core)
    for tile in range(c.tiles):
        packer.wait_for_math()
        packer.tile(c.tile_address(tile))
        packer.release()
