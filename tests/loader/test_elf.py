"""ELF files: what is loaded, what is refused and with which words, symbols and line numbers."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.errors import ProgramError
from bhemu.loader.elf import Segment, SourceLine, Symbol, load_elf, parse_elf
from bhemu.loader.symbols import display_name
from tests.loader.elf_files import (
    CODE,
    PT_INTERP,
    SHT_ATTRIBUTES,
    SHT_NOBITS,
    SHT_SYMTAB,
    WORDS,
    Load,
    Name,
    Section,
    attributes_section,
    compile_kernel,
    end_after,
    executable,
    line_number,
    make_elf,
    row,
    start_at,
    with_lines,
    with_symbols,
)

# What is loaded


def test_minimal_file() -> None:
    data = Load(0xFFB00000, b"\1\2\3\4", size=16, flags=6, load_address=0x20000)
    loaded = parse_elf(make_elf([Load(), data], entry=CODE + 4), "a/kernel.elf")
    assert loaded.path == Path("a/kernel.elf")
    assert loaded.entry == CODE + 4
    assert loaded.segments == (
        Segment(CODE, CODE, WORDS, 32, True),
        Segment(0xFFB00000, 0x20000, b"\1\2\3\4", 16, False),
    )
    assert loaded.symbols == ()
    assert loaded.attributes is None
    assert loaded.address_of("main") is None
    assert loaded.describe(0x1234) == "0x00001234"
    assert loaded.line_at(CODE) is None
    assert loaded.addresses_of_line("kernel.c", 1) == []
    assert loaded.line_damage is None


def test_segment_may_end_where_the_address_space_ends() -> None:
    loaded = parse_elf(make_elf([Load(), Load(0xFFFFFFF0, b"", size=16, flags=6)]), "kernel.elf")
    assert loaded.segments[1].address + loaded.segments[1].size == 1 << 32


def test_empty_segments_and_others_are_left_out() -> None:
    loaded = parse_elf(make_elf([Load(), Load(0, b"", size=0), Load(CODE, b"abc", kind=4)]), "kernel.elf")
    assert len(loaded.segments) == 1


def test_segments_that_touch() -> None:
    loaded = parse_elf(make_elf([Load(CODE + 32), Load()]), "kernel.elf")
    assert [s.address for s in loaded.segments] == [CODE + 32, CODE]


@pytest.mark.parametrize("flags", [0x2, 0x4, 0x8], ids=["float ABI", "double ABI", "RVE"])
def test_other_flags_are_fine(flags: int) -> None:
    assert parse_elf(make_elf(flags=flags), "kernel.elf").entry == CODE


def test_attributes() -> None:
    assert executable([], attributes_section()).attributes == "rv32i2p1_m2p0"
    assert executable([], attributes_section(vendor=b"other")).attributes is None


@pytest.mark.parametrize(
    "content", [b"A", b"A\0\0\0\0", b"A\0\0\0\0" * 9, b"A\x20\0\0\0riscv\0\1\0\0\0\0\5", b"A\x10\0\0\0riscv\0\1\xff"]
)
def test_damaged_attributes_end_and_are_none(content: bytes) -> None:
    assert executable([], Section(".riscv.attributes", content, SHT_ATTRIBUTES)).attributes is None


# What is refused

PAST_END = make_elf([Load(0xFFFFFFF0, WORDS)])
REFUSALS: dict[str, tuple[bytes, str, str]] = {
    "empty file": (b"", "is empty", "build"),
    "not ELF": (b"#!/bin/sh\nexit 0\n" * 10, "is not an ELF file: it begins with 23 21 2f 62", "name the linked"),
    "only a magic number": (b"\x7fELF", "is truncated: the ELF header ends at byte 52, the file at byte 4", "copy"),
    "cut header": (make_elf()[:51], "is truncated: the ELF header", "copy"),
    "cut program headers": (make_elf()[:83], "is truncated: the program header table", "copy"),
    "cut segment": (make_elf()[:-1], "is truncated: segment 0 at 0x00010000 ends at byte 116", "copy"),
    "cut section table": (make_elf(sections=with_symbols([]))[:-1], "is truncated: the section table", "copy"),
    "cut section": (
        make_elf(sections=[Section(".far", b"", size=5000)]), "is truncated: section .far", "copy"
    ),
    "x86": (make_elf(machine=3), "is for x86 (32-bit), not for RISC-V", "RISC-V compiler"),
    "unknown machine": (make_elf(machine=0xABCD), "is for machine number 43981", "RISC-V compiler"),
    "big-endian": (
        b"\x7fELF\1\2\1" + bytes(9) + struct.pack(">HHIIIIIHHHHHH", 2, 243, 1, CODE, 52, 0, 0, 52, 32, 0, 40, 0, 0),
        "is big-endian", "-mlittle-endian",
    ),
    "64-bit": (
        b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 243, 1, CODE, 64, 0, 0, 64, 56, 0, 64, 0, 0),
        "is a 64-bit RISC-V file", "-march=rv32im_zba_zbb -mabi=ilp32",
    ),
    "object": (make_elf(kind=1), "is a relocatable object", "link it"),
    "shared object": (make_elf(kind=3), "is a shared or position-independent object", "-static -no-pie"),
    "core dump": (make_elf(kind=4), "is not an executable: its type is ET_CORE", "linked ELF"),
    "dynamically linked": (make_elf([Load(kind=PT_INTERP), Load()]), "is dynamically linked", "-static"),
    "compressed instructions": (make_elf(flags=1), "has compressed instructions", "no c"),
    "no segments": (make_elf([]), "has no loadable segment", "linked"),
    "segments without content": (make_elf([Load(content=b"", size=64)]), "has no loadable segment", "debug file"),
    "more in the file than in memory": (make_elf([Load(size=4)]), "has 32 bytes in the file, 4 in memory", "build"),
    "past the address space": (PAST_END, "goes past the end of the 32-bit address space", "linker script"),
    "image past the address space": (
        make_elf([Load(load_address=0xFFFFFFF0)]), "goes past the end of the 32-bit address space", "linker script"
    ),
    "overlapping segments": (
        make_elf([Load(CODE + 0x1F), Load()]),
        "segments overlap: 0x00010000..0x0001001f and 0x0001001f..0x0001003e", "linker script",
    ),
    "overlapping images": (
        make_elf([Load(), Load(0xFFB00000, b"1234", load_address=CODE + 4)]),
        "images of segments overlap: 0x00010000..0x0001001f and 0x00010004..0x00010007", "linker script",
    ),
    "debug section without content": (
        make_elf(sections=[Section(".debug_line", b"", SHT_NOBITS, size=0xFFFFFFFF)]), "section .debug_line", "build"
    ),
    "symbols without names": (
        make_elf(sections=[Section(".symtab", bytes(32), SHT_SYMTAB, link=77)]), "is damaged", "build"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal(case: str) -> None:
    content, message, remedy = REFUSALS[case]
    with pytest.raises(ProgramError) as caught:
        parse_elf(content, "kernel.elf")
    assert caught.value.message.startswith("kernel.elf")
    assert message in caught.value.message
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"kernel\.elf: no such file") as caught:
        load_elf(tmp_path / "kernel.elf")
    assert caught.value.remedy is not None


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="is a directory"):
        load_elf(tmp_path)


def test_special_file() -> None:
    with pytest.raises(ProgramError, match="not a regular file"):
        load_elf("/dev/null")


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(make_elf())

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may read anything, so file modes would not do
    with pytest.raises(ProgramError, match="cannot be read: Permission denied"):
        load_elf(path)


def test_large_foreign_files_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    path.touch()
    os.truncate(path, 1 << 40)  # sparse; reading it all would take more memory than there is
    with pytest.raises(ProgramError, match="not an ELF file"):
        load_elf(path)


def test_load_from_file(tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(make_elf())
    assert load_elf(path).path == path
    assert load_elf(str(path)).segments[0].content == WORDS


def test_elftools_is_not_imported_before_a_file_is_loaded() -> None:
    code = "import sys, bhemu.loader.elf; print('elftools' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Symbols


def test_symbols_by_address() -> None:
    loaded = executable(
        [
            Name("late", CODE + 16, 8),
            Name("early", CODE, 12),
            Name("data", CODE + 28, 4, kind=1),
            Name("limit", 0x1000, kind=0, section=0xFFF1),
            Name("undefined", 0, section=0),
            Name("kernel.c", 0, kind=4, section=0xFFF1),
            Name(".Lloop", CODE + 4, kind=0, binding=0),
            Name("$x", CODE, kind=0, binding=0),
        ]
    )
    assert loaded.symbols == (
        Symbol("limit", 0x1000, 0, "other"),
        Symbol("early", CODE, 12, "function"),
        Symbol("late", CODE + 16, 8, "function"),
        Symbol("data", CODE + 28, 4, "object"),
    )
    assert loaded.address_of("late") == CODE + 16
    assert loaded.address_of("limit") == 0x1000
    assert loaded.address_of("undefined") is None


def test_symbol_at_stays_inside_its_size() -> None:
    loaded = executable([Name("early", CODE, 12), Name("late", CODE + 16, 8)])

    def at(address: int) -> tuple[str, int] | None:
        found = loaded.symbol_at(address)
        return found and (found[0].name, found[1])

    assert at(CODE - 4) is None
    assert at(CODE) == ("early", 0)
    assert at(CODE + 11) == ("early", 11)
    assert at(CODE + 12) is None
    assert at(CODE + 16) == ("late", 0)
    assert at(CODE + 24) is None
    assert loaded.describe(CODE) == "early"
    assert loaded.describe(CODE + 8) == "early+0x8"
    assert loaded.describe(CODE + 12) == "0x0001000c"


def test_symbol_without_a_size_reaches_to_the_next_one_or_the_end() -> None:
    loaded = executable(
        [
            Name("_start", CODE, kind=0),
            Name("inner", CODE + 4, kind=0, binding=0),
            Name("main", CODE + 16, 8),
            Name("__text_begin", CODE, kind=0),
            Name("number", CODE + 8, kind=0, section=0xFFF1),
            Name("tail", CODE + 24),
        ]
    )
    assert loaded.describe(CODE + 12) == "_start+0xc"
    assert loaded.describe(CODE + 20) == "main+0x4"
    assert loaded.describe(CODE + 28) == "tail+0x4"
    assert loaded.describe(CODE + 32) == "0x00010020"


def test_a_label_in_a_function_does_not_take_its_place() -> None:
    loaded = executable([Name("main", CODE, 32), Name("again", CODE + 8, kind=0)])
    assert loaded.describe(CODE + 12) == "main+0xc"
    assert loaded.address_of("again") == CODE + 8


def test_global_name_wins_over_a_local_one() -> None:
    loaded = executable([Name("helper", CODE, 4, binding=0), Name("helper", CODE + 8, 4)])
    assert loaded.address_of("helper") == CODE + 8


def test_symbols_of_debug_sections_are_no_addresses() -> None:
    loaded = executable([Name("where", 0x40, kind=0, section=4)], Section(".debug_str", b"abc\0"))
    assert loaded.symbols == ()


@pytest.mark.parametrize(
    ("name", "display"),
    [
        ("main", "main"),
        ("_Z15noc_set_cfg_regmm", "noc_set_cfg_reg"),
        ("_ZL16subordinate_sync", "subordinate_sync"),
        ("_ZN7ckernel4mathEv", "ckernel::math"),
        ("_ZNK7ckernel3Tag3getEv", "ckernel::Tag::get"),
        ("_ZN12_GLOBAL__N_15stateE", "(anonymous namespace)::state"),
        ("_ZSt4moveIiEv", "std::move<...>"),
        ("_Z3runILb1EEvv", "run<...>"),
        ("_ZN2cb5setupILb1EEEvPmmhhbh.constprop.0", "cb::setup<...>.constprop.0"),
        ("_ZN1a1fILN7ckernel7DstSyncE0ELi16ELin4EEEvv", "a::f<...>"),
        ("_ZN1a1fIL4Mode3EEEvv", "a::f<...>"),
        ("_ZN1a3BoxINS_3TagIiEEPKjJhS0_EE3getEv", "a::Box<...>::get"),
        ("_ZN1a1fIXsrT_EEEvv", "_ZN1a1fIXsrT_EEEvv"),
        ("_ZN1a1fILi", "_ZN1a1fILi"),
        ("_Z7barrierhmm.part.0", "barrier.part.0"),
        ("_ZN3TagC1Ev", "_ZN3TagC1Ev"),
        ("_ZTV3Tag", "_ZTV3Tag"),
        ("_Z99short", "_Z99short"),
        ("_Z", "_Z"),
        ("_ZSt", "_ZSt"),
    ],
)
def test_display_name(name: str, display: str) -> None:
    assert display_name(name) == display
    assert Symbol(name, 0, 0, "function").display == display


def test_address_of_takes_display_names() -> None:
    loaded = executable([Name("_ZN7ckernel4mathEv", CODE + 4, 8)])
    assert loaded.address_of("ckernel::math") == loaded.address_of("_ZN7ckernel4mathEv") == CODE + 4
    assert loaded.describe(CODE + 8) == "ckernel::math+0x4"


# Damage


def use(content: bytes) -> None:
    """Load, and ask everything; ProgramError is an answer, anything else is not."""
    try:
        loaded = parse_elf(content, "kernel.elf")
    except ProgramError:
        return
    for segment in loaded.segments:
        assert segment.address + segment.size <= 1 << 32
        loaded.describe(segment.address)
    for symbol in loaded.symbols:
        loaded.describe(symbol.address)
    loaded.addresses_of_line("kernel.c", 3)


def fuzz(content: bytes, flips: int, seed: int) -> None:
    for end in range(0, len(content), 64):
        with pytest.raises(ProgramError):
            parse_elf(content[:end], "kernel.elf")
    source = random.Random(seed)
    for _ in range(flips):
        damaged = bytearray(content)
        for _ in range(source.choice((1, 1, 2, 8))):
            damaged[source.randrange(len(damaged))] = source.choice((0, 0xFF, source.randrange(256)))
        use(bytes(damaged))


@pytest.mark.parametrize("version", [4, 5])
def test_damaged_handmade_files(version: int) -> None:
    program = start_at(CODE) + row(0, 10) + row(8, 12, 10) + end_after(8)
    names = [Name("main", CODE, 32), Name("_start", CODE, kind=0)]
    sections = with_symbols(names, attributes_section(), *with_lines(version, program))
    fuzz(make_elf(sections=sections), flips=1500, seed=version)


# Compiled files


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_compiled_kernel(tmp_path: Path, version: int) -> None:
    loaded = load_elf(compile_kernel(tmp_path, f"-gdwarf-{version}", "-gstrict-dwarf"))
    start, work = loaded.address_of("_start"), loaded.address_of("work")
    assert loaded.entry == start
    assert work is not None
    assert loaded.attributes is not None
    assert loaded.attributes.startswith("rv32i")
    assert {s.name: s.kind for s in loaded.symbols}["results"] == "object"
    found = loaded.symbol_at(work + 4)
    assert found is not None
    assert (found[0].name, found[0].kind, found[1]) == ("work", "function", 4)
    assert loaded.line_at(work) == SourceLine(str(tmp_path / "kernel.c"), line_number("unsigned work"))
    assert loaded.describe(work) == f"work (kernel.c:{line_number('unsigned work')})"
    places = loaded.addresses_of_line("kernel.c", line_number("results[0] ="))
    assert places
    assert all(loaded.describe(place).startswith("_start") for place in places)
    assert loaded.line_damage is None


def test_compiled_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="relocatable object"):
        load_elf(compile_kernel(tmp_path, "-c"))


def test_compiled_with_compressed_instructions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="compressed instructions"):
        load_elf(compile_kernel(tmp_path, march="rv32imac"))


def test_compiled_for_64_bits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="64-bit RISC-V"):
        load_elf(compile_kernel(tmp_path, march="rv64im", mabi="lp64"))


def test_stripped_and_compressed_debug_information(tmp_path: Path) -> None:
    loaded = load_elf(compile_kernel(tmp_path, "-Wl,-s"))
    assert loaded.symbols == ()
    assert loaded.describe(loaded.entry) == f"0x{loaded.entry:08x}"
    loaded = load_elf(compile_kernel(tmp_path, "-gz=zlib"))
    assert loaded.describe(loaded.entry) == f"_start (kernel.c:{line_number('_start')})"


def test_damaged_compiled_file(tmp_path: Path) -> None:
    fuzz(compile_kernel(tmp_path).read_bytes(), flips=400, seed=1)
