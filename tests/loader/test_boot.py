"""Loading programs as a host does: where segments go, where cores start, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
from bhemu.errors import MemoryError_, ProgramError
from bhemu.isa.riscv import disassemble_riscv
from bhemu.loader.boot import jump_to
from bhemu.loader.elf import parse_elf
from tests.loader.boot_programs import LOCAL, START, program, store
from tests.loader.elf_files import Load, Name, attributes_section, make_elf, with_symbols
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

RESULT = 0x20000


def word(machine: bhemu.Machine, address: int = RESULT) -> int:
    return int(machine.tile.record.l1_u32[address // 4])


def run(**programs: bhemu.Executable) -> bhemu.Machine:
    machine = bhemu.Machine()
    for core, executable in programs.items():
        machine.load(executable, core)
    machine.start()
    machine.run()
    return machine


# --- where programs start -------------------------------------------------------------------------


@pytest.mark.parametrize("core", START)
def test_core_starts_at_its_own_reset_pc(core: str) -> None:
    assert word(run(**{core: program(store(7), START[core])})) == 7


@pytest.mark.rule("tile T14")
@pytest.mark.parametrize("core", ["T0", "T1", "T2", "NC"])
def test_core_starts_elsewhere_through_the_override(core: str) -> None:
    """Reset pc register and override bit, as the host's stores leave them."""
    machine = run(**{core: program(store(7), 0x30000)})
    assert word(machine) == 7
    register = {"T0": 0xFFB12228, "T1": 0xFFB1222C, "T2": 0xFFB12230, "NC": 0xFFB12238}[core]
    assert machine.tile.cores.load(register) == 0x30000
    override = machine.tile.cores.load(0xFFB1223C if core == "NC" else 0xFFB12234)
    assert override == {"T0": 1, "T1": 2, "T2": 4, "NC": 1}[core]


@pytest.mark.rule("tile B25")
@pytest.mark.parametrize("entry", [0x100, 0x3AE0, 0xFFFFC, 0x100000, 0x100800, 0x17FF00])
def test_core_b_jumps_from_address_0_to_its_entry(entry: int) -> None:
    """B25; addresses beyond the reach of jal take two instructions."""
    machine = run(B=program(store(7), entry))
    assert word(machine) == 7
    assert word(machine, 0) == int.from_bytes(jump_to(entry)[:4], "little")


def test_jump_within_reach_is_jal() -> None:
    assert disassemble_riscv(int.from_bytes(jump_to(0x3AE0), "little"), 0) == "jal zero, 0x3ae0"
    assert len(jump_to(0x100000)) == 8


def test_five_cores_start_in_the_same_clock() -> None:
    clock = "li t0, 0xffb121f0\nlw t1, 0(t0)\nli t0, {result:#x}\nsw t1, 0(t0)\nebreak"
    programs = {
        core: program(clock.format(result=RESULT + 4 * i), START[core])
        for i, core in enumerate(("B", "T0", "T1", "T2"))
    }
    machine = run(**programs, NC=program(clock.format(result=RESULT + 16), START["NC"]))
    assert len({word(machine, RESULT + 4 * i) for i in range(5)}) == 1


def test_only_named_cores_start() -> None:
    machine = bhemu.Machine()
    machine.load(program(store(7), 0), "B")
    machine.load(program(store(8, RESULT + 4), START["NC"]), "NC")
    machine.start("NC")
    machine.run()
    assert (word(machine), word(machine, RESULT + 4)) == (0, 8)
    machine.start("B")
    machine.run()
    assert word(machine) == 7


def test_loaded_again_a_core_runs_the_new_program() -> None:
    machine = run(B=program(store(7), 0))
    machine.load(program(store(9), 0x40), "B")
    assert machine.tile.cores["B"].state == "in reset"
    machine.start()
    machine.run()
    assert word(machine) == 9


# --- where segments go ---------------------------------------------------------------------------


def test_bss_in_l1_is_zeroed() -> None:
    code = assemble("lw t0, 0x204(zero)\nli t1, 0x20000\nsw t0, 0(t1)\nebreak")
    file = make_elf((Load(0, code), Load(0x200, b"\x01\0\0\0", size=16, flags=6)), entry=0)
    machine = bhemu.Machine()
    machine.tile.l1[0x200:0x220] = 0xFF
    machine.load(parse_elf(file, "kernel.elf"), "B")
    assert machine.tile.l1[0x200:0x214].tolist() == [1] + [0] * 15 + [0xFF] * 4


COPY = """
    li t0, 0x5000
    lw t1, 0(t0)
    li t0, 0xffb00000
    lw t2, 0(t0)
    sw t1, 0(t0)
    li t0, 0x20000
    sw t1, 0(t0)
    sw t2, 4(t0)
    ebreak
"""


@pytest.mark.rule("tile B5")
def test_data_of_local_ram_with_a_load_address_in_l1_stays_there_for_the_start_up_code() -> None:
    """The loader must not write it to the core's local RAM, which release clears (T16)."""
    machine = bhemu.Machine()
    data = Load(LOCAL, b"\x2a\0\0\0", size=8, flags=6, load_address=0x5000)
    machine.load(program(COPY, 0, more=(data,)), "B")
    machine.start()
    machine.run()
    assert (word(machine), word(machine, RESULT + 4)) == (42, 0)


@pytest.mark.parametrize("core", START)
def test_data_of_local_ram_without_a_load_address_is_there_when_the_core_starts(core: str) -> None:
    text = "li t0, 0xffb00000\nlw t1, 0x10(t0)\nli t0, 0x20000\nsw t1, 0(t0)\nebreak"
    machine = bhemu.Machine()
    machine.load(program(text, START[core], more=(Load(LOCAL + 0x10, b"\x2a\0\0\0", flags=6),)), core)
    machine.start()
    machine.run()
    assert word(machine) == 42


