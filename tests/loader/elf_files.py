"""ELF files for tests: made by hand, byte by byte, and by the compiler where there is one."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bhemu.loader.elf import Executable, parse_elf

COMPILER = "riscv64-unknown-elf-gcc"
CODE = 0x10000
WORDS = struct.pack("<8I", *[0x00000013] * 7, 0x0000006F)  # nop, and a jump to itself

PT_LOAD, PT_INTERP = 1, 3
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS, SHT_ATTRIBUTES = 1, 2, 3, 8, 0x70000003


@dataclass
class Load:
    """A program header and what it loads."""

    address: int = CODE
    content: bytes = WORDS
    size: int | None = None
    flags: int = 5
    load_address: int | None = None
    kind: int = PT_LOAD
    offset: int | None = None


@dataclass
class Section:
    name: str
    content: bytes
    kind: int = SHT_PROGBITS
    flags: int = 0
    address: int = 0
    link: int = 0
    size: int | None = None


def make_elf(
    loads: Sequence[Load] = (Load(),),
    sections: Sequence[Section] = (),
    *,
    bits: int = 1,
    order: int = 1,
    kind: int = 2,
    machine: int = 243,
    flags: int = 0,
    entry: int = CODE,
) -> bytes:
    """An ELF32 file by hand: header, program headers, contents, section headers."""
    body = b""
    program_headers = b""
    begin = 52 + 32 * len(loads)
    for load in loads:
        offset = begin + len(body) if load.offset is None else load.offset
        size = len(load.content) if load.size is None else load.size
        place = load.address if load.load_address is None else load.load_address
        program_headers += struct.pack(
            "<8I", load.kind, offset, load.address, place, len(load.content), size, load.flags, 4
        )
        body += load.content
    section_headers = b""
    count = 0
    if sections:
        names = b"\0"
        section_headers = bytes(40)
        all_sections = [*sections, Section(".shstrtab", b"", SHT_STRTAB)]
        for section in all_sections:
            name_at = len(names)
            names += section.name.encode() + b"\0"
            content = names if section.name == ".shstrtab" else section.content
            size = len(content) if section.size is None else section.size
            section_headers += struct.pack(
                "<10I",
                *(name_at, section.kind, section.flags, section.address, begin + len(body), size),
                *(section.link, 0, 1, 16 if section.kind == SHT_SYMTAB else 0),
            )
            body += content
        count = len(all_sections) + 1
    table = begin + len(body) if sections else 0
    identity = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    header = struct.pack(
        "<HHIIIIIHHHHHH", kind, machine, 1, entry, 52, table, flags, 52, 32, len(loads), 40, count, max(count - 1, 0)
    )
    return identity + header + program_headers + body + section_headers


@dataclass
class Name:
    """An entry of a symbol table."""

    name: str
    address: int
    size: int = 0
    kind: int = 2
    binding: int = 1
    section: int = 1


def with_symbols(names: Sequence[Name], *more: Section) -> list[Section]:
    """Sections 1 .text, 2 .symtab, 3 .strtab and more."""
    strings, records = b"\0", bytes(16)
    for name in names:
        records += struct.pack(
            "<IIIBBH", len(strings), name.address, name.size, name.binding << 4 | name.kind, 0, name.section
        )
        strings += name.name.encode() + b"\0"
    return [
        Section(".text", b"", flags=6, address=CODE),
        Section(".symtab", records, SHT_SYMTAB, link=3),
        Section(".strtab", strings, SHT_STRTAB),
        *more,
    ]


def executable(names: Sequence[Name], *more: Section, loads: Sequence[Load] = (Load(),)) -> Executable:
    return parse_elf(make_elf(loads, with_symbols(names, *more)), "kernel.elf")


def attributes_section(arch: bytes = b"rv32i2p1_m2p0", *, vendor: bytes = b"riscv") -> Section:
    tags = bytes([4, 16, 5]) + arch + b"\0"
    inner = b"\1" + struct.pack("<I", len(tags) + 5) + tags
    content = vendor + b"\0" + inner
    return Section(".riscv.attributes", b"A" + struct.pack("<I", len(content) + 4) + content, SHT_ATTRIBUTES)


FILE, LINE, PC, COPY, NEGATE = 4, 3, 2, 1, 6


def start_at(address: int) -> bytes:
    return b"\0\5\2" + struct.pack("<I", address)


def row(advance: int, line: int, last: int = 1) -> bytes:
    """Advance the address, set the line (from `last`), make a row."""
    return bytes([PC, advance, LINE, line - last & 0x7F, COPY])


def end_after(advance: int) -> bytes:
    return bytes([PC, advance, 0, 1, 1])


def with_lines(version: int, program: bytes, *, tables: bytes | None = None) -> list[Section]:
    """Debug sections of one unit, compiled in /proj, of src/kernel.c (file 1) and /lib/mop.h (file 2)."""
    if version >= 5:
        default = bytes([1, 1, 0x08, 3]) + b"/proj\0src\0/lib\0"
        default += bytes([2, 1, 0x08, 2, 0x0B, 3]) + b"kernel.c\0\1kernel.c\0\1mop.h\0\2"
    else:
        default = b"src\0/lib\0\0" + b"kernel.c\0\1\0\0mop.h\0\2\0\0\0"
    tables = default if tables is None else tables
    after = bytes([1]) + (bytes([1]) if version >= 4 else b"")
    after += bytes([1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + tables
    line = struct.pack("<H", version) + (bytes([4, 0]) if version >= 5 else b"")
    line += struct.pack("<I", len(after)) + after + program
    offset_form = 0x17 if version >= 4 else 0x06
    abbreviations = bytes([1, 0x11, 0, 0x10, offset_form, 0x1B, 0x08, 0, 0, 0])
    unit = struct.pack("<H", version)
    unit += bytes([1, 4]) + bytes(4) if version >= 5 else bytes(4) + bytes([4])
    unit += bytes([1]) + bytes(4) + b"/proj\0"
    return [
        Section(".debug_abbrev", abbreviations),
        Section(".debug_line", struct.pack("<I", len(line)) + line),
        Section(".debug_info", struct.pack("<I", len(unit)) + unit),
    ]


def with_program(program: bytes, version: int = 5, **more: bytes) -> Executable:
    return executable([Name("main", CODE, 32)], *with_lines(version, program, **more))


KERNEL = """\
volatile unsigned results[4];
static inline unsigned twice(unsigned x) {
    return x + x;
}
__attribute__((noinline)) unsigned work(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < x; i++)
        sum += twice(i) * x;
    return sum;
}
void _start(void) {
    results[0] = work(5);
    for (;;) {
    }
}
"""


def compile_kernel(folder: Path, *options: str, march: str = "rv32im_zba_zbb", mabi: str = "ilp32") -> Path:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed: compiled ELF files are NOT tested")
    source, target = folder / "kernel.c", folder / "kernel.elf"
    source.write_text(KERNEL)
    command = [COMPILER, f"-march={march}", f"-mabi={mabi}", "-nostdlib", "-ffreestanding", "-g", "-O1"]
    link = [] if "-c" in options else ["-Wl,-Ttext=0x10000,--build-id=none"]
    subprocess.run([*command, *link, *options, "kernel.c", "-o", "kernel.elf"], cwd=folder, check=True)
    return target


def line_number(text: str) -> int:
    return next(n for n, line in enumerate(KERNEL.splitlines(), 1) if text in line)
