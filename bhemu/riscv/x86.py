"""Machine code of x86-64 for instructions of the cores (translate.py): a template for each, and what writes templates.

Registers in translated code: rbx is L1, rbp the core's x registers, r12 its local RAM, r14 the rounds that are left to
the goal when the block ends, r15 the jumps backwards until the core leaves its loop (LOOPS); rax, rcx, rdx are scratch.
POOL holds the x registers that the region uses most.
Wherever an instruction needs more than its template has, it is left before anything has changed, for the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.isa.riscv import NUMBER
from bhemu.machine.agents import CORES
from bhemu.machine.state import L1_SIZE, TILE, offset_of
from bhemu.riscv.translation_state import (
    BLOCK_AT,
    CODE_AT,
    CODE_SIZE,
    CURRENT,
    FAILED,
    GOAL,
    KEYS,
    LEFT,
    LOOPS_LEFT,
    PREVIOUS,
    RAM_BYTES,
    RAM_SIZES,
    REGION_AT,
    RESUME,
    SLACK,
    SWITCHES,
    TEAM,
    TILE_AT,
    WATCHED,
)

RAX, RCX, RDX, RSI, RDI = 0, 1, 2, 6, 7
POOL: Final = np.array([RSI, RDI, 8, 9, 10, 11, 13], np.int64)

# Conditions, as x86 numbers them
BELOW, NOT_BELOW, EQUAL, NOT_EQUAL, SIGN, LESS, NOT_LESS, NOT_GREATER = 2, 3, 4, 5, 8, 12, 13, 14
ALWAYS: Final = 16

# Where a jump goes; columns of `jump`: place of its distance, this, and what follows
TO_PC: Final = 0
"""To the block at a pc; out of the region when there is none."""
TO_EXIT: Final = 1
"""Out of the region: pc, rounds of the block that have not passed, 1 when the interpreter must execute pc (STAY)."""
TO_END: Final = 2
"""Out of the region, with the pc in eax."""
TO_FAILURE: Final = 3
TO_OTHER_HALF: Final = 4
"""To the other half of an access: pc, rounds, fields, 1 when that is for local RAM, place in the text to go on."""
TO_WORDS: Final = 5
"""Not a jump: the four words of code at a pc."""
TO_HORIZON: Final = 6
"""The access at a pc is beyond the horizon."""

# Steps of templates
BYTES, OWN, WITH_X, WITH_REGISTER, COPY, SET_X, CHOOSE, NUMBER_32, NUMBER_8 = range(9)
JUMP_IF, SKIP_IF, MEMORY, ELSEWHERE, GO_ON, ONLY_IF_RD = range(9, 15)
# Registers that a template does not know
RESULT: Final = -1
"""Of rd, if it has one that is not rs2's as well; else rax."""
CHOSEN: Final = -2
"""Of the operand that CHOOSE has named, which loads it if need be."""
LOADED: Final = -3
"""Of rd, if it has one; else rax."""
# Operands
D, A, B = 0, 1, 2
# Numbers
NOTHING, IMMEDIATE, PC, TARGET, NEXT_PC, REST = range(6)
OF_TABLE: Final = -1
"""The condition, or opcode, that the table has for the instruction."""

Step = tuple[int, ...]
Steps = list[Step]


def _code(text: str) -> Steps:
    """Bytes in hexadecimal."""
    content = bytes.fromhex(text)
    parts = [content[i : i + 7] for i in range(0, len(content), 7)]
    return [(BYTES, len(part), int.from_bytes(part, "big")) for part in parts]


def _own(text: str, word: int) -> Steps:
    """An instruction whose operand is a word at the beginning of the memory."""
    return [*_code(text), (OWN, word)]


def _exit_if(condition: int) -> Step:
    """Leave the instruction to the interpreter."""
    return (JUMP_IF, condition, TO_EXIT, PC, 1)


def _constant(number: int) -> Steps:
    return [(ONLY_IF_RD, 2), (WITH_X, 0xC7, 0, D), (NUMBER_32, number)]


def _alu(opcode: int) -> Steps:
    return [(COPY, RESULT, A), (WITH_X, opcode, RESULT, B), (SET_X, RESULT)]