def test_local_ram_of_a_program_that_needs_none_is_cleared() -> None:
    text = "li t0, 0xffb00000\nlw t1, 0(t0)\nli t0, 0x20000\nsw t1, 0(t0)\nebreak"
    machine = bhemu.Machine()
    machine.load(program(text, more=(Load(LOCAL, b"\x2a\0\0\0", flags=6),)), "B")
    machine.start()
    machine.run()
    machine.load(program(text), "B")
    machine.start()
    machine.run()
    assert word(machine) == 0


# --- for which core ------------------------------------------------------------------------------


@pytest.mark.parametrize("core", START)
def test_core_is_guessed_from_the_entry(core: str) -> None:
    assert bhemu.Machine().load(program(store(1), START[core])) == core


def test_core_is_b_when_nothing_says_otherwise() -> None:
    assert bhemu.Machine().load(program(store(1), 0x30000)) == "B"


def test_core_recorded_by_the_linker_wins() -> None:
    names = (Name("__bhemu_core", 3, kind=0, section=0xFFF1),)
    assert bhemu.Machine().load(program(store(1), START["T0"], names=names)) == "T2"  # type: ignore[arg-type]


def test_code_for_some_t_core_needs_a_core() -> None:
    file = make_elf((Load(0x30000),), with_symbols([], attributes_section(b"rv32i2p0_xtttensixbh1p0")), entry=0x30000)
    executable = parse_elf(file, "math.elf")
    with pytest.raises(ProgramError, match=r"math\.elf is for a T core"):
        bhemu.Machine().load(executable)
    assert bhemu.Machine().load(executable, "t1") == "T1"


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "load", "text"),
    [
        ("B", Load(0x180000, b"\0\0\0\0"), "segment 1 at 0x00180000, 0x4 bytes long"),
        ("B", Load(0x17FFF8, b"\0\0\0\0", size=16), "segment 1 at 0x0017fff8, 0x10 bytes long"),
        ("B", Load(LOCAL + 0x1FFC, bytes(8)), "segment 1 at 0xffb01ffc, 0x8 bytes long"),
        ("T1", Load(LOCAL + 0x1000, bytes(4)), "the local RAM of core T1 0xffb00000..0xffb00fff"),
        (
            "B",
            Load(0x20000000, bytes(4)),
            "L1 is 0x00000000..0x0017ffff, the local RAM of core B 0xffb00000..0xffb01fff",
        ),
    ],
)
def test_segment_outside_of_memory_is_refused(core: str, load: Load, text: str) -> None:
    executable = program(store(1), START[core], more=(load,))
    with pytest.raises(MemoryError_, match="is outside of every memory") as refusal:
        bhemu.Machine().load(executable, core)
    assert text in refusal.value.message
    assert "kernel.elf" in refusal.value.message


def test_nothing_is_written_by_a_refused_program() -> None:
    machine = bhemu.Machine()
    with pytest.raises(MemoryError_):
        machine.load(program(store(1), 0, more=(Load(0x20000000, bytes(4)),)), "B")
    assert not np.any(machine.tile.l1)
    assert machine.programs == {}


def test_programs_of_two_cores_must_not_overlap() -> None:
    machine = bhemu.Machine()
    machine.load(program(store(1), 0x6000, name="unpack.elf"), "T0")
    with pytest.raises(MemoryError_, match="belongs to two programs") as refusal:
        machine.load(program(store(1), 0x6008, name="math.elf"), "T1")
    assert "0x6008..0x600f" in refusal.value.message
    assert "segment 0 of math.elf (core T1)" in refusal.value.message
    assert "segment 0 of unpack.elf (core T0)" in refusal.value.message


def test_same_local_ram_address_of_two_cores_is_no_overlap() -> None:
    data = (Load(LOCAL, b"\x2a\0\0\0", flags=6),)
    machine = bhemu.Machine()
    machine.load(program(store(1), START["T0"], more=data), "T0")
    machine.load(program(store(1), START["T1"], more=data), "T1")
    assert set(machine.programs) == {"T0", "T1"}


def test_jump_of_core_b_needs_room_at_address_0() -> None:
    machine = bhemu.Machine()
    machine.load(program(store(1), 0, name="other.elf"), "NC")
    with pytest.raises(MemoryError_, match="core B starts at address 0") as refusal:
        machine.load(program(store(1), 0x1000), "B")
    assert "other.elf" in refusal.value.message


def test_program_of_b_that_lies_at_0_must_be_entered_there() -> None:
    code = assemble(store(1))
    with pytest.raises(MemoryError_, match="needs a jump there to the entry 0x4"):
        bhemu.Machine().load(parse_elf(make_elf((Load(0, code),), entry=4), "kernel.elf"), "B")


@pytest.mark.parametrize(("entry", "text"), [(0x1002, "not a multiple of 4"), (0x2000, "not in code that is loaded")])
def test_entry_must_be_an_instruction_that_is_loaded(entry: int, text: str) -> None:
    with pytest.raises(MemoryError_, match=text):
        bhemu.Machine().load(parse_elf(make_elf((Load(0x1000),), entry=entry), "kernel.elf"), "B")


def test_unknown_core_is_refused() -> None:
    with pytest.raises(ProgramError, match="core 'T3' does not exist"):
        bhemu.Machine().load(program(store(1)), "T3")


def test_core_without_a_program_cannot_start() -> None:
    machine = bhemu.Machine()
    with pytest.raises(ProgramError, match="no core has a program"):
        machine.start()
    machine.load(program(store(1)), "B")
    with pytest.raises(ProgramError, match="core T0 has no program"):
        machine.start("T0")
