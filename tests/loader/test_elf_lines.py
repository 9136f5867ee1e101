"""Line numbers of ELF files: DWARF line programs made by hand and by the compiler."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from bhemu.loader.elf import SourceLine, load_elf, parse_elf
from tests.loader.elf_files import (
    CODE,
    COMPILER,
    FILE,
    NEGATE,
    Load,
    Name,
    Section,
    compile_kernel,
    end_after,
    executable,
    line_number,
    make_elf,
    row,
    start_at,
    with_lines,
    with_program,
    with_symbols,
)


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_lines(version: int) -> None:
    program = start_at(CODE) + row(0, 10) + row(8, 12, 10) + bytes([FILE, 2]) + row(4, 7, 12)
    program += bytes([FILE, 1]) + row(4, 12, 7) + end_after(8)
    loaded = with_program(program, version)
    kernel, header = "/proj/src/kernel.c", "/lib/mop.h"
    assert loaded.line_at(CODE - 1) is None
    assert loaded.line_at(CODE) == SourceLine(kernel, 10)
    assert loaded.line_at(CODE + 7) == SourceLine(kernel, 10)
    assert loaded.line_at(CODE + 8) == SourceLine(kernel, 12)
    assert loaded.line_at(CODE + 12) == SourceLine(header, 7)
    assert loaded.line_at(CODE + 16) == SourceLine(kernel, 12)
    assert loaded.line_at(CODE + 23) == SourceLine(kernel, 12)
    assert loaded.line_at(CODE + 24) is None
    assert loaded.describe(CODE + 16) == "main+0x10 (kernel.c:12)"
    assert loaded.describe(CODE + 24) == "main+0x18"
    assert loaded.addresses_of_line("kernel.c", 12) == [CODE + 8, CODE + 16]
    assert loaded.addresses_of_line("src/kernel.c", 12) == [CODE + 8, CODE + 16]
    assert loaded.addresses_of_line("./src/kernel.c", 10) == [CODE]
    assert loaded.addresses_of_line(kernel, 10) == [CODE]
    assert loaded.addresses_of_line("ernel.c", 12) == []
    assert loaded.addresses_of_line("other/kernel.c", 12) == []
    assert loaded.addresses_of_line("kernel.c", 11) == []
    assert loaded.line_damage is None


def test_repeated_rows_are_one_place() -> None:
    loaded = with_program(start_at(CODE) + row(0, 10) + row(4, 10, 10) + row(4, 11, 10) + end_after(4))
    assert loaded.addresses_of_line("kernel.c", 10) == [CODE]


def test_rows_that_are_no_statements_take_no_breakpoint() -> None:
    program = start_at(CODE) + bytes([NEGATE]) + row(0, 10) + bytes([NEGATE]) + row(4, 10, 10) + end_after(4)
    loaded = with_program(program)
    assert loaded.line_at(CODE) == SourceLine("/proj/src/kernel.c", 10)
    assert loaded.addresses_of_line("kernel.c", 10) == [CODE + 4]


def test_a_line_without_code_counts_only_where_there_is_no_other() -> None:
    program = start_at(CODE) + row(0, 10) + row(0, 11, 10) + row(4, 10, 11) + end_after(4)
    loaded = with_program(program)
    assert loaded.line_at(CODE) == SourceLine("/proj/src/kernel.c", 11)
    assert loaded.addresses_of_line("kernel.c", 10) == [CODE + 4]
    only = with_program(start_at(CODE) + row(0, 10) + row(0, 11, 10) + end_after(4))
    assert only.addresses_of_line("kernel.c", 10) == [CODE]


def test_line_0_is_no_line() -> None:
    loaded = with_program(start_at(CODE) + row(0, 10) + row(4, 0, 10) + end_after(4))
    assert loaded.line_at(CODE + 4) is None
    assert loaded.describe(CODE + 4) == "main+0x4"


def test_dropped_functions_have_no_lines() -> None:
    """The linker leaves their sequences at address 0."""
    dropped = start_at(0) + row(0, 99) + end_after(8)
    kept = start_at(CODE) + row(0, 10) + end_after(8)
    loaded = with_program(dropped + kept)
    assert loaded.line_at(0) is None
    assert loaded.line_at(CODE) == SourceLine("/proj/src/kernel.c", 10)
    assert loaded.addresses_of_line("kernel.c", 99) == []


def test_dropped_functions_where_code_begins_at_0() -> None:
    program = start_at(0) + row(0, 10) + end_after(8) + start_at(0) + row(0, 99) + end_after(16)
    sections = with_symbols([], *with_lines(5, program))
    loaded = parse_elf(make_elf([Load(0)], sections, entry=0), "kernel.elf")
    assert loaded.line_at(4) == SourceLine("/proj/src/kernel.c", 10)
    assert loaded.line_at(12) is None


@pytest.mark.parametrize(
    "tables",
    [
        bytes([0]) + b"\xff\xff\xff\xff\xff\x7f" + bytes(8),  # 2**42 directories of no bytes
        bytes([1, 1, 0x19]) + b"\xff\xff\xff\xff\xff\x7f" + bytes(8),  # the same with DW_FORM_flag_present
        bytes([1, 1, 0x08]) + b"\xff\xff\xff\xff\xff\x7f" + b"/proj\0",
        bytes([1, 1, 0x77, 1]) + b"/proj\0",
        b"\xff",
    ],
)
def test_damaged_file_tables_cost_lines_only(tables: bytes) -> None:
    loaded = with_program(start_at(CODE) + row(0, 10) + end_after(8), tables=tables)
    assert loaded.line_at(CODE) is None
    assert loaded.describe(CODE + 4) == "main+0x4"
    assert loaded.line_damage is not None
    assert "debug information is damaged" in loaded.line_damage


def test_a_damaged_unit_does_not_cost_the_others_their_lines() -> None:
    bad = with_lines(5, start_at(CODE) + row(0, 10) + end_after(8), tables=b"\xff")
    good = with_lines(4, start_at(CODE + 8) + row(0, 20) + end_after(8))
    second = good[2].content[:-10] + struct.pack("<I", len(bad[1].content)) + good[2].content[-6:]
    second = second[:6] + struct.pack("<I", len(bad[0].content)) + second[10:]  # abbreviations of its own
    sections = [
        Section(first.name, first.content + other)
        for first, other in zip(bad, (good[0].content, good[1].content, second), strict=True)
    ]
    loaded = executable([Name("main", CODE, 32)], *sections)
    assert loaded.line_at(CODE) is None
    assert loaded.line_at(CODE + 8) == SourceLine("/proj/src/kernel.c", 20)
    assert "damaged" in (loaded.line_damage or "")


def test_lines_that_go_back_are_damage() -> None:
    loaded = with_program(start_at(CODE + 8) + row(0, 10) + start_at(CODE) + row(0, 11, 10) + end_after(4))
    assert loaded.line_at(CODE) is None
    assert "goes back" in (loaded.line_damage or "")


def test_unknown_version_of_lines_is_damage() -> None:
    sections = with_lines(5, start_at(CODE) + row(0, 10) + end_after(8))
    line = bytearray(sections[1].content)
    line[4] = 6
    sections[1].content = bytes(line)
    loaded = executable([Name("main", CODE, 32)], *sections)
    assert loaded.line_at(CODE) is None
    assert "version 6" in (loaded.line_damage or "")


def test_lines_agree_with_addr2line(tmp_path: Path) -> None:
    path = compile_kernel(tmp_path, "-O2")
    loaded = load_elf(path)
    code = next(s for s in loaded.segments if s.executable)
    addresses = [a for a in range(code.address, code.address + code.size, 4) if loaded.symbol_at(a)]
    assert len(addresses) > 10
    tool = COMPILER.replace("gcc", "addr2line")
    done = subprocess.run([tool, "-e", str(path), *map(hex, addresses)], capture_output=True, text=True, check=True)
    for address, answer in zip(addresses, done.stdout.splitlines(), strict=True):
        line = loaded.line_at(address)
        assert line is not None
        assert f"{line.file}:{line.line}" == answer.split(" ")[0]


def test_kept_relocations_do_not_shift_lines(tmp_path: Path) -> None:
    loaded = load_elf(compile_kernel(tmp_path, "-Wl,--emit-relocs"))
    work = loaded.address_of("work")
    assert work is not None
    assert loaded.describe(work) == f"work (kernel.c:{line_number('unsigned work')})"
