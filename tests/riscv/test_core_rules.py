"""Corner cases of the cores by rule (tile T4, T5, T8, T9, T21, T22, T27)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import BhemuError, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.riscv import RISCV
from bhemu.machine.state import L1_SIZE
from tests.riscv.rv_asm import assemble, assemble_with_labels
from tests.riscv.rv_machine import SCRATCH, START, machine, put, word, words

pytestmark = pytest.mark.plain

# --- registers -------------------------------------------------------------------------------------------------------

_TO_X0 = {
    "U": "{} zero, 0xfffff",
    "J": "{} zero, next",
    "jalr": "{} zero, 0(a5)",
    "load": "{} zero, 0(a0)",
    "I": "{} zero, a1, -1",
    "shift": "{} zero, a1, 3",
    "R": "{} zero, a1, a2",
    "unary": "{} zero, a1",
    "amo": "{} zero, a1, (a0)",
    "csr": "{} zero, 0x7c3, a1",
    "csri": "{} zero, 0x7c3, 9",
    "Fcmp": "{} zero, fa0, fa0",
    "F2X": "{} zero, fa0",
    "F2Xm": "{} zero, fa0",
}


@pytest.mark.parametrize("name", [row.name for row in RISCV if row.layout in _TO_X0])
def test_x0_stays_zero(name: str) -> None:
    layout = next(row.layout for row in RISCV if row.name == name)
    program = f"""
    li a0, {SCRATCH}
    li a1, 0x12345679
    li a2, 3
    la a5, next
    fmv.w.x fa0, a1
    {_TO_X0[layout].format(name)}
    next: mv a3, zero
    ebreak
    """
    tile = machine(program)
    put(tile, SCRATCH, b"\xa5" * 4)
    tile.clock(20)
    view = tile.cores["B"]
    assert view.halt_reason == "ebreak"
    assert int(view.x[0]) == 0
    assert int(view.x[13]) == 0


@pytest.mark.parametrize(
    ("a", "b", "div", "divu", "rem", "remu"),
    [
        (7, 0, 0xFFFFFFFF, 0xFFFFFFFF, 7, 7),
        (0, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0),
        (0x80000000, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0x80000000, 0x80000000),
        (0x80000000, 0xFFFFFFFF, 0x80000000, 0, 0, 0x80000000),
        (0xFFFFFFF9, 2, 0xFFFFFFFD, 0x7FFFFFFC, 0xFFFFFFFF, 1),
        (7, 0xFFFFFFFE, 0xFFFFFFFD, 0, 1, 7),
    ],
)
def test_division_corner_cases(a: int, b: int, div: int, divu: int, rem: int, remu: int) -> None:
    text = f"li a1, {a}\nli a2, {b}\nli s0, {SCRATCH}"
    for i, name in enumerate(("div", "divu", "rem", "remu")):
        text += f"\n{name} a0, a1, a2\nsw a0, {4 * i}(s0)"
    assert words(machine(text + "\nebreak", 30), 4) == [div, divu, rem, remu]


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [SCRATCH, 0xFFB00100, 0xFFE00000])
@pytest.mark.parametrize(("instruction", "offset"), [("lh", 1), ("lhu", 3), ("lw", 2), ("sh", 1), ("sw", 1), ("lw", 3)])
def test_misaligned_accesses_are_refused_and_change_nothing(instruction: str, offset: int, base: int) -> None:
    tile = machine(f"li s0, {base}\nli a0, 77\n{instruction} a0, {offset}(s0)")
    with pytest.raises(NonContractualBehavior, match=f"misaligned .* at {base + offset:#x}"):
        tile.clock(10)
    assert int(tile.cores["B"].x[10]) == 77
    assert tile.cores["B"].state == "halted"
    assert tile.cores["B"].halt_reason == "refused"


@pytest.mark.parametrize(
    ("instruction", "value"),
    [("lb", 0xFFFFFF81), ("lbu", 0x81), ("lh", 0xFFFF8281), ("lhu", 0x8281), ("lw", 0x84838281)],
)
@pytest.mark.parametrize("base", [SCRATCH, 0xFFB00100])
def test_narrow_loads_extend(instruction: str, value: int, base: int) -> None:
    program = f"li s0, {base}\nli a0, 0x84838281\nsw a0, 4(s0)\n{instruction} a1, 4(s0)\nebreak"
    assert int(machine(program, 10).cores["B"].x[11]) == value


@pytest.mark.parametrize("base", [SCRATCH, 0xFFB00100])
def test_narrow_stores_leave_the_rest(base: int) -> None:
    program = f"li s0, {base}\nli a0, 0x11223344\nsw a0, 0(s0)\nli a0, 0xaabbccdd\nsb a0, 1(s0)\nsh a0, 2(s0)\n"
    assert int(machine(program + "lw a1, 0(s0)\nebreak", 20).cores["B"].x[11]) == 0xCCDDDD44


def test_local_ram_of_t_cores_is_half_as_large() -> None:
    program = "li s0, 0xffb01000\nli a0, 5\nsw a0, -4(s0)\nlw a1, -4(s0)\nsw a0, 0(s0)\nebreak"
    assert int(machine(program, 10).cores["B"].x[11]) == 5
    with pytest.raises(BhemuError, match="0xffb01000"):
        machine({"T0": program}, 10)


@pytest.mark.parametrize(
    ("name", "old", "operand", "new"),
    [
        ("amoadd.w", 0xFFFFFFFF, 2, 1),
        ("amoswap.w", 5, 6, 6),
        ("amoxor.w", 0xFF00, 0x0FF0, 0xF0F0),
        ("amoor.w", 0xFF00, 0x0FF0, 0xFFF0),
        ("amoand.w", 0xFF00, 0x0FF0, 0x0F00),
        ("amomin.w", 0x80000000, 1, 0x80000000),
        ("amomax.w", 0x80000000, 1, 1),
        ("amominu.w", 0x80000000, 1, 1),
        ("amomaxu.w", 0x80000000, 1, 0x80000000),
    ],
)
def test_atomics(name: str, old: int, operand: int, new: int) -> None:
    tile = machine(f"li s0, {SCRATCH}\nli a1, {operand}\n{name} a1, a1, (s0)\nebreak")
    put(tile, SCRATCH, old.to_bytes(4, "little"))
    tile.clock(10)
    assert (word(tile), int(tile.cores["B"].x[11])) == (new, old)


def test_atomics_elsewhere_are_refused() -> None:
    with pytest.raises(UndefinedBehavior, match="misaligned atomic"):
        machine(f"li s0, {SCRATCH + 2}\namoadd.w a0, a1, (s0)", 10)
    for address in (0xFFB00000, L1_SIZE, 0xFFE00000):
        with pytest.raises(UndefinedBehavior, match="outside of L1"):
            machine(f"li s0, {address}\namoadd.w a0, a1, (s0)", 10)


def test_atomics_of_five_cores_lose_nothing() -> None:
    text = (
        f"li s0, {SCRATCH}\nli a1, 1\nli s1, 200\nloop: amoadd.w a0, a1, (s0)\naddi s1, s1, -1\nbnez s1, loop\nebreak"
    )
    tile = machine(dict.fromkeys(START, text), 2000)
    assert word(tile) == 1000
    assert sorted(int(tile.cores[core].x[10]) for core in START)[-1] == 999


# --- where instructions come from ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jump", "target"),
    [
        (f"li a0, {L1_SIZE}\njr a0", L1_SIZE),
        ("li a0, 0xffb00000\njr a0", 0xFFB00000),
        ("li a0, 0x102\njr a0", 0x102),
        ("jal ra, 6", 6),
        ("beq zero, zero, 10", 10),
    ],
)
def test_bad_jump_targets_are_refused(jump: str, target: int) -> None:
    source = len(assemble(jump)) - 4
    with pytest.raises(UndefinedBehavior, match=f"jumps to {target:#x}, .*came from {source:#x}"):
        machine(jump, 10)


@pytest.mark.parametrize(
    ("jump", "distance"),
    [("beq zero, zero", 4092), ("beq zero, zero", -4096), ("jal ra", 0xFFFFC), ("jal ra", -0x100000)],
)
def test_the_longest_jumps(jump: str, distance: int) -> None:
    at = max(0, -distance)
    tile = machine(f"lui a0, {at >> 12}\njr a0" if at else "nop")
    put(tile, at, assemble(f"{jump}, {at + distance}", at))
    if at + distance == 0:  # back to the beginning: the second time round, stop
        tile.clock(3)
    else:
        tile.clock(1)
    assert tile.cores["B"].pc == at + distance


def test_jalr_clears_bit_0() -> None:
    tile = machine("li a0, 13\njalr ra, 0(a0)\n.word 0xffffffff\nebreak", 10)
    assert tile.cores["B"].halt_reason == "ebreak"
    assert int(tile.cores["B"].x[1]) == 8


def test_running_past_the_end_of_l1_is_refused() -> None:
    tile = machine(f"li a0, {L1_SIZE - 4}\njr a0")
    put(tile, L1_SIZE - 4, assemble("nop"))
    with pytest.raises(UndefinedBehavior, match="not an aligned address"):
        tile.clock(10)


def test_a_core_patches_its_own_next_instruction() -> None:
    content, labels = assemble_with_labels(
        """
        li s1, 3
        la s0, patch
        la a1, new
        lw a1, 0(a1)
        again: li a0, 0
        patch: addi a0, a0, 1
        add a2, a2, a0
        sw a1, 0(s0)
        addi s1, s1, -1
        bnez s1, again
        li a3, 1
        sw a1, here - patch(s0)
        here: addi a3, a3, 50
        ebreak
        new: addi a0, a0, 100
        """
    )
    tile = machine(content, 100)
    assert int(tile.cores["B"].x[12]) == 1 + 100 + 100
    assert int(tile.cores["B"].x[13]) == 1  # the instruction right behind the store was replaced, too
    assert labels["patch"] > 0


def test_code_that_another_core_or_the_host_overwrites() -> None:
    loop = "loop: addi a0, zero, 1\nli s0, 0x20000\nsw a0, 0(s0)\nj loop"
    patcher = (
        "li s1, 200\nwait: addi s1, s1, -1\nbnez s1, wait\nla a0, new\nlw a0, 0(a0)\nli s0, 0xa000\nsw a0, 0(s0)\n"
    )
    tile = machine({"T1": loop, "NC": patcher + "ebreak\nnew: addi a0, zero, 2"}, 300)
    assert word(tile) == 1
    tile.clock(300)
    assert word(tile) == 2
    put(tile, START["T1"], assemble("addi a0, zero, 3"))
    tile.clock(20)
    assert word(tile) == 3


def test_two_tiles_with_different_code_at_one_address() -> None:
    tiles = [machine(f"loop: addi a0, a0, {step}\nj loop") for step in (1, 3)]
    for _ in range(10):
        for tile in tiles:
            tile.clock(2)
    assert [int(tile.cores["B"].x[10]) for tile in tiles] == [10, 30]


@pytest.mark.parametrize("code", [0x0FF0000F, 0x0230000F, 0x0310000F, 0x0330000F, 0x0100000F, 0x8330000F, 0x0000100F])
def test_fences_do_nothing(code: int) -> None:
    """T8, T31, E3."""
    tile = machine(f"li a0, 1\n.word {code:#x}\naddi a0, a0, 1\nebreak", 10)
    assert int(tile.cores["B"].x[10]) == 2
    assert tile.cores["B"].retired == 4


# --- words that are not instructions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (0x1005202F, "load-reserved", UndefinedBehavior),  # lr.w
        (0x18C5252F, "load-reserved", UndefinedBehavior),  # sc.w
        (0x00B5302F, "32 bits", UndefinedBehavior),  # amoadd.d
        (0x00B5002F, "32 bits", UndefinedBehavior),  # amoadd.b
        (0x2805202F, "32 bits", UndefinedBehavior),  # amocas.w
        (0x0AB51533, "Zbc", UndefinedBehavior),  # clmul
        (0x28B51533, "Zbs", UndefinedBehavior),  # bset
        (0x48B55533, "Zbs", UndefinedBehavior),  # bext
        (0x28351513, "Zbs", UndefinedBehavior),  # bseti
        (0x08B57533, "Zbkb", UndefinedBehavior),  # packh
        (0x08F51513, "Zbkb", UndefinedBehavior),  # zip
        (0x69F55513, "bit reversal", Unimplemented),  # grevi 31
        (0x0EB55533, "Zicond", UndefinedBehavior),  # czero.eqz
        (0x10500073, "SYSTEM", UndefinedBehavior),  # wfi
        (0x10200073, "SYSTEM", UndefinedBehavior),  # sret
        (0x0000451B, "RV64", UndefinedBehavior),
        (0x00B5053B, "RV64", UndefinedBehavior),  # addw
        (0x00053503, "RV64", UndefinedBehavior),  # ld
        (0x00056503, "RV64", UndefinedBehavior),  # lwu
        (0x00B53023, "RV64", UndefinedBehavior),  # sd
        (0x02051513, "RV64", UndefinedBehavior),  # slli by 32
        (0xFFFFFFFF, "more than 32 bits", UndefinedBehavior),
        (0x0000700B, "not an instruction", UndefinedBehavior),  # custom-0
        (0x40001013, "not an instruction", UndefinedBehavior),
    ],
)
def test_other_words_are_refused_with_what_they_are(code: int, message: str, error: type[BhemuError]) -> None:
    tile = machine({"T2": f"nop\n.word {code:#x}"})
    with pytest.raises(error, match=message) as refusal:
        tile.clock(10)
    assert f"{code:#010x}" in str(refusal.value)
    assert "remedy" in str(refusal.value)
    assert (refusal.value.core, refusal.value.pc) == (3, START["T2"] + 4)
    assert tile.cores["T2"].retired == 1


def test_random_words_are_executed_or_refused() -> None:
    """Nothing crashes, and a refusal always names core and pc. (Core NC: behind the program lie zeros, `.ttinsn`.)"""
    random = np.random.default_rng(11)
    refusals = []
    for _ in range(150):
        tile = machine({"NC": (random.integers(0, 1 << 32, 8, np.uint32) | np.uint32(3)).astype("<u4").tobytes()})
        try:
            tile.clock(8)
        except BhemuError as error:
            refusals.append((error.core, tile.cores["NC"].halt_reason, error.pc == tile.cores["NC"].pc))
    assert len(refusals) > 50
    assert set(refusals) == {(4, "refused", True)}


# --- ecall, ebreak, mret ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ebreak", "ecall"])
def test_ebreak_and_ecall_halt_behind_themselves(name: str) -> None:
    program = f"li s0, {SCRATCH}\nli a0, 1\n{name}\nsw a0, 0(s0)\nend: j end"
    tile = machine({"T0": program, "T1": f"li s0, {SCRATCH + 4}\nloop: addi a0, a0, 1\nsw a0, 0(s0)\nj loop"}, 50)
    view = tile.cores["T0"]
    assert (view.state, view.halt_reason, view.pc, view.retired) == ("halted", name, START["T0"] + 12, 3)
    before = word(tile, SCRATCH + 4)
    tile.clock(30)
    assert word(tile, SCRATCH + 4) == before + 10  # the others go on
    assert (word(tile), view.retired) == (0, 3)
    view.resume()
    tile.clock(5)
    assert word(tile) == 1


def test_mret_outside_of_a_handler_is_refused() -> None:
    with pytest.raises(UndefinedBehavior, match="outside of an interrupt handler"):
        machine("mret", 5)


def test_mret_returns_from_a_handler() -> None:
    tile = machine("mret\n.word 0xffffffff\nhere: ebreak")
    tile.record.core_in_handler[0] = 1
    tile.record.core_interrupted_pc[0] = 8
    tile.clock(5)
    view = tile.cores["B"]
    assert (view.halt_reason, view.pc, view.retired) == ("ebreak", 12, 2)
    assert int(tile.record.core_in_handler[0]) == 0


def test_a_refused_core_stands_still_and_the_others_go_on() -> None:
    tile = machine({"B": "nop\n.word 0xffffffff", "NC": "loop: addi a0, a0, 1\nj loop"})
    with pytest.raises(UndefinedBehavior):
        tile.clock(20)
    tile.clock(0)
    tile.clock(20)
    assert tile.cores["B"].pc == 4
    assert int(tile.cores["NC"].x[10]) == 20
