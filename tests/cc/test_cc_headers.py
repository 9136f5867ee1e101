"""The generated C headers say the same as the instruction table and the register map."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from bhemu.cc import CompileError, fields_header, instructions_header
from bhemu.isa import CONFIG_FIELDS, INSTRUCTIONS, THREAD_FIELDS, Instruction, encode, from_ttinsn

Build = Callable[..., Any]


def operands_of(row: Instruction, pattern: str, rng: random.Random) -> list[int]:
    """Values for a row's macro operands; operands that share bits are kept apart, as encode demands."""
    values, used = [], 0
    for field in row.positional:
        value = {"zero": 0, "full": field.max, "random": rng.randint(0, field.max)}[pattern]
        value &= ~(used >> field.lsb)
        used |= value << field.lsb
        values.append(value)
    return values


def calls(pattern: str) -> list[tuple[str, list[int]]]:
    rng = random.Random(pattern)
    return [(row.mnemonic, operands_of(row, pattern, rng)) for row in INSTRUCTIONS.values()]


def spell(prefix: str, mnemonic: str, values: list[int]) -> str:
    return f"{prefix}{mnemonic}" + (f"({', '.join(map(str, values))})" if values else "")


PATTERNS = ("zero", "full", "random")


@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_every_instruction_word_is_that_of_the_table(build: Build, suffix: str, request: pytest.FixtureRequest) -> None:
    if suffix == ".cpp":
        request.getfixturevalue("cxx")
    wanted = [(spell("TT_OP_", *call), encode(call[0], *call[1])) for pattern in PATTERNS for call in calls(pattern)]
    lines = ",\n".join(text for text, _ in wanted)
    _, elf = build(
        f"#include <bhemu.h>\nBHEMU_L1 volatile uint32_t words[] = {{\n{lines}}};\nint main() {{ return words[0]; }}",
        suffix=suffix,
    )
    address = elf.address_of("words")
    assert address is not None
    segment = next(s for s in elf.segments if s.address <= address < s.address + s.size)
    found = struct.unpack_from(f"<{len(wanted)}I", segment.content, address - segment.address)
    wrong = [(text, hex(word), hex(got)) for (text, word), got in zip(wanted, found, strict=True) if word != got]
    assert wrong == []


@pytest.mark.parametrize("suffix", [".c", ".S"])
def test_every_immediate_stands_in_the_code_rotated_left_by_two(build: Build, suffix: str) -> None:
    wanted = [(*call, encode(call[0], *call[1])) for call in calls("random")]
    if suffix == ".c":
        body = "\n".join(f"{spell('TTI_', name, values)};" for name, values, _ in wanted)
        source = f"#include <bhemu.h>\nint main(void) {{\n{body}\nreturn 0; }}"
    else:
        body = "\n".join(f".ttinsn {spell('TT_OP_', name, values)}" for name, values, _ in wanted)
        source = f"#include <bhemu.h>\n.globl main\nmain:\n{body}\nret\n"
    _, elf = build(source, suffix=suffix)
    found = [from_ttinsn(word) for word in code_from(elf, "main") if word & 3 != 3][: len(wanted)]
    assert [hex(word) for word in found] == [hex(word) for _, _, word in wanted]


def code_from(elf: Any, name: str) -> list[int]:
    """The words of the code segment from a symbol on."""
    start = elf.address_of(name)
    segment = next(s for s in elf.segments if s.executable)
    code = segment.content[start - segment.address :]
    return list(struct.unpack(f"<{len(code) // 4}I", code[: len(code) & ~3]))


def test_run_time_operands_are_stored_to_the_push_window(build: Build) -> None:
    _, elf = build(
        """
        #include <bhemu.h>
        volatile uint32_t value = 3;
        int main(void) { TT_SETDMAREG(0, value, 0, 6); return 0; }
        """
    )
    assert 0xFFE40 in [word >> 12 for word in code_from(elf, "main") if word & 0x7F == 0x37]  # lui of the window


def test_an_operand_too_wide_does_not_compile(build: Build) -> None:
    with pytest.raises(CompileError, match="operand max_value of SEMINIT takes 4 bits"):
        build("#include <bhemu.h>\nint main(void) { TTI_SEMINIT(16, 0, 1); return 0; }")


def test_a_word_without_an_encoding_does_not_assemble(build: Build) -> None:
    with pytest.raises(CompileError, match=r"ttinsn takes words below 0xC0000000"):
        build("#include <bhemu.h>\nint main(void) { TTI(0xC0000000u); return 0; }")


def test_the_headers_name_every_instruction_and_field() -> None:
    text = instructions_header()
    for name in INSTRUCTIONS:
        for prefix in ("TT_OP_", "TT_", "TTI_"):
            assert f"#define {prefix}{name}(" in text or f"#define {prefix}{name} " in text
    defined = dict(line.split()[1:] for line in fields_header().splitlines() if len(line.split()) == 3)
    for row in (*CONFIG_FIELDS.values(), *THREAD_FIELDS.values()):
        assert int(defined[f"{row.name}_ADDR32"]) == row.word
        assert int(defined[f"{row.name}_SHAMT"]) == row.lsb
        assert int(defined[f"{row.name}_MASK"], 0) == row.mask


def test_field_macros_compile_in_c_and_assembly(build: Build) -> None:
    name = "ALU_FORMAT_SPEC_REG_SrcB_val"
    row = CONFIG_FIELDS[name]
    _, elf = build(
        f"#include <bhemu.h>\n#include <bhemu_fields.h>\n.globl main\nmain: ret\n.globl mark\n"
        f".equ mark, {name}_MASK + ({name}_SHAMT << 24) + ({name}_ADDR32 << 16)\n",
        suffix=".S",
    )
    assert elf.address_of("mark") == row.mask + (row.lsb << 24) + (row.word << 16)
