"""A firmware of forty instructions that keeps tt-metal's protocol (tile B6, B9), as a directory of ELF files."""

from __future__ import annotations

from pathlib import Path

from bhemu.api.firmware import FOLDERS
from bhemu.loader.firmware_layout import read_layouts
from tests.loader.boot_programs import elf_bytes
from tests.loader.elf_files import Load

KNOWN = read_layouts()[0]
RESULT = 0x30000

# Sets the others' reset pcs, releases them, says done; then runs B's kernel whenever the signal is GO.
BRISC = f"""
    li t0, 0xffb12228
    li t1, {KNOWN.entry["T0"]:#x}
    sw t1, 0(t0)
    li t1, {KNOWN.entry["T1"]:#x}
    sw t1, 4(t0)
    li t1, {KNOWN.entry["T2"]:#x}
    sw t1, 8(t0)
    li t1, 7
    sw t1, 12(t0)
    li t1, {KNOWN.entry["NC"]:#x}
    sw t1, 16(t0)
    li t1, 1
    sw t1, 20(t0)
    li t0, 0xffb121b0
    sw zero, 0(t0)
    li s0, {KNOWN.go_messages + KNOWN.go_signal:#x}
    li s1, {KNOWN.launch_messages:#x}
    li s2, 0x80
done: sb zero, 0(s0)
wait: lbu t0, 0(s0)
    bne t0, s2, wait
    lw t0, {KNOWN.launch.enables}(s1)
    andi t0, t0, 1
    beqz t0, done
    lw t0, {KNOWN.launch.config_base}(s1)
    lw t1, {KNOWN.launch.kernel_text_offset}(s1)
    add t0, t0, t1
    jalr ra, 0(t0)
    j done
"""
IDLE = "idle: j idle"
KERNEL = f"li t0, {RESULT:#x}\nli t1, 0x77\nsw t1, 0(t0)\nli a0, 0\nret"


def write_set(folder: Path, brisc: str = BRISC, *, data: tuple[Load, ...] = (), entry: int | None = None) -> Path:
    for core, name in FOLDERS.items():
        (folder / name).mkdir(parents=True)
        address = KNOWN.entry[core]
        content = elf_bytes(IDLE, address)
        if core == "B":
            content = elf_bytes(brisc, address if entry is None else entry, more=data)
        (folder / name / f"{name}.elf").write_bytes(content)
    return folder