def _alu_immediate(extension: int) -> Steps:
    return [(COPY, RESULT, A), (WITH_REGISTER, 0x81, extension, RESULT), (NUMBER_32, IMMEDIATE), (SET_X, RESULT)]


def _shift(extension: int) -> Steps:
    return [(COPY, RCX, B), (COPY, RESULT, A), (WITH_REGISTER, 0xD3, extension, RESULT), (SET_X, RESULT)]


def _shift_immediate(extension: int) -> Steps:
    return [(COPY, RESULT, A), (WITH_REGISTER, 0xC1, extension, RESULT), (NUMBER_8, IMMEDIATE), (SET_X, RESULT)]


def _set(condition: int) -> list[Step]:
    return [*_code(f"0f9{condition:x}c0 0fb6c0"), (SET_X, RAX)]  # setcc al; movzx eax, al


def _shift_add(amount: int) -> Steps:
    shift = [(COPY, RESULT, A), (WITH_REGISTER, 0xC1, 4, RESULT), *_code(f"{amount:02x}")]
    return [*shift, (WITH_X, 0x03, RESULT, B), (SET_X, RESULT)]


def _pick(opcode: int) -> Steps:
    """cmp, cmov: the other one when the condition holds."""
    return [(COPY, RESULT, A), (WITH_X, 0x3B, RESULT, B), (WITH_X, opcode, RESULT, B), (SET_X, RESULT)]


def _with_not(opcode: int) -> Steps:
    return [(COPY, RAX, B), *_code("f7d0"), (WITH_X, opcode, RAX, A), (SET_X, RAX)]


def _divide(result: int, is_signed: bool) -> Steps:
    """Quotient and remainder with T4's results for 0; signed in 64 bits, where -2**31 / -1 is a number."""
    if is_signed:
        operands: Steps = [(WITH_X, 0x63, RAX, A, 0x48), (WITH_X, 0x63, RCX, B, 0x48)]  # movsxd
        divide = _code("85c9 7407 4899 48f7f9")  # test; je; cqo; idiv rcx
    else:
        operands = [(COPY, RAX, A), (COPY, RCX, B)]
        divide = _code("31d2 85c9 7404 f7f1")  # xor edx, edx; test; je; div ecx
    by_zero = _code("eb07 89c2 b8ffffffff")  # jmp; mov edx, eax; mov eax, -1
    return [*operands, *divide, *by_zero, (SET_X, result)]


def _half(is_store: bool, ram: bool) -> Steps:
    """An access to the address in eax where that is in L1, or in local RAM."""
    if ram:  # lea ecx, [rax - LOCAL_RAM_BASE]; cmp
        steps = [*_code("8d88" + (-LOCAL_RAM_BASE & 0xFFFFFFFF).to_bytes(4, "little").hex()), *_own("3b0d", RAM_BYTES)]
    else:
        steps = _code("3d" + L1_SIZE.to_bytes(4, "little").hex())
    steps = [*steps, (ELSEWHERE,)]
    if not ram:
        # beyond the horizon: lea rcx, [r14 + rest]; cmp
        steps += [*_code("498d4e"), (NUMBER_8, REST), *_own("483b0d", SLACK), (JUMP_IF, LESS, TO_HORIZON, PC, 1)]
        if is_store:
            # a sleeping core may watch the word: mov edx, eax; shr edx, 2; mov rcx; bt rcx, rdx
            steps += [*_code("89c2 c1ea02"), *_own("488b0d", WATCHED), *_code("480fa3d1"), _exit_if(BELOW)]
            # it is in the region itself, or that of another: mov ecx, eax; sub; cmp
            steps += [*_own("89c12b0d", CODE_AT), *_own("3b0d", CODE_SIZE), _exit_if(BELOW)]
    if is_store:
        steps += [(CHOOSE, RDX, B), (MEMORY, CHOSEN, 1 if ram else 0)]
    else:
        steps += [(MEMORY, LOADED, 1 if ram else 0), (SET_X, LOADED)]
    return [*steps, (GO_ON,)]


def _access(size: int) -> Steps:
    """The beginning of a load or store: the address; a misaligned one is the interpreter's."""
    steps: Steps = [(COPY, RAX, A), *_code("05"), (NUMBER_32, IMMEDIATE)]
    return steps if size == 1 else [*steps, *_code(f"a8{size - 1:02x}"), _exit_if(NOT_EQUAL)]


