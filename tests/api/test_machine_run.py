"""Running loaded programs: how a run ends, what waits for what, and what each kind of failure says."""

from __future__ import annotations

import pytest

import bhemu
from bhemu.api.semihosting import Semihosting
from bhemu.errors import BhemuError, CycleLimit, Deadlock, NonContractualBehavior, ProgramError, UndefinedBehavior
from tests.loader.boot_programs import START, program, store
from tests.loader.elf_files import Load, Name

pytestmark = pytest.mark.plain

RESULT = 0x20000
SELF_JUMP = "done: j done"


def machine(**texts: str) -> bhemu.Machine:
    """A machine whose cores run assembly texts, each at its core's start."""
    made = bhemu.Machine()
    for core, text in texts.items():
        made.load(program(text, START[core], name=f"{core}.elf"), core)
    made.start()
    return made


def word(made: bhemu.Machine, address: int = RESULT) -> int:
    return int(made.tile.record.l1_u32[address // 4])


# --- ends ----------------------------------------------------------------------------------------


def test_run_ends_when_all_cores_have_halted_by_ebreak() -> None:
    made = machine(B="nop\nebreak", NC="nop\nnop\nnop\nebreak")
    result = made.run()
    assert result.reason == "done"
    assert result.clocks == 4
    assert [(c.name, c.state, c.why, c.pc, c.retired) for c in result.cores] == [
        ("B", "halted", "ebreak", 4, 2),
        ("NC", "halted", "ebreak", START["NC"] + 12, 4),
    ]


def test_endless_self_jump_is_done_and_its_core_idle() -> None:
    result = machine(B=f"{store(5)[:-6]}\n{SELF_JUMP}").run()
    assert result.reason == "done"
    assert result.cores[0].state == "idle"
    assert result.cores[0].place == "0x0000c _start+0xc"
    assert result.clocks < 100


def test_longer_loop_that_reads_nothing_is_done_too() -> None:
    assert machine(B="done: nop\nnop\nj done").run().cores[0].state == "idle"


def test_clocks_are_those_of_the_last_instruction_and_not_of_the_hosts_look() -> None:
    """The host looks every 16,384 clocks; a run ends with the instruction after which nothing moved."""
    loop = "li t0, 10000\nloop: addi t0, t0, -1\nbnez t0, loop\nebreak"
    made = machine(B=loop)
    result = made.run()
    assert result.cores[0].retired == 2 + 20000 + 1
    assert result.clocks == result.cores[0].retired


def test_run_goes_on_until_the_coprocessor_has_ended_too() -> None:
    words = "\n".join(".ttinsn 0x45000000" for _ in range(20))  # SETDMAREG
    made = machine(T0=f"{words}\nebreak")
    made.run()
    assert int(made.tile.record.issued[0, 0x45]) == 20


def test_core_released_by_another_core_belongs_to_the_run() -> None:
    release = "li t0, 0xffb121b0\nlw t1, 0(t0)\nli t2, 0xfffbffff\nand t1, t1, t2\nsw t1, 0(t0)\nebreak"
    made = bhemu.Machine()
    made.load(program(release, 0), "B")
    made.load(program(store(6), START["NC"]), "NC")
    made.start("B")
    assert {core.name for core in made.run().cores} == {"B", "NC"}
    assert word(made) == 6


def test_machine_without_a_started_core_cannot_run() -> None:
    made = bhemu.Machine()
    made.load(program("ebreak"), "B")
    with pytest.raises(ProgramError, match="no core is out of reset"):
        made.run()


# --- until ---------------------------------------------------------------------------------------

COUNT = "li t0, 0x20000\nli t1, 0\nloop: addi t1, t1, 1\nsw t1, 0(t0)\nli t2, 100\nbne t1, t2, loop\nlast: ebreak"


def counting() -> bhemu.Machine:
    made = bhemu.Machine()
    made.load(program(COUNT, names=(Name("loop", 8, 4), Name("last", 24, 4))), "B")  # type: ignore[arg-type]
    made.start()
    return made


def test_run_until_a_symbol_stops_before_its_instruction_and_goes_on() -> None:
    made = counting()
    assert made.run(until="loop").clocks == 2
    assert word(made) == 0
    result = made.run(until="B.loop")
    assert (result.reason, result.clocks, word(made)) == ("until", 4, 1)
    assert made.run(until=24).clocks == 4 * 99
    assert made.run().reason == "done"
    assert word(made) == 100


def test_clocks_of_runs_that_go_on_add_up_to_those_of_one_run() -> None:
    whole = counting().run().clocks
    made = counting()
    assert made.run(until="loop").clocks + made.run(until="loop").clocks + made.run().clocks == whole


def test_run_until_a_condition_ends_within_a_few_clocks() -> None:
    made = counting()
    result = made.run(until=lambda: word(made) >= 40)
    assert result.reason == "until"
    assert 40 <= word(made) < 40 + 32 // 4 + 1


def test_condition_ends_a_wait_for_the_host() -> None:
    poll = "li t0, 0x20000\nwait: lw t1, 0(t0)\nbeqz t1, wait\nsw zero, 0(t0)\nebreak"
    made = machine(B=poll)
    with pytest.raises(Deadlock):
        made.run()
    made.tile.l1[RESULT] = 1
    assert made.run().reason == "done"
    assert word(made) == 0


def test_unknown_and_ambiguous_symbols_are_refused() -> None:
    made = machine(B="ebreak", NC="ebreak")
    with pytest.raises(ProgramError, match="symbol 'man'"):
        made.run(until="man")
    with pytest.raises(ProgramError, match=r"'_start' is ambiguous: B\._start is 0x0, NC\._start is 0x12000"):
        made.run(until="_start")


# --- nothing can proceed -----------------------------------------------------------------------------


def deadlock(made: bhemu.Machine) -> str:
    with pytest.raises(Deadlock, match="nothing can move") as stop:
        made.run()
    assert stop.value.remedy
    return stop.value.message


def test_deadlock_names_the_polled_word_its_value_and_its_symbol() -> None:
    poll = "li t0, 0x20000\nwait: lw t1, 0x10(t0)\nbeqz t1, wait\nebreak"
    made = bhemu.Machine()
    flag = Name("flag", 0x20010, 4, kind=1)
    made.load(program(poll, 0x100, names=(flag,)), "B")  # type: ignore[arg-type]
    made.start()
    assert "  core B at 0x00104 _start+0x4: polls 0x20010 flag, which holds 0x0" in deadlock(made)


def test_deadlock_names_cores_that_wait_in_mailboxes() -> None:
    text = deadlock(machine(B="ebreak", T0="li t0, 0xffec0000\nlw t1, 0(t0)\nebreak"))
    assert "core B at 0x00000 _start: halted by ebreak" in text
    assert "core T0 at 0x06004 _start+0x4: waits for a word in the mailbox from B (load of 0xffec0000)" in text


def test_deadlock_names_the_semaphore_that_a_core_polls() -> None:
    text = deadlock(machine(T1="li t0, 0xffe80020\nwait: lw t1, 4(t0)\nbeqz t1, wait\nebreak"))
    assert "polls semaphore 1 (MATH_PACK), which holds 0x0" in text


def test_deadlock_names_the_full_fifo_and_the_word_that_holds_its_thread() -> None:
    """T1 pushes behind a STALLWAIT for a bank of SrcA that is never given to the matrix unit."""
    push = "\n".join(".ttinsn 0x26000000" for _ in range(60))
    text = deadlock(machine(T1=f".ttinsn 0xa2b20080\n{push}\nebreak"))
    assert "waits to push MVMUL" in text
    assert "the FIFO of thread 1 (math) is full" in text
    assert "thread 1 (math): MVMUL" in text
    assert "(pushed by T1 at 0x0a004 _start+0x4)" in text
    assert "is held by STALLWAIT" in text


def test_stuck_thread_is_a_deadlock_even_when_all_cores_have_halted() -> None:
    text = deadlock(machine(T1=".ttinsn 0xa2b20080\n.ttinsn 0x26000000\nebreak"))
    assert "core T1 at 0x0a008 _start+0x8: halted by ebreak" in text
    assert "thread 1 (math): MVMUL" in text


def test_clock_limit_tells_where_every_core_is() -> None:
    forever = "loop: addi t0, t0, 1\nj loop"
    with pytest.raises(CycleLimit, match="not done after 5,000 clocks") as stop:
        machine(B=forever, NC="ebreak").run(max_clocks=5000)
    assert "core B at 0x0000" in stop.value.message
    assert "_start" in stop.value.message
    assert ": running" in stop.value.message
    assert "core NC at 0x12000 _start: halted by ebreak" in stop.value.message


def test_run_can_go_on_after_the_clock_limit() -> None:
    made = counting()
    with pytest.raises(CycleLimit):
        made.run(max_clocks=100)
    assert made.run().reason == "done"
    assert word(made) == 100


# --- refused instructions ------------------------------------------------------------------------


def refusal(text: str, core: str = "B") -> BhemuError:
    made = machine(**{core: text})
    with pytest.raises((UndefinedBehavior, NonContractualBehavior)) as stop:
        made.run()
    assert made.tile.cores[core].halt_reason == "refused"
    return stop.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nop\n.word 0xffffffff", ("core B at 0x00004 _start+0x4", "0xffffffff")),
        ("li t0, 0x20002\nlw t1, 0(t0)", ("_start+0x8", "lw t1, 0(t0)", "0x20002")),
        ("li t0, 0x180000\nsw t1, 0(t0)", ("_start+0x4", "0x180000", "memory map")),
        ("li t0, 0xffb12000\nsb t1, 0(t0)", ("0xffb12000", "word")),
        ("li t0, 0xffb80000\nsw t1, 0(t0)", ("core B", "0xffb80000")),
        ("li t0, 0x180000\njr t0", ("core B at 0x180000", "0x180000")),
    ],
)
def test_refused_instruction_is_named_with_core_pc_symbol_and_remedy(text: str, words: tuple[str, ...]) -> None:
    error = refusal(text)
    for part in words:
        assert part in str(error)
    assert error.remedy
    assert error.core == 0


