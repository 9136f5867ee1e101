"""`bhemu debug`: what the commands print, and how they refuse."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu.cli.report import show_error
from bhemu.client.shell import Shell
from bhemu.debugger.session import DebugSession
from bhemu.isa.assembler import assemble
from tests.cli.cli_programs import Invoke
from tests.debugger.debug_programs import CALL_NAMES, CALLS, ENTRY, compile_kernel, session_of
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.processes import HANG, interruptible, started, wait_until
from tests.riscv.rv_asm import assemble_with_labels

pytestmark = pytest.mark.plain

T0 = ENTRY["T0"]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """An ELF file for core T0, with symbols and without lines."""
    text = CALLS + f"\n value: .word 1234\n .ttinsn {assemble('NOP'):#x}"
    content, labels = assemble_with_labels(text, T0)
    sizes = (16, 40, 8)
    names = [Name(name, labels[name], size, 2) for name, size in zip(CALL_NAMES, sizes, strict=True)]
    names.append(Name("value", labels["value"], 4, 1))
    path = tmp_path / "calls.elf"
    path.write_bytes(make_elf([Load(T0, content, flags=7)], with_symbols(names), entry=T0))
    return path


Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """`run("break inner", "continue")` -> what the commands print on a session with CALLS on T0; errors at the end."""

    def execute(*lines: str, programs: dict[str, str] | None = None, session: DebugSession | None = None) -> str:
        session = session or session_of(programs or {"T0": CALLS}, functions=CALL_NAMES)
        output = io.StringIO()
        Shell(session, show_error, output).run(list(lines), None, interactive=False)
        return output.getvalue() + capfd.readouterr().err

    return execute


def test_a_batch_of_commands(bhemu: Invoke, kernel: Path) -> None:
    commands = ["-c", "break inner", "-c", "continue", "-c", "bt", "-c", "finish"]
    result = bhemu("debug", f"T0={kernel}", "--batch", *commands)
    assert result.exit_code == 0
    assert "breakpoint 1: 0x10038 inner" in result.stdout
    assert "T0 at 0x10038 inner: slli a0, a0, 1" in result.stdout
    assert "#1  0x10024 returned to, called at 0x10020 outer" in result.stdout
    assert "a0 = 0x6" in result.stdout


def test_a_script_and_piped_commands(kernel: Path, tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text("# a comment\nbreak outer\ncontinue\n")
    command = [sys.executable, "-m", "bhemu.cli.main", "debug", "--core", "T0", str(kernel), "-x", str(script)]
    result = subprocess.run(command, input="print $a0\nquit\nprint 77\n", capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "breakpoint 1" in result.stdout
    assert "3 (0x3)" in result.stdout
    assert "77" not in result.stdout


def test_a_refused_command_of_a_batch_gives_status_1(bhemu: Invoke, kernel: Path) -> None:
    result = bhemu("debug", f"T0={kernel}", "--batch", "-c", "break iner", "-c", "print 5")
    assert result.exit_code == 1
    assert "did you mean inner" in result.stderr
    assert "5 (0x5)" in result.stdout  # and the next ones are executed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["T9=x.elf"], "core 'T9' does not exist"),
        (["T0="], "names no file"),
        (["--core", "Q", "x.elf"], "core 'Q' does not exist"),
        (["--gdb", ":1", "--batch", "x.elf"], "takes its commands from GDB"),
        (["T0=a.elf", "T0=b.elf"], "core T0 has two programs"),
    ],
)
def test_wrong_command_lines_have_status_2(bhemu: Invoke, arguments: list[str], message: str) -> None:
    result = bhemu("debug", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_files_that_are_no_kernels_have_status_1(bhemu: Invoke, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    for name, message in (("text", "not an ELF file"), ("absent.elf", "no such file")):
        result = bhemu("debug", f"B={tmp_path / name}")
        assert result.exit_code == 1
        assert message in result.stderr


def test_wrong_ports(bhemu: Invoke, kernel: Path) -> None:
    result = bhemu("debug", f"T0={kernel}", "--gdb", ":99999")
    assert result.exit_code == 1
    assert "is not a port" in result.stderr


def test_gdb_is_told_the_port(kernel: Path) -> None:
    from tests.debugger.rsp_client import Client

    command = [sys.executable, "-m", "bhemu.cli.main", "debug", f"T0={kernel}", "--gdb", ":0"]
    with started(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"target remote 127\.0\.0\.1:(\d+)", line)
        assert match is not None, line
        client = Client(int(match[1]))
        assert client.ask("s") == "T05thread:2;"
        assert client.ask("D") == "OK"
        assert process.wait(HANG) == 0
        client.socket.close()


def test_unique_beginnings_aliases_and_misspelt_commands(run: Run) -> None:
    assert "T0 at 0x10004" in run("si")
    assert "T0 at 0x10004" in run("stepi")
    assert "clock 0" in run("cloc")
    text = run("contniue")
    assert "there is no command 'contniue'" in text
    assert "did you mean continue" in text
    assert "may be" in run("se")
    assert "is not a command" in run("!!")


def test_an_empty_line_repeats_a_step_and_nothing_else(run: Run) -> None:
    assert run("stepi", "", "").count("T0 at") == 3
    assert run("print 7", "").count("7 (0x7)") == 1


def test_breakpoints_are_listed_changed_and_deleted(run: Run) -> None:
    text = run(
        "break outer if $a0 == 3", "tbreak *0x10038 core T0 T1", "catch mul", "catch MVMUL thread 1", "watch $sp",
        "rwatch *0x20000", "disable 3", "ignore 1 2", "info breakpoints", "delete 1 2", "info b",
    )  # fmt: skip
    listed = text.splitlines()[6:]
    assert listed[0] == "1: 0x10010 outer, if $a0 == 3, skipped 2 more times; reached 0 times"
    assert listed[1] == "2: 0x10038 inner, T0 T1, once; reached 0 times"
    assert listed[2] == "3: instruction mul, disabled; reached 0 times"
    assert listed[3] == "4: MVMUL, thread 1; reached 0 times"
    assert listed[4] == "5: watch $sp of core T0; reached 0 times"
    assert listed[5] == "6: watch read of *0x20000; reached 0 times"
    assert [line[0] for line in listed[6:]] == ["3", "4", "5", "6"]
    for line, message in (
        ("delete 9", "no breakpoint or watchpoint 9"),
        ("catch FROB", "no instruction"),
        ("catch mul thread 1", "executed by cores"),
        ("catch MVMUL core T0", "executed by threads"),
        ("catch MVMUL thread 7", "do not all exist"),
        ("break inner if $q == 1", "no register is named $q"),
        ("break inner core T8", "does not exist"),
        ("condition 1", "no breakpoint or watchpoint 1"),
        ("watch", "an argument is missing"),
        ("watch nosuch", "nosuch"),
        ("watch semaphore 9", "semaphore 9"),
        ("watch config NO_SUCH_FIELD", "NO_SUCH_FIELD"),
    ):
        assert message in run(line)


def test_running(run: Run) -> None:
    assert "breakpoint 1" in run("b inner", "run")
    assert "clock 5" in run("until 5")
    assert "T0 at 0x10038 inner" in run("advance inner")
    text = run("continue", "continue", "resume", "jump outer", "print $pc")
    assert "core T0 has halted: ebreak" in text
    assert "no core or thread can proceed" in text
    assert f"{T0 + 0x10}" in text
    assert "T0 at 0x1000c start+0xc" in run("si 2", "nexti")
    assert "0 clocks" in run("until 0")
    assert "an argument is missing" in run("until")
    loop = {"T0": "start: addi t0, t0, 1\n j start"}
    assert run("b *0x10004", "c 5", "p $t0", programs=loop).splitlines()[-1] == "5 (0x5)"


def test_looking(run: Run) -> None:
    text = run("x/2i 0x10000", "x/2xw 0x10000", "x", "x/s 0x20000", "p/x 255", "p/d 0xffffffff", "p/t 5", "p inner")
    assert "lui sp, 0x30" in text
    assert "0x00010000:  0x00030137 0x00300513" in text
    assert "0x00010008:" in text
    assert "b''" in text
    assert "0xff\n-1\n0b101\n" in text
    assert "inner" in text.splitlines()[-1]
    text = run("info registers", "info registers sp fa0 cfg0 pc", "core T1", "info threads", "thread 2")
    assert "zero 0x00000000" in text
    assert "cfg0 0x00020000" in text
    assert "  3  T1: in reset" in text.replace("* 3", "  3")
    assert "inner" in run("info functions inn")
    assert "inner" in run("info symbol 0x1003c")
    for line, message in (
        ("x/4q 0", "is not a format"),
        ("x/99999 0", "99999 units"),
        ("x/4 0xffec0000", "takes a word"),
        ("p 1 +", "is not an expression"),
        ("info registers q9", "no register"),
        ("info nonsense", "there is no report 'nonsense'"),
        ("list", "no source line"),
        ("core Z", "does not exist"),
        ("core 9", "does not exist"),
        ("dst 1024", "do not all exist"),
        ("srca 3", "bank 3"),
        ("tile 0x20000", "which tile"),
        ("tile 0x20000 bf17", "bf17"),
        ("disassemble inner 0", "0 instructions"),
    ):
        assert message in run(line), line


def test_the_coprocessor(run: Run) -> None:
    words = ["SEMINIT 5, 1, 2", "STALLWAIT 64, 128", "MVMUL 0, 0, 0, 0", "NOP"]
    text = "start: " + "\n".join(f".ttinsn {assemble(word):#x}" for word in words) + "\nend: j end"
    shown = run(
        "continue", "tensix", "queues", "semaphores", "config dst_base", "gprs 1", "lregs 0", programs={"T1": text}
    )
    assert "MVMUL" in shown
    assert "is held by STALLWAIT" in shown
    assert "(pushed by T1 at 0x14008 start+0x8)" in shown
    assert "NOP" in shown
    assert "semaphore 1: 1 of 5  MATH_PACK" in shown
    assert "GPRs of thread 1 (math)" in shown
    assert "LReg0  lane  0" in shown


def test_writing_and_displays(run: Run) -> None:
    text = run(
        "set $a0 = 7", "p $a0", "set *0x20000 = 0x12345678", "x/1xw 0x20000", "set $pc = 0x10004", "p $pc",
        "set ALU_ACC_CTRL_Fp32_enabled = 1", "p ALU_ACC_CTRL_Fp32_enabled", "display $a0", "display clock", "si",
        "undisplay", "si", "echo done",
    )  # fmt: skip
    assert "7 (0x7)" in text
    assert "0x12345678" in text
    assert f"{0x10004}" in text
    assert text.count("$a0: 3 (0x3)") == 1
    assert text.count("clock: clock 1") == 1
    assert text.endswith("done\n")
    for line in ("set $q = 1", "set 5", "set inner = 1", "set *0xffec0000", "set nosuch = 1"):
        assert "remedy" in run(line)


def test_help_is_there_for_every_command(run: Run) -> None:
    session = session_of({"T0": CALLS})
    shell = Shell(session, show_error, io.StringIO())
    text = run("help")
    for name in shell._interpreter.names:
        assert len(run(f"help {name}")) > 20
    for name in ("break", "continue", "catch", "info", "dst", "tensix"):
        assert f"  {name}" in text
    assert "remedy" in run("help nonsense")


def test_scripts_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    assert "cannot be read" in run(f"source {tmp_path / 'absent'}")
    loop = tmp_path / "loop"
    loop.write_text(f"source {loop}\n")
    assert "does it read itself" in run(f"source {loop}")


def test_ctrl_c_interrupts_a_run_and_the_session_lives_on(run: Run) -> None:
    session = session_of({"T0": "start: addi t0, t0, 1\n sw t0, 0x100(zero)\n j start"})

    def interrupt_the_run() -> None:
        wait_until(lambda: bool(session.record.l1_u32[0x40]), "the core's first store")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_the_run)
    with interruptible():
        thread.start()
        text = run("continue", "print 5", session=session)
        thread.join()
    assert "interrupted" in text
    assert "5 (0x5)" in text


def test_completion_of_commands_and_symbols() -> None:
    shell = Shell(session_of({"T0": CALLS}, functions=CALL_NAMES), show_error, io.StringIO())
    assert "break" in shell.completenames("br")
    assert shell.completedefault("inn") == ["inner"]


def test_source_level_commands(tmp_path: Path, bhemu: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    path = compile_kernel(tmp_path)
    monkeypatch.chdir(tmp_path)
    commands = ["b work", "c", "n", "s", "list", "list inner", "list kernel.c:3", "watch flag", "c", "p flag",
                "set flag = 6", "p flag", "x/2xw results", "info line", "b 18", "info b", "disas", "where"]  # fmt: skip
    result = bhemu("debug", f"T1={path}", "--batch", *(word for command in commands for word in ("-c", command)))
    assert result.exit_code == 0, result.stderr
    text = result.stdout
    assert "work (kernel.c:" in text
    assert "=> " in text
    assert "static inline unsigned twice" in text
    assert "watchpoint 2: flag" in text
    assert "6 (0x6)" in text
    assert "<results>" in text
    assert "main" in text