_COUNT_LOOP: Final = _code("49ffcf")
"""The core jumps backwards: dec r15."""
_BACKWARDS: Final[Steps] = [
    *_COUNT_LOOP,
    (JUMP_IF, NOT_GREATER, TO_EXIT, TARGET, 0),
    (JUMP_IF, ALWAYS, TO_PC, TARGET, 0),
]
"""To a block at or before this one, unless the core has done so often enough: 14 bytes."""
_COMPARE: Final[Steps] = [(CHOOSE, RAX, A), (WITH_X, 0x3B, CHOSEN, B)]

# What is not an instruction of a core
ENTER, LEAVE, BEGIN_REGION, COMPARE_FOUR, COMPARE_ONE, END_COMPARE, BEGIN_BLOCK, FAILURE = map(np.int64, range(8))
LOAD_L1, LOAD_RAM, STORE_L1, STORE_RAM, FORWARDS, BACKWARDS = map(np.int64, range(8, 14))
JUMP_FORWARDS, JUMP_BACKWARDS, COMPARE_PC, ENTER_BLOCK, SWITCH, INSTRUCTIONS = map(np.int64, range(14, 20))


def _offset(name: str) -> str:
    return offset_of(TILE, name).to_bytes(4, "little").hex()


def _bytes_of_core(name: str) -> str:
    size: int = TILE[name].itemsize // TILE[name].shape[0]
    return size.to_bytes(4, "little").hex()


def _word(text: str, word: int) -> Steps:
    """An instruction whose operand is a word at rsi."""
    return _code(text + (8 * word).to_bytes(4, "little").hex())


def _field(text: str, name: str) -> Steps:
    """An instruction whose operand is a field of the record."""
    return _code(text + _offset(name))


def _length(steps: Steps) -> int:
    """Bytes of the machine code of steps that need no instruction."""
    return sum({BYTES: step[1], OWN: 4}[step[0]] for step in steps)


def _skip(text: str, steps: Steps) -> Steps:
    """A conditional jump over steps."""
    return [*_code(text + _length(steps).to_bytes(4, "little").hex()), *steps]


def _switch() -> Steps:
    """A core stops at the horizon, its registers in the record, and the one whose turn it is goes on (teams.py).

    In eax is its pc, in rcx where it goes on. What follows leaves translated code.
    """
    stop = [
        *_word("488b96", CURRENT),  # mov rdx
        *_word("48898cd6", RESUME),  # mov [rsi + 8 rdx], rcx
        *_field("898497", "core_pc"),  # mov [rdi + 4 rdx], eax
        *_field("488b8cd7", "core_loops_limit") + _code("4c29f9"),  # mov rcx, [rdi + 8 rdx]; sub rcx, r15
        *_field("48898cd7", "core_loops"),
        *_word("488b8e", GOAL) + _code("4c29f1"),  # mov rcx; sub rcx, r14
        *_field("4c8b84d7", "core_round"),  # mov r8
        *_field("48898cd7", "core_round"),
        *_code("4c29c1") + _field("48018cd7", "core_retired"),  # sub rcx, r8; add
        *_code("4a8d0cf507000000 4829d1"),  # lea rcx, [8 r14 + 7]; sub rcx, rdx
        *_word("48898cd6", KEYS),
        *_word("488996", PREVIOUS),
    ]
    largest = [*_word("488b86", KEYS), *_code("48c7c1ffffffff")]  # the largest key in rax, the second in rcx
    for agent in range(1, CORES + 1):
        # mov r8; mov r9, rax; cmp r8, rax; cmovg rax, r8; cmovg r8, r9; cmp r8, rcx; cmovg rcx, r8
        largest += [*_word("4c8b86", KEYS + agent), *_code("4989c1 4939c0 490f4fc0 4d0f4fc1 4939c8 490f4fc8")]
    go_on = [
        *_word("4c8b84c6", RAM_SIZES) + _word("4c8986", RAM_BYTES),  # mov r8, [rsi + 8 rax]; mov [rsi], r8
        *_field("4c8bbcc7", "core_loops_limit") + _field("4c2bbcc7", "core_loops"),  # mov r15; sub r15
        *_code("69d0" + _bytes_of_core("core_x")) + _field("488dac17", "core_x"),  # imul edx, eax; lea rbp
        *_code("69c0" + _bytes_of_core("core_ram")) + _field("4c8da407", "core_ram"),  # imul eax, eax; lea r12
        *_word("48ff86", SWITCHES) + _code("ffe1"),  # inc; jmp rcx
    ]
    choose = [
        *_code(
            "4989c6 49c1fe03 83e007 83f007"
        ),  # rounds left: mov r14, rax; sar r14, 3; number: and eax, 7; xor eax, 7
        # horizon: that of the second, a round before it where it comes first in a round: mov r8, rcx; sar rcx, 3;
        # and r8d, 7; xor r8d, 7; cmp r8d, eax; adc rcx, 0
        *_code("4989c8 48c1f903 4183e007 4183f007 4139c0 4883d100") + _word("48898e", SLACK),
        *_word("488986", CURRENT) + _word("488b8cc6", RESUME),
        *_code("4885c9") + _skip("0f84", go_on),  # test rcx, rcx; je
    ]
    team = [
        *(*stop, *largest),
        *_code("4883f808") + _skip("0f8c", [*choose, *_code("31c0 480fbae822 eb0e")]),  # cmp rax, 8; jl; JOIN; jmp
        *_code("31c0 480fbae823 eb05"),  # xor eax, eax; bts rax: ALL_DONE; jmp
    ]
    return [
        *(*_own("488d35", 0), *_word("488bbe", TILE_AT)),  # lea rsi; mov rdi
        *_code("4883be" + (8 * TEAM).to_bytes(4, "little").hex() + "00") + _skip("0f84", team),  # cmp; je
        *_code("480fbae821"),  # bts rax: AT_HORIZON
    ]