def test_stack_into_nowhere_is_blamed_on_the_stack_pointer() -> None:
    for text, sp in (("sw ra, -4(sp)", "0x00000000"), ("li sp, 0xffb03000\nsw ra, -4(sp)", "0xffb03000")):
        error = refusal(text)
        assert f"sp is {sp}, outside of every memory" in (error.remedy or "")
        assert "0xffb02000" in (error.remedy or "")


def test_store_beyond_the_stack_of_a_t_core_is_refused() -> None:
    error = refusal("li sp, 0xffb02000\nsw ra, -4(sp)", "T2")
    assert "core T2" in error.message
    assert "0xffb01000" in (error.remedy or "")


def test_tensix_word_names_the_core_that_pushed_it() -> None:
    made = machine(B="li t0, 0xffe50000\nli t1, 0xff000000\nsw t1, 0(t0)\nebreak", T1="ebreak")
    with pytest.raises(UndefinedBehavior, match="pushed by core B at 0x00008 _start\\+0x8"):
        made.run()


def test_other_cores_can_go_on_after_a_refusal() -> None:
    made = machine(B=".word 0xffffffff", NC=store(3))
    with pytest.raises(UndefinedBehavior):
        made.run()
    assert made.run().reason == "done"
    assert word(made) == 3


# --- semihosting ---------------------------------------------------------------------------------

