"""Add, subtract or multiply two tensors element by element on the matrix unit (`--set op=add|sub|mul`)."""

import llk

from bhemu import Program

program = Program("element-wise on the matrix unit")
program.parameter("op", "add", choices=("add", "sub", "mul"))
program.parameter("fidelity", "HiFi4", choices=("LoFi", "HiFi2", "HiFi3", "HiFi4"), help="phases of a multiplication")
program.dimension("M", 64)
program.dimension("N", 64)
a = program.input("a", ("M", "N"), "bf16")
b = program.input("b", ("M", "N"), "bf16")
c = program.output("c", ("M", "N"), "bf16")

PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}


@program.reference
def reference(a, b):
    return {"add": a + b, "sub": a - b, "mul": a * b}[program.parameters["op"]]


@program.unpack
def unpack(core):
    llk.configure_unpacker(core, 0, a)
    llk.configure_unpacker(core, 1, b)
    llk.start_unpack(core, llk.FACE_DATUMS)
    unpacker = llk.Unpack(core)
    faces = [llk.unpacr(core, 0, next_face=True), llk.unpacr(core, 1, next_face=True)]
    for tile in range(a.tiles):
        unpacker.tiles({0: a.tile_address(tile), 1: b.tile_address(tile)}, faces * 4)


@program.math
def math(core):
    op = program.parameters["op"]
    phases = PHASES[program.parameters["fidelity"]] if op == "mul" else 1
    llk.configure_math(core, fp32=False)
    # Modifier 0 goes on to the next eight rows. At the end of a face the source counters start again; when the face
    # needs another phase, so does Dst.
    llk.set_address_modifier(core, 0, SrcAIncr=8, SrcBIncr=8, DestIncr=8)
    llk.set_address_modifier(core, 1, SrcAClear=1, SrcBClear=1, DestCR=1, FidelityIncr=1)
    llk.set_address_modifier(core, 2, SrcAClear=1, SrcBClear=1, DestCR=1, DestIncr=llk.FACE_ROWS, FidelityClear=1)
    issue = {"add": core.ELWADD, "sub": core.ELWSUB, "mul": core.ELWMUL}[op]
    dst = llk.DstHalves(core)
    for _ in range(a.tiles):
        dst.acquire()
        for _face in range(4):
            for phase in range(phases):
                last = phase == phases - 1
                issue(addr_mode=0)
                issue(addr_mode=2 if last else 1, clear_dvalid=3 if last else 0)
        core.SETRWC(BitMask=0b1111)
        dst.commit()


@program.pack
def pack(core):
    llk.configure_pack(core, c)
    packer = llk.Pack(core)
    for tile in range(c.tiles):
        packer.wait_for_math()
        packer.tile(c.tile_address(tile))
        packer.release()