_OTHERS: Final[dict[Any, Steps]] = {
    ENTER: [  # enter(t, core, rounds left)
        *_code("53 55 4154 4155 4156 4157"),
        *_own("48893d", TILE_AT),  # mov
        *_code("488d9f" + _offset("l1")),  # lea rbx, [rdi + ...]
        *_code("69c6" + _bytes_of_core("core_x") + "488dac07" + _offset("core_x")),  # imul eax, esi; lea rbp
        *_code("69c6" + _bytes_of_core("core_ram") + "4c8da407" + _offset("core_ram")),  # imul eax, esi; lea r12
        *_own("4989d6 4c8b3d", LOOPS_LEFT),  # mov r14, rdx; mov r15
        *_own("ff25", REGION_AT),
    ],
    SWITCH: _switch(),
    LEAVE: [*_own("4c8935", LEFT), *_own("4c893d", LOOPS_LEFT), *_code("415f 415e 415d 415c 5d 5b c3")],
    BEGIN_REGION: _code("660f76c9"),  # pcmpeqd xmm1, xmm1
    COMPARE_FOUR: [  # movdqu xmm0, [rbx + pc]; pcmpeqd xmm0, the words; pand xmm1, xmm0
        *(*_code("f30f6f83"), (NUMBER_32, PC), *_code("660f7605")),
        *((JUMP_IF, NOTHING, TO_WORDS, PC, 0), *_code("660fdbc8")),
    ],
    COMPARE_ONE: [*_code("81bb"), (NUMBER_32, PC), (NUMBER_32, IMMEDIATE), (JUMP_IF, NOT_EQUAL, TO_FAILURE, PC, 0)],
    END_COMPARE: [*_code("660fd7c1 3dffff0000"), (JUMP_IF, NOT_EQUAL, TO_FAILURE, PC, 0)],  # pmovmskb eax, xmm1; cmp
    BEGIN_BLOCK: [*_code("4983ee"), (NUMBER_8, REST), (JUMP_IF, SIGN, TO_EXIT, PC, 2)],  # sub r14, rest
    FAILURE: _code("48c7c0" + (FAILED & 0xFFFFFFFF).to_bytes(4, "little").hex()),
    LOAD_L1: _half(False, False),
    LOAD_RAM: _half(False, True),
    STORE_L1: _half(True, False),
    STORE_RAM: _half(True, True),
    FORWARDS: [*_COMPARE, (JUMP_IF, OF_TABLE, TO_PC, TARGET, 0)],
    BACKWARDS: [*_COMPARE, (SKIP_IF, OF_TABLE, 14), *_BACKWARDS],
    JUMP_FORWARDS: [*_constant(NEXT_PC), (JUMP_IF, ALWAYS, TO_PC, TARGET, 0)],
    JUMP_BACKWARDS: [*_constant(NEXT_PC), *_BACKWARDS],
    ENTER_BLOCK: _own("ff25", BLOCK_AT),
    COMPARE_PC: [*_code("3d"), (NUMBER_32, PC), (JUMP_IF, EQUAL, TO_PC, PC, 0)],
}

