"""Vector instructions of core T2 (tile T7), against a plain NumPy model and by hand."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.agents import T2
from bhemu.machine.compiler import JIT
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import SCRATCH, START, machine, put, word, words
from tests.riscv.vector_programs import INTEGER, Generator, access, vector, vsetivli, vsetvli, vtype

pytestmark = [pytest.mark.plain, pytest.mark.rule("tile T7")]

EBREAK = 0x00100073
CASES = 60 if JIT else 12
STEPS = 60


def code(*instructions: int | str) -> bytes:
    """Bytes of a program for T2: words, and lines of scalar assembly; it ends in ebreak."""
    parts = [assemble(i, 0) if isinstance(i, str) else struct.pack("<I", i) for i in instructions]
    return b"".join(parts) + struct.pack("<I", EBREAK)


def run(tile: Tile, program: bytes) -> None:
    """Let T2 run a program from the beginning, with the vector registers as they are."""
    put(tile, START["T2"], program)
    core, record = tile.cores["T2"], tile.record
    record.core_pc[T2] = START["T2"]
    record.core_state[T2] = 1
    record.core_round[T2] = record.now_round = max(record.core_round)
    tile.clock(len(program) // 4 + 200)
    assert core.halt_reason == "ebreak", core


def held(allow_open: bool = False) -> Tile:
    """A tile whose T2 has halted."""
    tile = Tile(allow_open=allow_open)
    machine({"T2": code()}, 10, tile=tile)
    return tile


@pytest.fixture(scope="module")
def t2() -> Tile:
    return held()


def refused(program: bytes, *, allow_open: bool = False) -> None:
    """Run a program that should be refused."""
    machine({"T2": program}, 100, tile=Tile(allow_open=allow_open))


def registers(tile: Tile, first: int, kind: str, count: int) -> list[int]:
    """Elements from the beginning of a vector register on."""
    return [int(v) for v in tile.record.vector_core.byte[16 * first :].view(kind)[:count]]


# --- against the model ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(CASES))
def test_random_programs_compute_what_the_model_does(t2: Tile, seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = rng.integers(0, 256, 512).astype(np.uint8)
    if seed % 3 == 0:
        v[rng.random(512) < 0.5] = rng.choice([0, 0x7F, 0x80, 0xFF])
    x = [0, *(int(i) for i in rng.choice([0, 1, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x1234], 31))]
    x[9] = 1000
    generator = Generator(seed, v, x, seed % 4)
    generator.configure()
    while len(generator.words) < STEPS:
        if generator.random.random() < 0.1:
            generator.configure()
        generator.step()
    record = t2.record
    record.vector_core.byte[:] = v
    record.vector_core.vxrm, record.vector_core.vxsat = seed % 4, 0
    record.core_x[T2, :32] = np.array(x, np.uint32)
    run(t2, code(*generator.words))
    model = generator.model
    assert np.array_equal(record.vector_core.byte, model.v)
    assert [int(i) for i in record.core_x[T2, :32]] == model.x
    assert (int(record.vector_core.vl), int(record.vector_core.vxsat)) == (model.vl, model.vxsat)


@pytest.mark.slow
def test_the_random_programs_have_every_integer_instruction() -> None:
    seen: Counter[str | None] = Counter()
    for seed in range(60):
        generator = Generator(seed, np.zeros(512, np.uint8), [0] * 9 + [1000] + [5] * 22, 0)
        for i in range(200):
            if i % 10 == 0:
                generator.configure()
            seen[generator.step()] += 1
    assert {row.name for row in INTEGER} <= set(seen)


# --- vset -------------------------------------------------------------------------------------------------------------


def test_vset_gives_the_smaller_of_what_is_asked_for_and_fits(t2: Tile) -> None:
    kinds = [vtype(size, multiplier) for size, multiplier in ((4, 1.0), (2, 4.0), (1, 8.0), (1, 0.25), (4, 2.0))]
    run(
        t2, code("li a1, 1000", *(vsetvli(12 + i, 11, kind) for i, kind in enumerate(kinds)), vsetivli(20, 3, kinds[0]))
    )
    assert [int(v) for v in t2.record.core_x[T2, 12:17]] == [4, 32, 128, 4, 8]
    assert int(t2.record.core_x[T2, 20]) == 3


def test_vset_from_x0_asks_for_the_longest_and_to_x0_keeps_the_length(t2: Tile) -> None:
    run(t2, code(vsetvli(10, 0, vtype(2, 2.0)), vsetivli(0, 3, vtype(1, 1.0)), vsetvli(0, 0, vtype(2, 2.0))))
    assert int(t2.record.core_x[T2, 10]) == 16
    assert int(t2.record.vector_core.vl) == 3


def test_vsetvl_takes_its_type_from_a_register(t2: Tile) -> None:
    vsetvl = 0x80007057 | 12 << 7 | 11 << 15 | 10 << 20
    run(t2, code(f"li a0, {vtype(4, 2.0)}", "li a1, 7", vsetvl))
    assert int(t2.record.core_x[T2, 12]) == 7
    assert int(t2.record.vector_core.vtype) == vtype(4, 2.0)


@pytest.mark.parametrize("kind", [3 << 3, 4, 5, 2 << 3 | 6, 1 << 8])
def test_types_that_t2_does_not_have_are_refused(kind: int) -> None:
    """64 bits; a reserved LMUL; LMUL below SEW / 32, twice; bits above vma."""
    with pytest.raises(UndefinedBehavior, match="is reserved with vtype"):
        refused(code(vsetivli(0, 1, kind)))


def test_csr_instructions_read_and_write_the_registers_of_the_extension(t2: Tile) -> None:
    run(
        t2,
        code(
            vsetivli(0, 5, vtype(1, 1.0)),
            "csrrs a0, 0xc20, zero",
            "csrrs a1, 0xc21, zero",
            "csrrs a2, 0xc22, zero",
            "csrrwi a3, 0x00a, 7",
            "csrrs a4, 0x00a, zero",
            "csrrs a5, 0x008, zero",
            "csrrwi zero, 0xc20, 2",
            "csrrs a6, 0xc20, zero",
        ),
    )
    assert [int(v) for v in t2.record.core_x[T2, [10, 11, 12, 14, 15, 16]]] == [5, 0, 16, 3, 0, 2]


def test_a_length_that_csr_instructions_made_too_long_is_refused() -> None:
    with pytest.raises(UndefinedBehavior, match="is reserved with vtype"):
        refused(code("li a0, 17", "csrrw zero, 0xc20, a0", vector("vadd.vv", 3, 1, 2)))


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_argmax_of_bf16_numbers_as_a_kernel_finds_it(t2: Tile) -> None:
    """Unsigned maximum of x ^ 0x8000, then the first place that holds it: 3.0 is at 13 and 20."""
    numbers = np.array([1.5, -8.0] * 16, np.float32)
    numbers[[13, 20]] = 3.0
    bits = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    put(t2, SCRATCH, bits.tobytes())
    program = code(
        f"li a0, {SCRATCH}",
        "li a1, 32",
        "li a2, 0x8000",
        vsetvli(0, 11, vtype(2, 4.0)),  # 32 elements in v8 to v11
        access(False, 2, 8, 10),
        vector("vxor.vx", 8, 8, 12),
        vector("vmv.s.x", 4, 0, 0),
        vector("vredmaxu.vs", 4, 8, 4),
        vector("vmv.x.s", 13, 4),
        vector("vmseq.vx", 3, 8, 13),
        vector("vfirst.m", 14, 3),
        vector("vcpop.m", 15, 3),
    )
    run(t2, program)
    x = t2.record.core_x[T2]
    assert (int(x[13]) & 0xFFFF) ^ 0x8000 == 0x4040
    assert (int(x[14]), int(x[15])) == (13, 2)


def test_a_destination_may_be_the_wide_or_narrow_end_of_its_source(t2: Tile) -> None:
    t2.record.vector_core.byte[:64] = np.arange(64)
    run(t2, code(vsetivli(0, 16, vtype(1, 1.0)), vector("vwaddu.vv", 2, 3, 3), vector("vnsrl.wi", 2, 2, 1)))
    assert registers(t2, 2, "<u1", 16) == list(range(48, 64))


@pytest.mark.parametrize(
    "bad",
    [
        vector("vwaddu.vv", 2, 2, 4),  # the source is the lower half of the destination
        vector("vnsrl.wi", 3, 2, 1),  # the destination is the upper half of the source
        vector("vadd.vv", 0, 1, 2, masked=True),  # v0 masks
        vector("vslideup.vi", 4, 4, 1),
        vector("vrgather.vv", 4, 5, 4),
        vector("vcompress.vm", 4, 4, 5),
        vector("viota.m", 4, 4),
        vector("vmsbf.m", 4, 4),
    ],
)
def test_overlaps_that_the_extension_forbids_are_refused(bad: int) -> None:
    with pytest.raises(UndefinedBehavior, match="is reserved with vtype"):
        refused(code(vsetivli(0, 4, vtype(1, 1.0)), bad))


def test_groups_begin_at_multiples_of_their_length() -> None:
    with pytest.raises(UndefinedBehavior, match="is reserved with vtype 0x1"):
        refused(code(vsetivli(0, 4, vtype(1, 2.0)), vector("vadd.vv", 2, 4, 5)))


@pytest.mark.parametrize(("funct6", "funct3"), [(f, form) for f in (0x20, 0x21, 0x22, 0x23) for form in (2, 6)])
def test_integer_division_is_not_there(funct6: int, funct3: int) -> None:
    division = funct6 << 26 | 1 << 25 | 1 << 20 | 2 << 15 | funct3 << 12 | 3 << 7 | 0x57
    with pytest.raises(UndefinedBehavior, match="is a vector division"):
        refused(code(vsetivli(0, 4, vtype(4, 1.0)), division))


@pytest.mark.parametrize("word_", [0x82209157, 0x4E101157, 0x4E121157, 0x4E129157])
def test_float_division_roots_and_estimates_are_not_there(word_: int) -> None:
    """vfdiv.vv, vfsqrt.v, vfrsqrt7.v, vfrec7.v."""
    with pytest.raises(UndefinedBehavior, match="is a vector division"):
        refused(code(vsetivli(0, 4, vtype(4, 1.0)), word_))


@pytest.mark.parametrize("core", ["B", "T0", "T1", "NC"])
def test_other_cores_have_no_vectors(core: str) -> None:
    with pytest.raises(UndefinedBehavior, match="core T2 alone has"):
        machine({core: code(vsetivli(0, 4, vtype(4, 1.0)))}, 20)


def test_the_release_of_the_core_clears_its_registers() -> None:
    tile = Tile()
    tile.record.vector_core.byte[:] = 0xA5
    machine({"T2": code()}, 10, tile=tile)
    assert not tile.record.vector_core.byte.any()


# --- memory -----------------------------------------------------------------------------------------------------------


def test_loads_and_stores_by_stride_index_segment_and_mask(t2: Tile) -> None:
    t2.record.vector_core.byte[:] = 0
    t2.record.vector_core.byte[0] = 0b0101  # v0
    t2.record.l1_u32[SCRATCH // 4 : SCRATCH // 4 + 64] = np.arange(64)
    t2.record.vector_core.byte[16 * 1 : 16 * 2].view("<u4")[:] = (12, 0, 4, 8)  # v1: offsets
    run(
        t2,
        code(
            f"li a0, {SCRATCH}",
            "li a1, 20",
            f"li a2, {SCRATCH + 0x400}",
            vsetivli(0, 4, vtype(4, 1.0)),
            access(False, 4, 2, 10, mode=2, number=11),  # every fifth word
            access(False, 4, 3, 10, mode=1, number=1),  # by index
            access(False, 4, 4, 10, fields=2),  # pairs to v4 and v5
            access(False, 4, 6, 10, masked=True),
            access(True, 4, 4, 12, fields=2),
            access(
                True,
                4,
                2,
                12,
                mode=0,
                number=8,
                fields=2,
            )
            & ~(7 << 12)
            | 0 << 12,  # vs2r.v v2
        ),
    )
    assert registers(t2, 2, "<u4", 4) == [0, 5, 10, 15]
    assert registers(t2, 3, "<u4", 4) == [3, 0, 1, 2]
    assert registers(t2, 4, "<u4", 8) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert registers(t2, 6, "<u4", 4) == [0, 0, 2, 0]
    assert words(t2, 8, SCRATCH + 0x400) == [0, 5, 10, 15, 3, 0, 1, 2]


def test_the_cores_own_ram_is_reached_too(t2: Tile) -> None:
    t2.record.vector_core.byte[16:32] = np.arange(16)
    run(
        t2,
        code(
            "li a0, 0xffb00100",
            vsetivli(0, 8, vtype(2, 1.0)),
            access(True, 2, 1, 10),
            "lw a1, 4(a0)",
            access(False, 2, 2, 10),
        ),
    )
    assert int(t2.record.core_x[T2, 11]) == 0x07060504
    assert registers(t2, 2, "<u1", 16) == list(range(16))


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        (SCRATCH + 2, NonContractualBehavior, "which is misaligned"),
        (0xFFB12000, Unimplemented, "bhemu has them in L1"),
        (0x180000 - 8, Unimplemented, "0x180000"),
    ],
)
def test_vectors_elsewhere_and_misaligned_ones_are_refused_whole(
    address: int, error: type[Exception], message: str
) -> None:
    tile = Tile()
    with pytest.raises(error, match=message):
        machine(
            {"T2": code(f"li a0, {address}", vsetivli(0, 4, vtype(4, 1.0)), access(True, 4, 1, 10))}, 100, tile=tile
        )
    assert word(tile, 0x180000 - 8) == 0


# --- floating point ---------------------------------------------------------------------------------------------------

ONE, TWO, THREE, HALF = 0x3F800000, 0x40000000, 0x40400000, 0x3F000000
NAN, INFINITY, SIGN = 0x7FC00000, 0x7F800000, 0x80000000


def floats(tile: Tile, register: int, *bits: int) -> None:
    """Put FP32 bits into a vector register."""
    tile.record.vector_core.byte[16 * register : 16 * register + 16].view("<u4")[: len(bits)] = bits


def test_float_arithmetic_is_the_scalar_sides(t2: Tile) -> None:
    """Multiply-adds with a subnormal, which counts as zero, and with an inexact product."""
    pairs = [(0x3F800001, 0x3F800001), (0x00400000, TWO), (NAN, ONE), (THREE, HALF)]
    operations = {
        "vfadd.vv": "fadd.s fa0, fa1, fa2",
        "vfsub.vv": "fsub.s fa0, fa1, fa2",
        "vfmul.vv": "fmul.s fa0, fa1, fa2",
        "vfmin.vv": "fmin.s fa0, fa1, fa2",
        "vfmax.vv": "fmax.s fa0, fa1, fa2",
        "vfmacc.vv": "fmadd.s fa0, fa1, fa2, fa3",
        "vfnmsac.vv": "fnmsub.s fa0, fa1, fa2, fa3",
        "vfmsac.vv": "fmsub.s fa0, fa1, fa2, fa3",
        "vfnmacc.vv": "fnmadd.s fa0, fa1, fa2, fa3",
        "vfmadd.vv": "fmadd.s fa0, fa3, fa2, fa1",
        "vfnmsub.vv": "fnmsub.s fa0, fa3, fa2, fa1",
        "vfmsub.vv": "fmsub.s fa0, fa3, fa2, fa1",
        "vfnmadd.vv": "fnmadd.s fa0, fa3, fa2, fa1",
    }
    for name, scalar in operations.items():
        floats(t2, 1, *(a for a, _ in pairs))
        floats(t2, 2, *(b for _, b in pairs))
        floats(t2, 3, *[0xBF800002] * 4)
        lines = [f"li s1, {SCRATCH}"]
        for i, (a, b) in enumerate(pairs):
            lines += [f"li a1, {a}", f"li a2, {b}", f"li a3, {0xBF800002}"]
            lines += [f"fmv.w.x fa{j}, a{j}" for j in (1, 2, 3)]
            lines += [scalar, f"fsw fa0, {4 * i}(s1)"]
        run(t2, code(vsetivli(0, 4, vtype(4, 1.0)), vector(name, 3, 1, 2), *lines))
        assert registers(t2, 3, "<u4", 4) == words(t2, 4), name


def test_float_comparisons_know_nan_and_both_zeros(t2: Tile) -> None:
    floats(t2, 1, 0, NAN, ONE, THREE)
    floats(t2, 2, SIGN, ONE, TWO, TWO)
    masks = {"vmfeq.vv": 0b0001, "vmfne.vv": 0b1110, "vmflt.vv": 0b0100, "vmfle.vv": 0b0101}
    for name, expected in masks.items():
        t2.record.vector_core.byte[16 * 5] = 0
        run(t2, code(vsetivli(0, 4, vtype(4, 1.0)), vector(name, 5, 1, 2)))
        assert int(t2.record.vector_core.byte[16 * 5]) == expected, name


def test_conversions_round_to_nearest_even_and_saturate(t2: Tile) -> None:
    floats(t2, 1, 0x40200000, 0x40600000, 0xC0200000, NAN)  # 2.5, 3.5, -2.5
    run(
        t2,
        code(
            vsetivli(0, 4, vtype(4, 1.0)),
            vector("vfcvt.x.f.v", 2, 1),
            vector("vfcvt.xu.f.v", 3, 1),
            vector("vfcvt.f.x.v", 4, 2),
            vsetivli(0, 4, vtype(2, 0.5)),
            vector("vfncvt.x.f.w", 5, 1),
            vector("vfwcvt.f.x.v", 6, 5),
        ),
    )
    assert registers(t2, 2, "<i4", 4) == [2, 4, -2, 0x7FFFFFFF]
    assert registers(t2, 3, "<u4", 4) == [2, 4, 0, 0xFFFFFFFF]
    assert registers(t2, 4, "<u4", 4) == [TWO, 0x40800000, SIGN | TWO, 0x4F000000]
    assert registers(t2, 5, "<i2", 4) == [2, 4, -2, 0x7FFF]
    assert registers(t2, 6, "<u4", 4) == [TWO, 0x40800000, SIGN | TWO, 0x46FFFE00]


def test_ordered_sums_extremes_and_scalars(t2: Tile) -> None:
    floats(t2, 1, ONE, TWO, THREE, HALF)
    floats(t2, 2, ONE)
    run(
        t2,
        code(
            vsetivli(0, 4, vtype(4, 1.0)),
            vector("vfredosum.vs", 3, 1, 2),
            vector("vfredmax.vs", 4, 1, 2),
            vector("vfmv.f.s", 10, 4),  # fa0
            vector("vfmv.v.f", 5, 0, 10),
            vector("vfslide1down.vf", 6, 1, 10),
            vector("vfclass.v", 7, 1),
        ),
    )
    assert registers(t2, 3, "<u4", 1) == [0x40F00000]  # 7.5
    assert registers(t2, 5, "<u4", 4) == [THREE] * 4
    assert registers(t2, 6, "<u4", 4) == [TWO, THREE, HALF, THREE]
    assert registers(t2, 7, "<u4", 4) == [1 << 6] * 4


@pytest.mark.parametrize(
    ("word_", "message"),
    [(vector("vfcvt.rtz.x.f.v", 2, 1), "converts with truncation"), (vector("vfredusum.vs", 2, 1, 3), "vfredusum")],
)
def test_what_no_source_settles_is_an_open_choice(word_: int, message: str) -> None:
    program = code(vsetivli(0, 4, vtype(4, 1.0)), word_)
    with pytest.raises(MissingSpecification, match=message):
        refused(program)
    refused(program, allow_open=True)


def test_truncation_is_the_open_choice_of_rtz() -> None:
    tile = held(allow_open=True)
    floats(tile, 1, 0x3FE66666, 0xBFE66666, 0x4F7FFFFF, 0x3F7FFFFF)
    run(tile, code(vsetivli(0, 4, vtype(4, 1.0)), vector("vfcvt.rtz.x.f.v", 2, 1)))
    assert registers(tile, 2, "<i4", 4) == [1, -1, 0x7FFFFFFF, 0]


def test_half_precision_vectors_are_refused() -> None:
    with pytest.raises(Unimplemented, match="16-bit floating-point elements"):
        refused(code(vsetivli(0, 4, vtype(2, 1.0)), vector("vfadd.vv", 3, 1, 2)))
