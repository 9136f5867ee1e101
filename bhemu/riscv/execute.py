"""The inner loop of a core: RV32IM, Zba, Zbb and `.ttinsn` on registers, L1 and local RAM (tile T1 to T10).

Code that is executed often is translated (translate.py), and the loop enters that. Whatever needs more than that leaves
the loop: accesses to other addresses and `.ttinsn` (made by tile/memory_map.py),
and the instructions of slow.py. The schedule (tile/schedule.py) decides how far a core may run: up to `round_goal`, and
up to `round_horizon` where it touches shared state, `l1_ahead` rounds further where that is L1.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior
from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.isa.riscv import NUMBER
from bhemu.machine.buffer_memory import load_i64
from bhemu.machine.core_state import LOAD, LOCAL_RAM_SIZE, PUSH, STORE
from bhemu.machine.dispatch import call_handler
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Bool, Int, Record, TileRecord
from bhemu.riscv.code_memory import enter, native_table, set_team
from bhemu.riscv.decode import BREAKPOINT, FIRST_SLOW, NOWHERE, TRANSLATED, TTINSN, VALID, code_at, fields_of, fill
from bhemu.riscv.teams import begin_team, can_join
from bhemu.riscv.translation_state import (
    AT_HORIZON,
    COUNT,
    CURRENT,
    FAILED,
    FIELDS,
    JOIN,
    LEAST_ROUNDS,
    LEFT,
    LOOPS_LEFT,
    NO_CORE,
    PREVIOUS,
    SLACK,
    STAY,
    TRANSLATOR_PLACE,
)

# Why a core has left the loop
LIMIT: Final = 0
"""It has reached the goal, or the horizon before an access."""
ACCESS: Final = 1
"""`access_*` describe an access that the memory map has to make."""
SLOW: Final = 2
"""The instruction at pc is one of slow.py."""
FAULTED: Final = 3
LOOPS: Final = 4
"""It has jumped backwards `core_loops_limit` times."""
STOPPED: Final = 5
"""It is at a breakpoint."""

WORD: Final = 0xFFFFFFFF
RAM_BASE: Final = LOCAL_RAM_BASE
_RAM_SIZE: Final = np.array(LOCAL_RAM_SIZE, np.int64)
_SIGN: Final = 1 << 31

BAD_PC: Final = fault(
    "riscv.pc",
    UndefinedBehavior,
    "the core jumps to {0:#x}, which is not an aligned address in L1 (0..{1:#x}); it came from {2:#x}",
    remedy="instructions are fetched from L1 only; check the return address and function pointers",
    rule="tile T21",
)
MISALIGNED: Final = fault(
    "riscv.misaligned",
    NonContractualBehavior,
    "a misaligned {1}-byte access at {0:#x}",
    remedy="align the data to its size (-mstrict-align); packed structures need byte accesses",
    rule="tile T27",
)

_N: Final = NUMBER
LUI, AUIPC, JAL, JALR = _N["lui"], _N["auipc"], _N["jal"], _N["jalr"]
BEQ, BNE, BLT, BGE, BLTU, BGEU = _N["beq"], _N["bne"], _N["blt"], _N["bge"], _N["bltu"], _N["bgeu"]
LB, LH, LW, LBU, LHU = _N["lb"], _N["lh"], _N["lw"], _N["lbu"], _N["lhu"]
SB, SH, SW = _N["sb"], _N["sh"], _N["sw"]
ADDI, SLTI, SLTIU, XORI, ORI, ANDI = _N["addi"], _N["slti"], _N["sltiu"], _N["xori"], _N["ori"], _N["andi"]
SLLI, SRLI, SRAI, RORI = _N["slli"], _N["srli"], _N["srai"], _N["rori"]
ADD, SUB, SLL, SLT, SLTU = _N["add"], _N["sub"], _N["sll"], _N["slt"], _N["sltu"]
XOR, SRL, SRA, OR, AND = _N["xor"], _N["srl"], _N["sra"], _N["or"], _N["and"]
MUL, MULH, MULHSU, MULHU = _N["mul"], _N["mulh"], _N["mulhsu"], _N["mulhu"]
DIV, DIVU, REM, REMU = _N["div"], _N["divu"], _N["rem"], _N["remu"]
SH1ADD, SH2ADD, SH3ADD = _N["sh1add"], _N["sh2add"], _N["sh3add"]
ANDN, ORN, XNOR = _N["andn"], _N["orn"], _N["xnor"]
MIN, MINU, MAX, MAXU = _N["min"], _N["minu"], _N["max"], _N["maxu"]
ROL, ROR = _N["rol"], _N["ror"]
CLZ, CTZ, CPOP, SEXT_B, SEXT_H = _N["clz"], _N["ctz"], _N["cpop"], _N["sext.b"], _N["sext.h"]
ORC_B, REV8, PACK = _N["orc.b"], _N["rev8"], _N["pack"]
FENCE, FENCE_I = _N["fence"], _N["fence.i"]


@kernel
def signed(x: Int) -> AnyInt:
    """A register's 32 bits as a signed number."""
    return (x ^ _SIGN) - _SIGN


