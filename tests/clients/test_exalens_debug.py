"""Programs on a core, under the unmodified tt-exalens 0.4.2: load, look, halt, step, break (`make test-clients`)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.clients

Commands = Callable[..., list[str]]
Script = Callable[[str], str]

SPEND = ["brxy 0,0 0x20000 2"] * 60
"""Time passes by reads; after these the program is in its last loop."""


def lines_of_calls() -> list[tuple[str, int]]:
    """(function, line of program.c that calls the next one), the last one first; the loop's line for `count`."""
    text = Path(__file__).with_name("program.c").read_text().splitlines()

    def line(part: str) -> int:
        return next(number for number, code in enumerate(text, 1) if part in code)

    return [("count", line("mailbox[1] = ")), ("outer", line("count(n + 1)")), ("main", line("outer(0x1233)"))]


def loop_of(elf: Path) -> list[int]:
    """Addresses of the instructions of the loop in `count`."""
    text = subprocess.run(
        ["riscv64-unknown-elf-objdump", "-d", str(elf)], check=True, capture_output=True, text=True
    ).stdout
    body = text.partition("<count>:")[2].partition("\n\n")[0]
    code = [(int(a, 16), rest) for a, rest in re.findall(r"^\s*(\w+):\s+\w+\s+(.*)$", body, re.MULTILINE)]
    last, jump = code[-1]
    target = re.search(r"j\s+(\w+)", jump)
    assert target, body
    return [address for address, _ in code if int(target[1], 16) <= address <= last]


def test_run_elf_and_callstack(commands: Commands, elf: Path) -> None:
    *_, memory, stack = commands(f"run-elf {elf} -r brisc", *SPEND, f"bt {elf} -r brisc")
    words = re.search(r"0x00020000:\s+(\w+)\s+(\w+)", memory)
    assert words, memory
    assert int(words[1], 16) == 0x1234
    assert int(words[2], 16) > 0
    frames = re.findall(r"#\d 0x(\w+) in (\w+) \(\) at \S*program\.c (\d+):", stack)
    assert [(name, int(line)) for _, name, line in frames] == lines_of_calls(), stack
    assert int(frames[0][0], 16) in loop_of(elf)


def test_halt_step_break_and_registers(commands: Commands, elf: Path) -> None:
    loop = loop_of(elf)
    lines = [
        f"run-elf {elf} -r brisc",
        *SPEND,
        "riscv halt -r brisc",
        "gpr",
        "riscv step -r brisc",
        "gpr pc",
        "riscv rreg 2 -r brisc",
        "riscv wreg 5 0x89abcdef -r brisc",
        "gpr zero,ra,sp,t0,a0",
        "riscv rd 0xffb01fdc -r brisc",
        "riscv wr 0x20010 0x13572468 -r brisc",
        "brxy 0,0 0x20010 1",
        "riscv cont -r brisc",
        "riscv status -r brisc",
        f"riscv bkpt set {loop[2]:#x} -pt 3 -r brisc",
        *SPEND[:20],
        "riscv status -r trisc0",
        "riscv bkpt del -pt 3 -r brisc",
        "gpr a0,pc",
    ]
    seen = dict(zip(lines, commands(*lines), strict=True))

    def values(text: str) -> dict[str, int]:
        found = re.findall(r"^\d+ - (\w+)(?: / \w+)?\s+(0x\w{8})", text, re.MULTILINE)
        return {name: int(value, 16) for name, value in found}

    at_halt = values(seen["gpr"])
    assert len(at_halt) == 33
    assert at_halt["a0"] == 0x1234
    assert at_halt["sp"] == 0xFFB01FB0
    assert at_halt["pc"] in loop
    after = loop[(loop.index(at_halt["pc"]) + 1) % len(loop)]
    assert values(seen["gpr pc"]) == {"pc": after}
    assert "0xffb01fb0" in seen["riscv rreg 2 -r brisc"]
    assert values(seen["gpr zero,ra,sp,t0,a0"]) == {
        "zero": 0,
        "ra": at_halt["ra"],
        "sp": 0xFFB01FB0,
        "t0": 0x89ABCDEF,
        "a0": 0x1234,
    }
    assert f"{saved_return(elf):#010x}" in seen["riscv rd 0xffb01fdc -r brisc"]  # on the stack
    assert re.search(r"0x00020010:\s+13572468", seen["brxy 0,0 0x20010 1"])
    assert "RUNNING PC=" in seen["riscv status -r brisc"]
    assert values(seen["gpr a0,pc"]) == {"a0": 0x1234, "pc": loop[3]}  # cores pause behind a breakpoint (K42)


def saved_return(elf: Path) -> int:
    """Where `outer` returns to."""
    text = subprocess.run(
        ["riscv64-unknown-elf-objdump", "-d", str(elf)], check=True, capture_output=True, text=True
    ).stdout
    call = re.search(r"^\s*(\w+):.*jal\s+\w+ <outer>", text, re.MULTILINE)
    assert call, text
    return int(call[1], 16) + 4


def test_breakpoints_and_watchpoints(script: Script, elf: Path) -> None:
    loop = loop_of(elf)
    out = script(
        f"""
lib.run_elf({str(elf)!r}, core, "brisc", context=context)
pass_clocks(60)
hardware = brisc.debug_hardware
def stop(name):
    pass_clocks(40)
    status = hardware.read_status()
    hits = [number for number, hit in enumerate(status.watchpoints_hit) if hit]
    print(name, status.is_halted, status.is_pc_watchpoint_hit, status.is_memory_watchpoint_hit, status.is_ebreak_hit,
          hits, hex(hardware.read_gpr(32)))
hardware.halt()
hardware.set_watchpoint_on_pc_address(0, {loop[4]})
hardware.cont()
stop("pc")
hardware.disable_watchpoint(0)
hardware.set_watchpoint_on_memory_write(5, 0x20004)
before = lib.read_word_from_device(core, 0x20004, context=context)
hardware.cont()
stop("store")
print("stored", lib.read_word_from_device(core, 0x20004, context=context) - before)
hardware.disable_watchpoint(5)
hardware.set_watchpoint_on_memory_read(7, 0x20004)
hardware.cont()
stop("load")
hardware.disable_watchpoint(7)
hardware.cont()
print("runs", not hardware.is_halted())
"""
    )
    assert f"pc True True False False [0] {loop[5]:#x}" in out
    assert f"store True False True False [5] {loop[7]:#x}" in out
    assert "stored 1" in out
    assert f"load True False True False [7] {loop[3]:#x}" in out
    assert "runs True" in out