# Kinds of instructions
NONE, COMPUTE, IS_LOAD, IS_STORE, BRANCH, JUMP, JUMP_REGISTER = range(7)

Row = tuple[int, Steps, int, int]
"""Kind, template, opcode or condition that the steps call OF_TABLE, bytes of an access."""


def _computes(steps: Steps) -> Row:
    return (COMPUTE, [(ONLY_IF_RD, len(steps)), *steps], 0, 0)


_TABLE: Final[dict[str, Row]] = {
    "lui": (COMPUTE, _constant(IMMEDIATE), 0, 0),
    "auipc": (COMPUTE, _constant(TARGET), 0, 0),
    "jal": (JUMP, [], 0, 0),
    "jalr": (
        JUMP_REGISTER,
        [
            *((COPY, RAX, A), *_code("05"), (NUMBER_32, IMMEDIATE), *_code("83e0fe")),  # add eax; and eax, -2
            *(*_code("3d" + L1_SIZE.to_bytes(4, "little").hex()), _exit_if(NOT_BELOW)),
            *(*_code("a802"), _exit_if(NOT_EQUAL), *_constant(NEXT_PC)),
            *(*_code("3d"), (NUMBER_32, PC), *_code("7709"), *_COUNT_LOOP),  # cmp eax, pc; ja
            (JUMP_IF, NOT_GREATER, TO_END, PC, 0),
        ],
        *(0, 0),
    ),
    "beq": (BRANCH, [], EQUAL, 0),
    "bne": (BRANCH, [], NOT_EQUAL, 0),
    "blt": (BRANCH, [], LESS, 0),
    "bge": (BRANCH, [], NOT_LESS, 0),
    "bltu": (BRANCH, [], BELOW, 0),
    "bgeu": (BRANCH, [], NOT_BELOW, 0),
    "lb": (IS_LOAD, _access(1), 0x1BE, 1),  # opcodes from 0x100 on are those after 0f
    "lh": (IS_LOAD, _access(2), 0x1BF, 2),
    "lw": (IS_LOAD, _access(4), 0x8B, 4),
    "lbu": (IS_LOAD, _access(1), 0x1B6, 1),
    "lhu": (IS_LOAD, _access(2), 0x1B7, 2),
    "sb": (IS_STORE, _access(1), 0x88, 1),
    "sh": (IS_STORE, _access(2), 0x89, 2),
    "sw": (IS_STORE, _access(4), 0x89, 4),
    "addi": _computes(_alu_immediate(0)),
    "slti": _computes([(CHOOSE, RAX, A), (WITH_REGISTER, 0x81, 7, CHOSEN), (NUMBER_32, IMMEDIATE), *_set(LESS)]),
    "sltiu": _computes([(CHOOSE, RAX, A), (WITH_REGISTER, 0x81, 7, CHOSEN), (NUMBER_32, IMMEDIATE), *_set(BELOW)]),
    "xori": _computes(_alu_immediate(6)),
    "ori": _computes(_alu_immediate(1)),
    "andi": _computes(_alu_immediate(4)),
    "slli": _computes(_shift_immediate(4)),
    "srli": _computes(_shift_immediate(5)),
    "srai": _computes(_shift_immediate(7)),
    "rori": _computes(_shift_immediate(1)),
    "add": _computes(_alu(0x03)),
    "sub": _computes(_alu(0x2B)),
    "and": _computes(_alu(0x23)),
    "or": _computes(_alu(0x0B)),
    "xor": _computes(_alu(0x33)),
    "mul": _computes(_alu(0x1AF)),
    "sll": _computes(_shift(4)),
    "srl": _computes(_shift(5)),
    "sra": _computes(_shift(7)),
    "rol": _computes(_shift(0)),
    "ror": _computes(_shift(1)),
    "slt": _computes([*_COMPARE, *_set(LESS)]),
    "sltu": _computes([*_COMPARE, *_set(BELOW)]),
    "sh1add": _computes(_shift_add(1)),
    "sh2add": _computes(_shift_add(2)),
    "sh3add": _computes(_shift_add(3)),
    "andn": _computes(_with_not(0x23)),
    "orn": _computes(_with_not(0x0B)),
    "xnor": _computes(_with_not(0x33)),
    "min": _computes(_pick(0x14F)),  # cmovg
    "max": _computes(_pick(0x14C)),  # cmovl
    "minu": _computes(_pick(0x147)),  # cmova
    "maxu": _computes(_pick(0x142)),  # cmovb
    "mulh": _computes([(COPY, RAX, A), (WITH_X, 0xF7, 5, B), (SET_X, RDX)]),
    "mulhu": _computes([(COPY, RAX, A), (WITH_X, 0xF7, 4, B), (SET_X, RDX)]),
    "mulhsu": _computes(  # imul rax, rcx; shr rax, 32
        [(WITH_X, 0x63, RAX, A, 0x48), (COPY, RCX, B), *_code("480fafc1 48c1e820"), (SET_X, RAX)]
    ),
    "div": _computes(_divide(RAX, True)),
    "divu": _computes(_divide(RAX, False)),
    "rem": _computes(_divide(RDX, True)),
    "remu": _computes(_divide(RDX, False)),
    "sext.b": _computes([(COPY, RAX, A), *_code("0fbec0"), (SET_X, RAX)]),
    "sext.h": _computes([(COPY, RAX, A), *_code("0fbfc0"), (SET_X, RAX)]),
    # bsf and bsr of 0 set only the flag; the number of the highest bit is counted from the other end
    "ctz": _computes([*_code("b920000000"), (WITH_X, 0x1BC, RAX, A), *_code("0f44c1"), (SET_X, RAX)]),
    "clz": _computes([*_code("b93f000000"), (WITH_X, 0x1BD, RAX, A), *_code("0f44c1 83f01f"), (SET_X, RAX)]),
    "rev8": _computes([(COPY, RAX, A), *_code("0fc8"), (SET_X, RAX)]),
    # shl ecx, 16; movzx eax, ax; or eax, ecx
    "pack": _computes([(COPY, RCX, B), (COPY, RAX, A), *_code("c1e110 0fb7c0 09c8"), (SET_X, RAX)]),
    "fence": (COMPUTE, [], 0, 0),
    "fence.i": (COMPUTE, [], 0, 0),
}
"""The instructions that are translated; all others, and `.ttinsn`, are the interpreter's."""