@kernel
def rotate_right(x: Int, amount: Int) -> Int:
    """32 bits rotated right by 0 to 31."""
    return (x >> amount) | (x << (32 - amount))


@kernel
def count_leading_zeros(x: Int) -> Int:
    """Of 32 bits; 32 for 0."""
    count = np.int64(0)
    for step in (16, 8, 4, 2, 1):
        if x >> (32 - step) == 0:
            count += step
            x = (x << step) & WORD
    return count + (1 if x == 0 else 0)


@kernel
def count_ones(x: Int) -> Int:
    """Of 32 bits."""
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) & WORD) >> 24


@kernel
def reverse_bytes(x: Int) -> Int:
    return ((x & 0xFF) << 24) | ((x & 0xFF00) << 8) | ((x >> 8) & 0xFF00) | (x >> 24)


@kernel
def reverse_bits_in_bytes(x: Int) -> Int:
    x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
    x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
    return ((x >> 4) & 0x0F0F0F0F) | ((x & 0x0F0F0F0F) << 4)


@kernel
def or_combine(x: Int) -> Any:
    """Each byte 0xff where it has a bit (orc.b)."""
    value = np.int64(0)
    for byte in range(4):
        if (x >> (8 * byte)) & 0xFF:
            value |= 0xFF << (8 * byte)
    return value


@kernel
def unary(n: Int, a: Int) -> AnyInt:
    """clz, ctz, cpop, sext.b, sext.h, orc.b, rev8, brev8 (T3)."""
    if n == CLZ:
        return count_leading_zeros(a)
    if n == CTZ:
        return count_ones(((a & -a) - 1) & WORD)
    if n == CPOP:
        return count_ones(a)
    if n == SEXT_B:
        return ((a & 0xFF) ^ 0x80) - 0x80
    if n == SEXT_H:
        return ((a & 0xFFFF) ^ 0x8000) - 0x8000
    if n == ORC_B:
        return or_combine(a)
    if n == REV8:
        return reverse_bytes(a)
    return reverse_bits_in_bytes(a)


@kernel
def divide(n: Int, a: Int, b: Int) -> AnyInt:
    """div, divu, rem, remu with the corner cases of T4."""
    if n == DIVU:
        return a // b if b != 0 else np.int64(WORD)
    if n == REMU:
        return a % b if b != 0 else a
    dividend, divisor = signed(a), signed(b)
    if divisor == 0:
        return np.int64(-1) if n == DIV else dividend
    quotient = abs(dividend) // abs(divisor)  # -2**31 / -1 wraps to itself when it is stored
    if (dividend < 0) != (divisor < 0):
        quotient = -quotient
    return quotient if n == DIV else dividend - quotient * divisor


