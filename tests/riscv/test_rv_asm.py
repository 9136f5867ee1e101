"""The tests' assembler against the disassembler, and against GNU as."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bhemu.isa.riscv import RISCV, disassemble_riscv, find
from tests.riscv.rv_asm import AsmError, assemble, assemble_with_labels

pytestmark = pytest.mark.plain

GNU = shutil.which("riscv64-unknown-elf-gcc")
ARCH = "rv32imaf_zicsr_zifencei_zba_zbb_zbkb"
OPERANDS = {
    "U": ("a0, 0xfffff", "t6, 1"),
    "J": ("s0, target", "zero, start"),
    "jalr": ("ra, -2048(t0)", "zero, 2047(a0)"),
    "B": ("a0, s11, target", "t6, t5, start"),
    "load": ("a0, -4(sp)", "s11, 2047(gp)"),
    "S": ("a0, -4(sp)", "s11, 2047(gp)"),
    "I": ("a0, a1, -2048", "t6, tp, 2047"),
    "shift": ("a0, a1, 31", "t6, tp, 0"),
    "R": ("a0, a1, a2", "t6, t5, s0"),
    "unary": ("a0, a1", "t6, t5"),
    "amo": ("a0, a1, (a2)", "t6, t5, (sp)"),
    "csr": ("a0, 0x7c0, a1", "zero, 0xf14, t6"),
    "csri": ("a0, 0x7c0, 31", "zero, 0xc80, 1"),
    "fload": ("fa0, -4(sp)", "ft11, 8(a0)"),
    "fstore": ("fa0, -4(sp)", "ft11, 8(a0)"),
    "R4": ("fa0, fa1, fa2, fa3", "ft11, ft0, fs11, fs0"),
    "FR": ("fa0, fa1, fa2", "ft11, ft0, fs11"),
    "FR3": ("fa0, fa1, fa2", "ft11, ft0, fs11"),
    "Fcmp": ("a0, fa1, fa2", "t6, ft0, fs11"),
    "F2X": ("a0, fa1", "t6, ft11"),
    "F2Xm": ("a0, fa1", "t6, ft11"),
    "X2F": ("fa0, a1", "ft11, t6"),
    "X2Fm": ("fa0, a1", "ft11, t6"),
    "fence": ("",),
    "none": ("",),
}
ALIASES = """
nop
mv a0, t6
not a0, a1
neg a0, a1
seqz a0, a1
snez a0, a1
zext.h a0, a1
j target
call_target: jal ra, target
jr t0
ret
beqz a0, start
bnez a0, target
bltz a0, start
bgez a0, start
blez a0, start
bgtz a0, start
bgt a0, a1, start
ble a0, a1, start
bgtu a0, a1, start
bleu a0, a1, start
csrr a0, 0x7c0
csrw 0x7c0, a0
fmv.s fa0, fa1
fneg.s fa0, fa1
fabs.s fa0, fa1
li a0, 0
li a0, -2048
li a0, 0x800
li a0, 0x12345678
li a0, 0xfffff800
li a0, 0x7ffff000
.word 1, 0xdeadbeef
.half 1, 0xffff
.byte 1, 2, 3, 0xff
.zero 8
"""


def _text() -> str:
    lines = ["start:"]
    for row in RISCV:
        lines += [f"{row.name} {operands}".rstrip() for operands in OPERANDS[row.layout]]
    return "\n".join(lines) + ALIASES + "target: nop\n"


@pytest.mark.skipif(GNU is None, reason="riscv64-unknown-elf-gcc is not installed")
def test_gnu_as_makes_the_same_words(tmp_path: Path) -> None:
    source, linked, image = tmp_path / "a.S", tmp_path / "a.elf", tmp_path / "a.bin"
    # GNU as takes `fence` for the fullest one, our table for the barest; conversions round as fcsr says in ours.
    text = "\n".join(
        ".word 0x0000000f" if line == "fence" else f"{line}, dyn" if line.startswith("fcvt.") else line
        for line in _text().splitlines()
    )
    source.write_text(".option norelax\n.globl _start\n_start:\n" + text)
    command = [
        str(GNU),
        f"-march={ARCH}",
        "-mabi=ilp32",
        "-nostdlib",
        "-Wl,-Ttext=0x6000",
        "-o",
        str(linked),
        str(source),
    ]
    subprocess.run(command, check=True)
    subprocess.run([str(GNU).replace("gcc", "objcopy"), "-O", "binary", str(linked), str(image)], check=True)
    ours, theirs = assemble(_text(), 0x6000), image.read_bytes()
    for at in range(0, len(theirs), 4):
        a, b = (int.from_bytes(x[at : at + 4], "little") for x in (ours, theirs))
        assert a == b, f"{0x6000 + at:#x}: {disassemble_riscv(a, 0x6000 + at)}, GNU {disassemble_riscv(b, 0x6000 + at)}"
    assert len(ours) == len(theirs)


@pytest.mark.parametrize("row", RISCV, ids=lambda row: row.name)
def test_every_row_assembles_to_itself(row: object) -> None:
    name, layout = row.name, row.layout  # type: ignore[attr-defined]
    for operands in OPERANDS[layout]:
        word = int.from_bytes(assemble(f"start: {name} {operands}\ntarget: nop")[:4], "little")
        found = find(word)
        assert found is not None
        assert found.name == name
        assert disassemble_riscv(word).split()[0] == name


def test_no_word_is_two_instructions() -> None:
    pairs = [(a, b) for a in RISCV for b in RISCV if a.number < b.number]
    assert [(a.name, b.name) for a, b in pairs if (a.match ^ b.match) & a.mask & b.mask == 0] == []


def test_addresses_of_labels_are_loaded_in_two_words() -> None:
    content, labels = assemble_with_labels("la a0, far\nli a1, far + 4\n.zero 0x17f0\nfar: nop", 0x100)
    assert labels["far"] == 0x100 + 16 + 0x17F0
    assert len(content) == 16 + 0x17F0 + 4
    assert disassemble_riscv(int.from_bytes(content[:4], "little")) == "lui a0, 0x2"
    assert disassemble_riscv(int.from_bytes(content[4:8], "little")) == "addi a0, a0, -1792"


@pytest.mark.parametrize("line", ["addi a0, a0, 2048", "beq a0, a0, 0x1000", "lw a0, a1", "frob a0", "add a0, a1, q7"])
def test_wrong_lines_are_refused(line: str) -> None:
    with pytest.raises(AsmError):
        assemble(line)