HELLO = """
    li a7, 64
    li a0, 1
    la a1, text
    li a2, 6
    ecall
    mv s0, a0
    li a7, 214
    ecall
    li a7, 80
    li a0, 1
    li a1, 0x20000
    ecall
    li a7, 57
    ecall
    li a7, 93
    mv a0, s0
    ecall
text: .byte 104, 101, 108, 108, 111, 10
      .align 4
"""


@pytest.mark.rule("tile H26")
def test_semihosting_serves_write_brk_fstat_close_and_exit() -> None:
    written: list[tuple[int, bytes]] = []
    made = machine(B=HELLO)
    made.tile.l1[RESULT : RESULT + 120] = 0xFF
    result = made.run(semihosting=Semihosting(lambda stream, content: written.append((stream, content))))
    assert written == [(1, b"hello\n")]
    assert (result.reason, result.status) == ("exit", 6)
    assert made.tile.l1[RESULT : RESULT + 112].tolist() == [0] * 112
    assert made.tile.l1[RESULT + 112] == 0xFF


def test_buffer_may_lie_in_the_local_ram_of_core_b() -> None:
    written: list[bytes] = []
    text = "li a1, 0xffb00000\nli t0, 0x6948\nsh t0, 0(a1)\nli a7, 64\nli a0, 2\nli a2, 2\necall\nebreak"
    result = machine(B=text).run(semihosting=Semihosting(lambda _stream, content: written.append(content)))
    assert written == [b"Hi"]
    assert result.reason == "done"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("li a7, 63\necall", "ecall number 63"),
        ("li a7, 64\nli a0, 5\necall", "write to file 5"),
        ("li a7, 64\nli a0, 1\nli a1, 0x180000\nli a2, 1\necall", "a buffer of 1 bytes at 0x180000"),
        ("li a7, 93\nli a0, 256\necall", "exit with status 256"),
    ],
)
def test_service_that_does_not_exist_is_refused(text: str, words: str) -> None:
    with pytest.raises(UndefinedBehavior, match="semihosting") as stop:
        machine(B=text).run(semihosting=Semihosting(lambda *_: None))
    assert words in stop.value.message
    assert "_start+0x" in stop.value.message


def test_ecall_without_semihosting_halts_the_core_and_the_run_says_so() -> None:
    text = deadlock(machine(B="li a7, 64\necall\nebreak"))
    assert "core B at 0x00004 _start+0x4: halted by ecall number 64" in text


def test_ecall_of_another_core_is_not_served() -> None:
    with pytest.raises(Deadlock, match=r"core NC at .*: halted by ecall number 93"):
        machine(NC="li a7, 93\necall").run(semihosting=Semihosting(lambda *_: None))


# --- names ---------------------------------------------------------------------------------------


def test_same_pc_is_named_by_the_program_of_its_core() -> None:
    made = bhemu.Machine()
    made.load(program("ebreak", START["T0"], name="T0.elf"), "T0")
    assert made.describe(1, START["T0"]) == "0x06000 _start"
    assert made.describe(0, START["T0"]) == "0x06000"


def test_code_beyond_the_first_segment_is_named_too() -> None:
    made = bhemu.Machine()
    made.load(program("ebreak", more=(Load(0x8000, b"\x13\0\0\0"),)), "B")
    assert made.describe(0, 0x8000) == "0x08000"