@kernel
def hand_over(
    t: TileRecord, core: Int, kind: Int, address: Int, size: Int, value: Int, register: Int, is_signed: Int
) -> Any:
    """Describe an access for the memory map."""
    t.access_kind[core] = kind
    t.access_address[core] = address
    t.access_size[core] = size
    t.access_value[core] = value
    t.access_register[core] = register
    t.access_signed[core] = is_signed
    return ACCESS


@kernel
def _arrive(t: TileRecord, code: Record, cache: Int, core: Int, pc: Int) -> None:
    """The core arrives at an instruction where translated code may begin."""
    place = (pc & WORD) >> 2
    if place < L1_SIZE >> 2 and code.heat[place] < code.hot:
        code.heat[place] += 1
        if code.heat[place] == code.hot:
            call_handler(native_table(cache), TRANSLATOR_PLACE, t, cache, core << 32 | (pc & WORD))


@kernel(forceinline=True)  # turns are short where cores share memory, and calls count
def run_core(t: TileRecord, core: Int, cache: Int, others: Bool) -> Any:
    """Execute with a core from `core_round` on; returns why it stopped, with pc at the instruction not yet executed.

    Args:
        core: of machine/agents.py.
        cache: address of the code cache, or the cache itself when Numba is disabled.
        others: plain turns of other cores may follow (tile/turns.py); `turn_core` is the one whose turn was the last.
    """
    code = code_at(cache)
    l1_end = np.int64(t.l1_end)
    ram_size = _RAM_SIZE[core]
    goal = np.int64(t.round_goal)
    horizon = np.int64(t.round_horizon)
    ahead = np.int64(t.l1_ahead)
    start = np.int64(t.core_round[core])
    now = start
    pc = np.int64(t.core_pc[core])
    loops = np.int64(t.core_loops[core])
    loops_limit = np.int64(t.core_loops_limit[core])
    before = pc
    status = LIMIT
    translates = code.native[TRANSLATOR_PLACE] != 0 and l1_end == L1_SIZE  # templates know one size of L1
    counts = translates and goal - start >= LEAST_ROUNDS
    stays = False  # the next instruction is the interpreter's
    team = False  # a team executes (teams.py)
    if counts and pc & 3 == 0:
        _arrive(t, code, cache, core, pc)
    while now < goal:
        if pc >= l1_end or pc & 3:
            if now > horizon:  # another agent may be refused before
                break
            refuse(t, BAD_PC, pc, l1_end, before)
            status = FAULTED
            break
        place = pc >> 2
        word = np.int64(t.l1_u32[place])
        fields: Int = np.int64(code.word[place, 1])
        if np.int64(code.word[place, 0]) != word | VALID:
            fields = fill(code, place, word)
        n = fields & 0xFF
        if n == BREAKPOINT:
            if t.core_skip_breakpoint[core] == 0:
                status = STOPPED
                break
            fields = fields_of(word)
            n = fields & 0xFF
        if n == TRANSLATED:
            entry = fields >> 32
            fields = np.int64(code.entry[entry, FIELDS])
            n = fields & 0xFF
            if translates and not stays and goal - now >= code.entry[entry, COUNT] and loops < loops_limit:
                native = native_table(cache)
                if others and not team and horizon < goal:
                    team = begin_team(t, code, core, goal)
                set_team(code, core, entry, team)
                result = enter(t, code, native, core, entry, word, goal - now, goal - horizon, loops_limit - loops)
                if result != FAILED:
                    if team and load_i64(code.memory, PREVIOUS) != NO_CORE:  # the record has what cores did
                        core = load_i64(code.memory, CURRENT)
                        joins = result == JOIN and can_join(t, core)
                        if result >= JOIN and not joins:
                            core = load_i64(code.memory, PREVIOUS)
                        ram_size = _RAM_SIZE[core]
                        start = np.int64(t.core_round[core])
                        now = start
                        pc = np.int64(t.core_pc[core])
                        loops = np.int64(t.core_loops[core])
                        loops_limit = np.int64(t.core_loops_limit[core])
                        horizon = goal - load_i64(code.memory, SLACK)
                        t.round_horizon = horizon
                        if result >= JOIN:
                            before = pc
                            if not joins:
                                break
                            if counts:
                                _arrive(t, code, cache, core, pc)
                            continue
                    left = load_i64(code.memory, LEFT)
                    stays = result & STAY != 0 or left == goal - now
                    if left != goal - now:
                        t.core_skip_breakpoint[core] = 0
                    now = goal - left
                    loops = loops_limit - load_i64(code.memory, LOOPS_LEFT)
                    before = pc
                    pc = result & WORD
                    if loops >= loops_limit:
                        status = LOOPS
                        break
                    if result & AT_HORIZON:
                        break
                    if counts and not stays:
                        _arrive(t, code, cache, core, pc)
                    continue
        stays = False
        team = False
        rd = (fields >> 8) & 0x3F
        immediate = fields >> 32
        a = np.int64(t.core_x[core, (fields >> 16) & 31])
        b = np.int64(t.core_x[core, (fields >> 24) & 31])
        value: Int = np.int64(0)
        after = pc + 4
        if n == ADDI:
            value = a + immediate
        elif n in (LW, LB, LBU, LH, LHU):
            address = (a + immediate) & WORD
            size = 4 if n == LW else (1 if n in (LB, LBU) else 2)
            if address & (size - 1):
                if now > horizon:
                    break
                refuse(t, MISALIGNED, address, size)
                status = FAULTED
                break
            offset = address - RAM_BASE
            if address < l1_end:
                if now > horizon + ahead:
                    break
                loaded = np.int64(t.l1_u32[address >> 2])
            elif offset >= 0 and offset < ram_size:
                loaded = np.int64(t.core_ram_u32[core, offset >> 2])
            else:
                if now <= horizon:
                    status = hand_over(t, core, LOAD, address, size, 0, rd, 1 if n in (LB, LH) else 0)
                break
            loaded >>= 8 * (address & 3)
            if n == LW:
                value = loaded
            elif n == LBU:
                value = loaded & 0xFF
            elif n == LHU:
                value = loaded & 0xFFFF
            elif n == LB:
                value = ((loaded & 0xFF) ^ 0x80) - 0x80
            else:
                value = ((loaded & 0xFFFF) ^ 0x8000) - 0x8000
        elif n in (SW, SB, SH):
            address = (a + immediate) & WORD
            size = 4 if n == SW else (1 if n == SB else 2)
            if address & (size - 1):
                if now > horizon:
                    break
                refuse(t, MISALIGNED, address, size)
                status = FAULTED
                break
            offset = address - RAM_BASE
            if address < l1_end:
                if now > horizon + ahead:
                    break
                if (np.int64(t.watch_hash) >> ((address >> 2) & 63)) & 1:
                    if now <= horizon:
                        status = hand_over(t, core, STORE, address, size, b, rd, 0)
                    break
                if n == SW:
                    t.l1_u32[address >> 2] = np.uint32(b)
                elif n == SB:
                    t.l1[address] = np.uint8(b & 0xFF)
                else:
                    t.l1_u16[address >> 1] = np.uint16(b & 0xFFFF)
            elif offset >= 0 and offset < ram_size:
                if n == SW:
                    t.core_ram_u32[core, offset >> 2] = np.uint32(b)
                elif n == SB:
                    t.core_ram[core, offset] = np.uint8(b & 0xFF)
                else:
                    t.core_ram_u16[core, offset >> 1] = np.uint16(b & 0xFFFF)
            else:
                if now <= horizon:
                    status = hand_over(t, core, STORE, address, size, b & ((1 << (8 * size)) - 1), rd, 0)
                break
        elif n == BEQ:
            if a == b:
                after = pc + immediate
        elif n == BNE:
            if a != b:
                after = pc + immediate
        elif n == BLT:
            if signed(a) < signed(b):
                after = pc + immediate
        elif n == BGE:
            if signed(a) >= signed(b):
                after = pc + immediate
        elif n == BLTU:
            if a < b:
                after = pc + immediate
        elif n == BGEU:
            if a >= b:
                after = pc + immediate
        elif n == ADD:
            value = a + b
        elif n == LUI:
            value = immediate
        elif n == SLLI:
            value = a << immediate
        elif n == SRLI:
            value = a >> immediate
        elif n == SRAI:
            value = signed(a) >> immediate
        elif n == ANDI:
            value = a & immediate
        elif n == ORI:
            value = a | (immediate & WORD)
        elif n == XORI:
            value = a ^ (immediate & WORD)
        elif n == SUB:
            value = a - b
        elif n == AND:
            value = a & b
        elif n == OR:
            value = a | b
        elif n == XOR:
            value = a ^ b
        elif n == JAL:
            value = after
            after = pc + immediate
        elif n == JALR:
            value = after
            after = (a + immediate) & 0xFFFFFFFE
        elif n == AUIPC:
            value = pc + immediate
        elif n == SLTI:
            value = np.int64(1) if signed(a) < immediate else np.int64(0)
        elif n == SLTIU:
            value = np.int64(1) if a < immediate & WORD else np.int64(0)
        elif n == SLT:
            value = np.int64(1) if signed(a) < signed(b) else np.int64(0)
        elif n == SLTU:
            value = np.int64(1) if a < b else np.int64(0)
        elif n == SLL:
            value = a << (b & 31)
        elif n == SRL:
            value = a >> (b & 31)
        elif n == SRA:
            value = signed(a) >> (b & 31)
        elif n == MUL:
            value = signed(a) * signed(b)
        elif n == MULH:
            value = (signed(a) * signed(b)) >> 32
        elif n == MULHSU:
            value = (signed(a) * b) >> 32
        elif n == MULHU:
            # The product of two 32-bit numbers needs 64 bits without a sign.
            value = (a * (b >> 16) + ((a * (b & 0xFFFF)) >> 16)) >> 16
        elif n in (DIV, DIVU, REM, REMU):
            value = divide(n, a, b)
        elif n == SH1ADD:
            value = (a << 1) + b
        elif n == SH2ADD:
            value = (a << 2) + b
        elif n == SH3ADD:
            value = (a << 3) + b
        elif n == ANDN:
            value = a & ~b
        elif n == ORN:
            value = a | ~b
        elif n == XNOR:
            value = ~(a ^ b)
        elif n == MIN:
            value = min(signed(a), signed(b))
        elif n == MAX:
            value = max(signed(a), signed(b))
        elif n == MINU:
            value = min(a, b)
        elif n == MAXU:
            value = max(a, b)
        elif n == ROL:
            value = rotate_right(a, (32 - (b & 31)) & 31)
        elif n == ROR:
            value = rotate_right(a, b & 31)
        elif n == RORI:
            value = rotate_right(a, immediate)
        elif n == PACK:
            value = (a & 0xFFFF) | (b << 16)
        elif n in (FENCE, FENCE_I):
            pass  # every access is complete before the next one (T31, E44); code is compared when fetched (T22)
        elif n == TTINSN:
            if now <= horizon:
                status = hand_over(t, core, PUSH, 0, 4, (word >> 2) | ((word & 3) << 30), rd, 0)
            break
        elif n >= FIRST_SLOW:
            if now <= horizon:
                status = SLOW
            break
        else:
            value = unary(n, a)
        t.core_x[core, rd] = np.uint32(value & WORD)
        now += 1
        t.core_skip_breakpoint[core] = 0
        before = pc
        if after <= pc:
            loops += 1
            if loops >= loops_limit:
                pc = after & WORD
                status = LOOPS
                break
            if counts:
                _arrive(t, code, cache, core, after)
        pc = after & WORD
    t.core_x[core, NOWHERE] = 0  # what was last written there depends on what has been translated
    t.core_pc[core] = np.uint32(pc)
    t.core_round[core] = now
    t.core_retired[core] += now - start
    t.core_loops[core] = loops
    t.turn_core = core
    return status


def run_core_entry(t: TileRecord, core: Int, cache: Int) -> AnyInt:
    """`run_core` for `compile_entry`."""
    return run_core(t, core, cache, False)