_steps: Steps = []
_ranges: dict[int, tuple[int, int]] = {}


def _add(number: Any, steps: Sequence[Step]) -> None:
    _ranges[number] = (len(_steps), len(_steps) + len(steps))
    _steps.extend(steps)


KIND: Final = np.zeros(256, np.int64)
"""Of each number of an instruction; NONE for those that are not translated."""
OF: Final = np.zeros((256, 2), np.int64)
"""Of each number what OF_TABLE means, and the bytes of an access."""
for _number, _template in _OTHERS.items():
    _add(_number, _template)
for _name, (_kind, _template, _op, _size) in _TABLE.items():
    KIND[NUMBER[_name]] = _kind
    OF[NUMBER[_name]] = _op, _size
    _add(INSTRUCTIONS + NUMBER[_name], _template)

TEMPLATE: Final = np.zeros((INSTRUCTIONS + 256, 2), np.int64)
"""First step and the step after the last, of the templates above and then of the instructions."""
for _number, _range in _ranges.items():
    TEMPLATE[_number] = _range
STEPS: Final = np.zeros((len(_steps), 5), np.int64)
for _number, _step in enumerate(_steps):
    STEPS[_number, : len(_step)] = _step
READS: Final = np.zeros((256, 2), np.bool_)
"""Whether an instruction reads rs1, and rs2."""
for _name, (_kind, _template, _, _) in _TABLE.items():
    _named = {_step[3] for _step in _template if _step[0] == WITH_X}
    _named |= {_step[2] for _step in _template if _step[0] in (COPY, CHOOSE)}
    READS[NUMBER[_name]] = A in _named or _kind == BRANCH, B in _named or _kind in (BRANCH, IS_STORE)
