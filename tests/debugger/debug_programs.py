"""Programs for debuggers: ELF files made of the tests' assembler, with symbols, and one of the compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bhemu import Machine
from bhemu.debugger.session import DebugSession
from bhemu.loader.elf import Executable, parse_elf
from tests.loader.elf_files import COMPILER, Load, Name, make_elf, with_symbols
from tests.riscv.rv_asm import assemble_with_labels

ENTRY = {"B": 0x4000, "T0": 0x10000, "T1": 0x14000, "T2": 0x18000, "NC": 0x1C000}


def program(text: str, base: int, functions: tuple[str, ...] = (), objects: tuple[str, ...] = ()) -> Executable:
    """An executable at `base` with a symbol for each label; objects are words."""
    content, labels = assemble_with_labels(text, base)
    names = []
    ordered = sorted((address, label) for label, address in labels.items())
    for address, label in ordered:
        if label in functions:
            later = [a for a, other in ordered if a > address and (other in functions or other in objects)]
            names.append(Name(label, address, (later or [base + len(content)])[0] - address, 2))
        elif label in objects:
            names.append(Name(label, address, 4, 1))
    load = Load(base, content, flags=7)
    return parse_elf(make_elf([load], with_symbols(names), entry=base), f"{base:#x}.elf")


def session_of(programs: Mapping[str, str], **names: tuple[str, ...]) -> DebugSession:
    """A session with assembly programs on the cores, by core name; they have not executed anything."""
    machine = Machine()
    for core, text in programs.items():
        machine.load(program(text, ENTRY[core], **names), core)
    machine.start()
    session = DebugSession(machine)
    # Core B starts at address 0, with a jump.
    if "B" in programs:
        session.step("B")
    return session


CALLS = """
        start:  li sp, 0x30000
                li a0, 3
                call outer
        done:   ebreak
        outer:  addi sp, sp, -16
                sw ra, 12(sp)
                sw s0, 8(sp)
                mv s0, a0
                call inner
                add a0, a0, s0
                lw ra, 12(sp)
                lw s0, 8(sp)
                addi sp, sp, 16
                ret
        inner:  slli a0, a0, 1
                ret
"""
CALL_NAMES = ("start", "outer", "inner")

KERNEL = """\
volatile unsigned results[4];
volatile unsigned flag = 7;
static inline unsigned twice(unsigned x) {
    return x + x;
}
__attribute__((noinline)) unsigned inner(unsigned x) {
    flag = x;
    return twice(x) + 1;
}
__attribute__((noinline)) unsigned work(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < x; i++)
        sum += inner(i) * x;
    return sum;
}
int main(void) {
    results[0] = work(5);
    results[1] = work(3);
    return 0;
}
__attribute__((naked, section(".start"))) void _start(void) {
    __asm__ volatile("li sp, 0xffb01000\\n la gp, results\\n call main\\n ebreak\\n");
}
"""


def compile_kernel(folder: Path, text: str = KERNEL) -> Path:
    """A kernel with debug information, by default the one above; skips loudly without a compiler."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: source lines and stacks of compiled code are NOT tested")
    (folder / "kernel.c").write_text(text)
    options = ["-march=rv32im_zba_zbb", "-mabi=ilp32", "-nostdlib", "-ffreestanding", "-g", "-O1", "-mno-relax"]
    link = ["-Wl,-Ttext=0x10000,--build-id=none,-e,_start,--no-relax"]
    command = [COMPILER, *options, *link, "kernel.c", "-o", "kernel.elf"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "kernel.elf"


def line_number(text: str) -> int:
    """The line of the kernel that contains a text."""
    return next(n for n, line in enumerate(KERNEL.splitlines(), 1) if text in line)
