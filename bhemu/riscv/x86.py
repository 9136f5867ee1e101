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
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE, TILE, offset_of
from bhemu.machine.types import AnyInt, Int, Record
from bhemu.riscv.decode import NOWHERE
from bhemu.riscv.translation_state import (
    BLOCK_AT,
    FAILED,
    LEFT,
    LOOPS_LEFT,
    RAM_BYTES,
    REGION_AT,
    SLACK,
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
NOTHING, IMMEDIATE, PC, TARGET, NEXT_PC, REST, CODE_FIRST, CODE_BYTES = range(8)
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
        # behind the horizon: lea rcx, [r14 + rest]; cmp
        steps += [*_code("498d4e"), (NUMBER_8, REST), *_own("483b0d", SLACK), _exit_if(LESS)]
        if is_store:
            # somebody who sleeps may watch the word: mov edx, eax; shr edx, 2; mov rcx; bt rcx, rdx
            steps += [*_code("89c2 c1ea02"), *_own("488b0d", WATCHED), *_code("480fa3d1"), _exit_if(BELOW)]
            # it is in the region itself: lea ecx, [rax - first]; cmp
            steps += [*_code("8d88"), (NUMBER_32, CODE_FIRST), *_code("81f9"), (NUMBER_32, CODE_BYTES), _exit_if(BELOW)]
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

ZERO: Final = np.int64(0)
"""For arguments: of a number in the text, Numba compiles each function once more for each value."""
# What is not an instruction of a core
ENTER, LEAVE, BEGIN_REGION, COMPARE_FOUR, COMPARE_ONE, END_COMPARE, BEGIN_BLOCK, FAILURE = map(np.int64, range(8))
LOAD_L1, LOAD_RAM, STORE_L1, STORE_RAM, FORWARDS, BACKWARDS = map(np.int64, range(8, 14))
JUMP_FORWARDS, JUMP_BACKWARDS, COMPARE_PC, ENTER_BLOCK, INSTRUCTIONS = map(np.int64, range(14, 19))
IN_MEMORY: Final = np.int64(-1)
"""In the place of a register: an x register has none, its operand is in the record."""
MOV_FROM, MOV_TO = np.int64(0x8B), np.int64(0x89)
"""Opcodes that load a register from an operand, and store it there."""


def _offset(name: str) -> str:
    return offset_of(TILE, name).to_bytes(4, "little").hex()


def _bytes_of_core(name: str) -> str:
    size: int = TILE[name].itemsize // TILE[name].shape[0]
    return size.to_bytes(4, "little").hex()


_OTHERS: Final[dict[Any, Steps]] = {
    ENTER: [  # enter(t, core, rounds left)
        *_code("53 55 4154 4155 4156 4157"),
        *_code("488d9f" + _offset("l1")),  # lea rbx, [rdi + ...]
        *_code("69c6" + _bytes_of_core("core_x") + "488dac07" + _offset("core_x")),  # imul eax, esi; lea rbp
        *_code("69c6" + _bytes_of_core("core_ram") + "4c8da407" + _offset("core_ram")),  # imul eax, esi; lea r12
        *_own("4989d6 4c8b3d", LOOPS_LEFT),  # mov r14, rdx; mov r15
        *_own("ff25", REGION_AT),
    ],
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
    "lb": (IS_LOAD, _access(1), 0x1BE, 1),  # opcodes from 0x100 on are those behind 0f
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
"""First step and the step behind the last, of the templates above and then of the instructions."""
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


@kernel
def put(c: Record, count: Int, bytes_: Int) -> None:
    """Write bytes of machine code, the lowest first."""
    for i in range(count):
        c.text[c.text_at + i] = np.uint8((bytes_ >> (8 * i)) & 0xFF)
    c.text_at += count


@kernel
def on_operand(c: Record, opcode: Int, register: Int, host: Int, x: Int, rex: Int) -> None:
    """An instruction on a register (or an extension of the opcode) and a register, or an x register in memory.

    Args:
        host: the other register, or IN_MEMORY for x.
    """
    rex |= 0x40 | (register >> 3) << 2 | (host >> 3 if host >= 0 else 0)
    if rex != 0x40:
        put(c, 1, rex)
    if opcode > 0xFF:
        put(c, 1, 0x0F)
    put(c, 1, opcode)
    if host >= 0:
        put(c, 1, 0xC0 | (register & 7) << 3 | host & 7)
    else:
        put(c, 2, 0x45 | (register & 7) << 3 | 4 * x << 8)


@kernel
def refer(c: Record, kind: Int, pc: Int, rest: Int, stays: Int) -> AnyInt:
    """Room for a distance that is known at the end of the region; returns its place in `jump`."""
    i = np.int64(c.jump_count)
    c.jump[i, 0] = c.text_at
    c.jump[i, 1] = kind
    c.jump[i, 2] = pc
    c.jump[i, 3] = rest
    c.jump[i, 4] = stays
    c.jump_count = i + 1
    put(c, 4, 0)
    return i


@kernel
def _memory(c: Record, n: Int, register: Int, ram: Int) -> None:
    """The access itself: [r12 + rcx] in local RAM, [rbx + rax] in L1."""
    opcode, size = OF[n, 0], OF[n, 1]
    is_store = KIND[n] == IS_STORE
    if is_store and size == 2:
        put(c, 1, 0x66)
    rex = 0x40 | (register >> 3) << 2 | ram
    if rex != 0x40 or (is_store and size == 1):  # without it the byte would be another register's
        put(c, 1, rex)
    if opcode > 0xFF:
        put(c, 1, 0x0F)
    put(c, 3, (opcode & 0xFF) | (0x04 | (register & 7) << 3) << 8 | (0x0C if ram else 0x03) << 16)


@kernel
def emit(c: Record, template: Int, fields: Int, pc: Int, rest: Int, other_half: Int) -> None:
    """Write the machine code of a template.

    Args:
        fields: of the instruction.
        rest: rounds of the block from this instruction on.
        other_half: of an access: 1 when its other half may be tried, 2 when that is the one for local RAM, 0 neither.
    """
    n = fields & 0xFF
    d, a, b = (fields >> 8) & 0x3F, (fields >> 16) & 31, (fields >> 24) & 31
    loaded = max(np.int64(c.host[d]), np.int64(RAX))
    result = loaded if d != b else np.int64(RAX)
    chosen: Int = np.int64(RAX)
    elsewhere: Int = np.int64(0)
    step = TEMPLATE[template, 0]
    while step < TEMPLATE[template, 1]:
        what, p, q, r, s = STEPS[step, 0], STEPS[step, 1], STEPS[step, 2], STEPS[step, 3], STEPS[step, 4]
        step += 1
        if what == BYTES:
            for i in range(p):
                put(c, 1, q >> (8 * (p - 1 - i)))
        elif what == OWN:
            put(c, 4, 8 * p - (c.memory_used + c.text_at + 4))
        elif what in (NUMBER_32, NUMBER_8):
            number: Int = np.int64(0)
            if p == IMMEDIATE:
                number = fields >> 32
            elif p == PC:
                number = pc
            elif p == TARGET:
                number = pc + (fields >> 32)
            elif p == NEXT_PC:
                number = pc + 4
            elif p == REST:
                number = rest
            elif p == CODE_FIRST:
                number = -np.int64(c.code_first)
            elif p == CODE_BYTES:
                number = c.code_end - c.code_first
            put(c, 4 if what == NUMBER_32 else 1, number)
        elif what == JUMP_IF:
            if q != TO_WORDS:
                condition = OF[n, 0] if p == OF_TABLE else p
                if condition == ALWAYS:
                    put(c, 1, 0xE9)
                else:
                    put(c, 2, 0x0F | (0x80 | condition) << 8)
            refer(c, q, pc + (fields >> 32) if r == TARGET else pc, rest if s else ZERO, s & 1)
        elif what == SKIP_IF:
            put(c, 2, 0x70 | (OF[n, 0] ^ 1) | q << 8)
        elif what == MEMORY:
            _memory(c, n, chosen if p == CHOSEN else loaded, q)
        elif what == ELSEWHERE:
            put(c, 2, 0x830F)
            elsewhere = refer(c, np.int64(TO_OTHER_HALF if other_half else TO_EXIT), pc, rest, np.int64(1))
        elif what == GO_ON:
            if other_half:
                c.jump[elsewhere, 5] = fields
                c.jump[elsewhere, 6] = other_half
                c.jump[elsewhere, 7] = c.text_at
        elif what == ONLY_IF_RD:
            if d == NOWHERE:
                step += p
        else:
            x = a if r == A else (b if r == B else d)
            register = q
            if what == WITH_X:
                register = result if q == RESULT else (chosen if q == CHOSEN else q)
                on_operand(c, p, register, np.int64(c.host[x]), x, s)
            elif what == WITH_REGISTER:
                on_operand(c, p, q, result if r == RESULT else (chosen if r == CHOSEN else r), ZERO, ZERO)
            elif what == SET_X:
                register = result if p == RESULT else (loaded if p == LOADED else p)
                if d != NOWHERE and c.host[d] != register:
                    on_operand(c, MOV_TO, register, np.int64(c.host[d]), d, ZERO)
            else:
                x = a if q == A else b
                register = result if p == RESULT else p
                host = np.int64(c.host[x])
                if what == CHOOSE and host >= 0:
                    register = host
                if host != register:
                    on_operand(c, MOV_FROM, register, host, x, ZERO)
                chosen = register
