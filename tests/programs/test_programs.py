"""Programs: declaration, placement, cores, scheduling, and what a wrong program gets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu.errors import (
    AssemblyError,
    BhemuError,
    CycleLimit,
    Deadlock,
    FormatError,
    MemoryError_,
    ProgramError,
)
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.names import Block, Condition, Semaphore, WhileSemaphore
from bhemu.programs.load import load_program
from bhemu.programs.program import Program
from bhemu.programs.run import run_program
from bhemu.programs.thread_core import Core

pytestmark = pytest.mark.plain


def nothing(core: Core) -> None:
    """A thread that does nothing."""


def make(unpack=nothing, math=nothing, pack=nothing) -> Program:  # type: ignore[no-untyped-def]
    program = Program("test")
    program.input("a", ("M", "N"), "bf16")
    program.output("c", ("M", "N"), "bf16")
    program.dimension("M", 32)
    program.dimension("N", 32)
    program.unpack(unpack)
    program.math(math)
    program.pack(pack)
    return program


def test_threads_hand_over_by_semaphores_in_the_order_that_these_force() -> None:
    order: list[int] = []

    def unpack(core: Core) -> None:
        core.SEMINIT(max_value=1, init_value=0, sem_sel=Semaphore.MATH_PACK.mask)
        core.wait_idle()
        order.append(0)
        core.SEMPOST(sem_sel=Semaphore.MATH_PACK.mask)

    def math(core: Core) -> None:
        core.SEMWAIT(stall_res=Block.CFG, sem_sel=Semaphore.MATH_PACK.mask, wait_sem_cond=WhileSemaphore.ZERO)
        core.SETC16(setc16_reg=12, setc16_value=5)
        core.wait_idle()
        order.append(1)

    result = run_program(make(unpack, math))
    assert order == [0, 1]
    assert result.tile.record.thread_config[1, 12] == 5
    assert result.report.units["sync"] == {"SEMINIT": 1, "SEMPOST": 1, "SEMWAIT": 1}


def test_more_instructions_than_the_fifo_holds_are_all_executed_in_order() -> None:
    def math(core: Core) -> None:
        for n in range(500):
            core.SETDMAREG(value=n, RegIndex16b=n % 128)

    result = run_program(make(math=math))
    expected = np.array([(499 - (499 - i) % 128) for i in range(128)], np.uint16)
    np.testing.assert_array_equal(result.tile.gpr[1].view(np.uint16), expected)


def test_config_writes_take_their_place_among_the_instructions() -> None:
    seen: list[int] = []

    def math(core: Core) -> None:
        core.config["THCON_SEC0_REG1_Out_data_format"] = 5
        core.config.write({"THCON_SEC0_REG1_In_data_format": 6, "THCON_SEC0_REG1_L1_Dest_addr": 0x12345678})
        core.config["ADDR_MOD_AB_SEC0_SrcAIncr"] = 8
        core.config["ADDR_MOD_AB_SEC0_SrcBIncr"] = 4
        seen.append(core.config["THCON_SEC0_REG1_Out_data_format"])

    record = run_program(make(math=math)).tile.record
    assert seen == [5]
    assert record.config[0, 70] == 0x650
    assert record.config[0, 69] == 0x12345678
    assert record.thread_config[1, 12] == 0x0408


def test_replay_and_mop_are_programmed_and_run() -> None:
    def math(core: Core) -> None:
        with core.record(start=4):
            core.SEMPOST(sem_sel=1)
            core.SEMPOST(sem_sel=2)
        core.replay(4, 2)
        core.set_mop_double_loop(outer=2, inner=3, loop=core.word.SEMPOST(sem_sel=4), last=core.word.SEMPOST(sem_sel=8))
        core.MOP(mop_type=1)
        core.set_mop_masked(a0=core.word.SEMPOST(sem_sel=16), skip_a0=core.word.SEMPOST(sem_sel=32))
        core.MOP(0, 3, 0b0101)

    np.testing.assert_array_equal(run_program(make(math=math)).tile.semaphores[:6], [1, 1, 5, 1, 2, 2])


@pytest.mark.parametrize(("outer", "inner"), [(128, 1), (1, 1023)])
def test_a_mop_has_loops_of_up_to_1023_passes(outer: int, inner: int) -> None:
    def math(core: Core) -> None:
        core.set_mop_double_loop(outer=outer, inner=inner, loop=core.word.SETDMAREG(value=1, RegIndex16b=0))
        core.MOP(mop_type=1)

    tile = run_program(make(math=math)).tile
    assert tile.record.issued[1, INSTRUCTIONS["SETDMAREG"].opcode] == outer * inner


def test_a_polling_core_sees_what_the_machine_does() -> None:
    def unpack(core: Core) -> None:
        for _ in range(100):
            core.SETDMAREG(value=1, RegIndex16b=1)
        core.SEMPOST(sem_sel=4)

    def math(core: Core) -> None:
        while core.semaphore(2) == 0:
            pass
        core.semaphore_get(2)

    assert run_program(make(unpack, math)).tile.semaphores[2] == 0


def test_a_deadlock_says_who_waits_for_what_on_which_line() -> None:
    def math(core: Core) -> None:
        core.SEMWAIT(stall_res=Block.SYNC, sem_sel=Semaphore.MATH_PACK.mask, wait_sem_cond=WhileSemaphore.ZERO)
        core.SEMPOST(sem_sel=1)

    def pack(core: Core) -> None:
        core.wait_until(lambda: False, "the end of the world")

    with pytest.raises(Deadlock) as caught:
        run_program(make(math=math, pack=pack))
    text = str(caught.value)
    assert "SEMWAIT" in text
    assert "MATH_PACK" in text
    assert "is 0 of 0" in text
    assert "the end of the world" in text


def test_a_deadlock_in_a_wait_for_the_vector_unit_and_a_bank_names_the_bank() -> None:
    """Whether the vector unit is busy only compiled code can say."""

    def math(core: Core) -> None:
        core.STALLWAIT(stall_res=Block.MATH, wait_res=Condition.SRCA_VALID | Condition.SFPU)
        core.MVMUL()

    with pytest.raises(Deadlock, match="SrcA bank 0 is owned by the unpackers") as caught:
        run_program(make(math=math))
    assert "the vector unit has" not in str(caught.value)


def test_functions_that_poll_for_ever_are_a_deadlock() -> None:
    def math(core: Core) -> None:
        while core.semaphore(5) == 0:
            pass

    with pytest.raises(Deadlock, match="semaphore 5"):
        run_program(make(math=math))


def test_an_endless_program_ends_at_max_cycles() -> None:
    def math(core: Core) -> None:
        while True:
            core.DMANOP()

    with pytest.raises(CycleLimit, match="1000"):
        run_program(make(math=math), max_cycles=1000)


def test_a_failing_function_names_the_exception() -> None:
    def math(core: Core) -> None:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ProgramError, match="math function: ZeroDivisionError: by zero"):
        run_program(make(math=math))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda core: core.SETDMAREGG(value=1), "SETDMAREGG"),
        (lambda core: core.SETDMAREG(valu=1), "valu"),
        (lambda core: core.SETDMAREG(value=0x10000, RegIndex16b=0), "value"),
        (lambda core: core.config.write({"Out_data_format": 1}), "Out_data_format"),
        (lambda core: core.config.write({"THCON_SEC0_REG1_Out_data_format": 77}), "77"),
        (lambda core: core.set_mop_double_loop(outer=1024, inner=1, loop=0), "outer count 1024"),
    ],
)
def test_a_misspelt_or_impossible_operand_is_refused(body, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AssemblyError, match=message) as caught:
        run_program(make(math=body))
    assert caught.value.thread == 1


def test_inputs_bind_named_dimensions() -> None:
    program = make()
    program.bind({"a": np.zeros((96, 64), np.float32)})
    assert program.tensors["c"].shape == (96, 64)
    assert program.tensors["c"].tiles == 6
    assert program.tensors["c"].tile_address(5) == program.tensors["c"].address + 5 * 2048


def test_contradicting_inputs_are_refused() -> None:
    program = make()
    program.input("b", ("N", "K"), "bf16")
    with pytest.raises(ProgramError, match="N is 64"):
        program.bind({"a": np.zeros((32, 64)), "b": np.zeros((32, 32))})
    with pytest.raises(ProgramError, match="K"):
        program.bind({"a": np.zeros((32, 64))})
    with pytest.raises(ProgramError, match="no input 'd'"):
        program.bind({"d": np.zeros((32, 64))})
    with pytest.raises(ProgramError, match="2 dimensions"):
        program.bind({"a": np.zeros((32, 64, 2))})


def test_shapes_that_are_not_whole_tiles_are_refused_by_name() -> None:
    with pytest.raises(FormatError, match="tensor a"):
        make().bind({"a": np.zeros((33, 32), np.float32)})


def test_a_dtype_that_the_format_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"input a.*complex"):
        run_program(make(), {"a": np.zeros((32, 32), np.complex64)})


def test_buffers_are_placed_without_overlap_and_too_large_ones_refused() -> None:
    program = make()
    program.bind({"a": np.zeros((512, 512), np.float32)})
    spans = sorted((t.address, t.address + t.bytes) for t in program.tensors.values())
    assert spans[0][1] <= spans[1][0]
    with pytest.raises(MemoryError_, match="bytes of L1"):
        make().bind({"a": np.zeros((1024, 1024), np.float32)})


def test_overlapping_buffers_are_refused() -> None:
    program = Program("overlap")
    program.input("a", (32, 32), "bf16", address=0x10000)
    program.output("c", (32, 32), "bf16", address=0x10400)
    with pytest.raises(MemoryError_, match="overlaps a"):
        program.bind({})
    program = Program("outside")
    program.input("a", (32, 32), "bf16", address=0x17FFF0)
    with pytest.raises(MemoryError_, match="0x17fff0"):
        program.bind({})


def test_settings_choose_parameters_and_dimensions() -> None:
    program = make()
    program.parameter("mode", "one", choices=("one", "two"))
    program.parameter("scale", 3)
    program.choose({"mode": "TWO", "scale": "5", "M": "96"})
    assert program.parameters == {"mode": "two", "scale": 5}
    assert program.defaults["M"] == 96
    for wrong in ({"mode": "three"}, {"scale": "x"}, {"M": "-1"}, {"Q": "1"}):
        with pytest.raises(ProgramError):
            program.choose(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import", "invalid syntax"),
        ("x = 1\ny = x / 0", "ZeroDivisionError"),
        ("x = 1", "0 programs"),
        ("from bhemu import Program\np = Program('x')", "no function for thread unpack"),
    ],
)
def test_files_that_declare_no_program_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(text)
    with pytest.raises(ProgramError, match=message):
        load_program(path)


def test_a_missing_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no such file"):
        load_program(tmp_path / "nothing.py")


def test_refusals_name_the_program_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "from bhemu import Program\n"
        "program = Program('wrong')\n"
        "program.input('a', (32, 32), 'bf16')\n"
        "@program.unpack\n"
        "def unpack(core):\n"
        "    core.DMANOP()\n"
        "    core.SEMPOST(sem_sel=0)\n"
        "@program.math\n"
        "def math(core): pass\n"
        "@program.pack\n"
        "def pack(core): pass\n"
    )
    with pytest.raises(BhemuError) as caught:
        run_program(load_program(path))
    assert caught.value.line == 7
    assert caught.value.thread == 0
    assert "SEMPOST" in caught.value.message


def test_the_error_against_the_reference_is_reported() -> None:
    program = make()

    @program.reference
    def reference(a):  # type: ignore[no-untyped-def]
        return a + 3.0

    report = run_program(program, {"a": np.zeros((32, 32), np.float32)}).report
    assert report.errors["c"].absolute == 3.0  # nothing was packed: c is zero
    assert report.errors["c"].relative == 1.0


def test_a_program_may_be_run_again_with_other_shapes() -> None:
    program = make()
    program.bind({"a": np.zeros((512, 512), np.float32)})
    program.bind({"a": np.zeros((32, 32), np.float32)})
    spans = sorted((t.address, t.address + t.bytes) for t in program.tensors.values())
    assert spans[0][1] <= spans[1][0]
    assert spans[1][1] < 0x10000
