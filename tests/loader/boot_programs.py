"""ELF files of hand-written assembly, for tests that load and run them."""

from __future__ import annotations

from pathlib import Path

from bhemu.loader.elf import Executable, parse_elf
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.riscv.rv_asm import assemble

START = {"B": 0x00000, "T0": 0x06000, "T1": 0x0A000, "T2": 0x0E000, "NC": 0x12000}
"""Where each core starts (T14)."""
LOCAL = 0xFFB00000


def elf_bytes(text: str, address: int = 0, *, names: tuple[Name, ...] = (), more: tuple[Load, ...] = ()) -> bytes:
    """The ELF file of assembly text linked at an address, where it is entered."""
    code = assemble(text, address)
    start = Name("_start", address, len(code))
    return make_elf((Load(address, code), *more), with_symbols([start, *names]), entry=address)


def program(text: str, address: int = 0, *, name: str = "kernel.elf", **more: tuple[Load, ...]) -> Executable:
    """The same, loaded."""
    return parse_elf(elf_bytes(text, address, **more), name)  # type: ignore[arg-type]


def write_elf(path: Path, text: str, address: int = 0, *, names: tuple[Name, ...] = ()) -> Path:
    """The same as a file."""
    path.write_bytes(elf_bytes(text, address, names=names))
    return path


def store(value: int, address: int = 0x20000) -> str:
    """Store a word and halt."""
    return f"li t0, {address:#x}\nli t1, {value:#x}\nsw t1, 0(t0)\nebreak"
