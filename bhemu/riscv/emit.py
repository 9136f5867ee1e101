"""Writing machine code of x86-64 from templates (x86.py) into the text of a region (translate.py)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, Record
from bhemu.riscv.decode import NOWHERE
from bhemu.riscv.x86 import (
    ALWAYS,
    BYTES,
    CHOOSE,
    CHOSEN,
    ELSEWHERE,
    GO_ON,
    IMMEDIATE,
    IS_STORE,
    JUMP_IF,
    KIND,
    LOADED,
    MEMORY,
    NEXT_PC,
    NUMBER_8,
    NUMBER_32,
    OF,
    OF_TABLE,
    ONLY_IF_RD,
    OWN,
    PC,
    RAX,
    REST,
    RESULT,
    SET_X,
    SKIP_IF,
    STEPS,
    TARGET,
    TEMPLATE,
    TO_EXIT,
    TO_OTHER_HALF,
    TO_WORDS,
    WITH_REGISTER,
    WITH_X,
    A,
    B,
)

IN_MEMORY: Final = np.int64(-1)
"""In the place of a register: an x register has none, its operand is in the record."""
MOV_FROM, MOV_TO = np.int64(0x8B), np.int64(0x89)
"""Opcodes that load a register from an operand, and store it there."""
ZERO: Final = np.int64(0)
"""For arguments: of a number in the text, Numba compiles each function once more for each value."""


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
