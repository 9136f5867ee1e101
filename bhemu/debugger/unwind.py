"""Backtrace: frames of a core's stack, from DWARF call frame information, or a guess from the code."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from bhemu.isa.riscv import RISCV_BY_NAME, find, immediate
from bhemu.loader.elf import Executable

RA: Final = 1
SP: Final = 2
CALLEE_SAVED: Final = (2, 8, 9, *range(18, 28))
"""sp and s0 to s11: what a function leaves as it found it."""
LONGEST_PROLOGUE: Final = 64
"""Instructions in which a function has made its frame, when that is to be guessed."""
_SW, _ADDI = RISCV_BY_NAME["sw"], RISCV_BY_NAME["addi"]

LoadWord = Callable[[int], int | None]
"""The word at an address, or None where the core has no memory."""


@dataclass(frozen=True)
class Frame:
    """A function that has not returned.

    Attributes:
        pc: of the next instruction; in a caller, where the call returns to.
        registers: known registers by number, as they are in this function.
        cfa: the stack pointer before the function was entered, or None where that is unknown.
        is_guess: found without call frame information, from the code and from ra.
    """

    pc: int
    registers: Mapping[int, int]
    cfa: int | None
    is_guess: bool


class Unwinder:
    """Walks the stack of programs.

    Args:
        executable: the program.
    """

    def __init__(self, executable: Executable) -> None:
        self._executable = executable

    @cached_property
    def _entries(self) -> list[Any]:
        """Frame description entries, or nothing where there are none or they are damaged."""
        from elftools.elf.elffile import ELFFile

        found: list[Any] = []
        try:
            elf: Any = ELFFile(io.BytesIO(self._executable.content))
            dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
            entries = list(dwarf.CFI_entries()) if dwarf.has_CFI() else []
            entries += list(dwarf.EH_CFI_entries()) if dwarf.has_EH_CFI() else []
            found = [entry for entry in entries if type(entry).__name__ == "FDE" and entry.header["address_range"]]
        except Exception:  # pyelftools raises whatever its parsers run into; the guess remains
            return found
        return found

    def caller(self, frame: Frame, is_innermost: bool, load: LoadWord) -> Frame | None:
        """The frame of the caller, or None at the end of the stack; `frame.cfa` need not be known.

        Args:
            frame: of a function of this program.
            is_innermost: its pc is that of an instruction to be executed, not of one after a call.
            load: reads the core's memory.
        """
        return self._unwound(frame, is_innermost, load)[1]

    def cfa(self, frame: Frame, is_innermost: bool, load: LoadWord) -> int | None:
        """The stack pointer before the frame's function was entered, or None where it is unknown."""
        return self._unwound(frame, is_innermost, load)[0]

    def _unwound(self, frame: Frame, is_innermost: bool, load: LoadWord) -> tuple[int | None, Frame | None]:
        place = frame.pc if is_innermost else frame.pc - 4
        row = self._row(place)
        if row is None:
            return self._guess(frame, place, is_innermost, load)
        return self._by_rules(frame, row, load)

    def _row(self, pc: int) -> dict[Any, Any] | None:
        for entry in self._entries:
            start = int(entry.header["initial_location"])
            if start <= pc < start + int(entry.header["address_range"]):
                try:
                    rows = [row for row in entry.get_decoded().table if row["pc"] <= pc]
                except Exception:
                    return None
                if rows and rows[-1]["cfa"].reg is not None:
                    return dict(rows[-1], ra=entry.cie["return_address_register"])
        return None

    def _by_rules(self, frame: Frame, row: dict[Any, Any], load: LoadWord) -> tuple[int | None, Frame | None]:
        base = frame.registers.get(row["cfa"].reg)
        if base is None:
            return None, None
        cfa = base + int(row["cfa"].offset) & 0xFFFFFFFF
        registers = {number: frame.registers[number] for number in CALLEE_SAVED if number in frame.registers}
        column = int(row["ra"])
        back: int | None = frame.registers.get(column)
        for number, rule in row.items():
            if not isinstance(number, int):
                continue
            if rule.type == "OFFSET":
                value = load(cfa + rule.arg & 0xFFFFFFFF)
            elif rule.type == "SAME_VALUE":
                value = frame.registers.get(number)
            else:
                value = None
            registers.pop(number, None)
            if number == column:
                back = value
            elif value is not None:
                registers[number] = value
        registers[SP] = cfa
        return cfa, self._frame(back, registers, frame, False)

    def _guess(self, frame: Frame, place: int, is_innermost: bool, load: LoadWord) -> tuple[int | None, Frame | None]:
        """The frame from the stores and the change of sp at the function's begin, or from ra alone."""
        sp = frame.registers.get(SP)
        found = self._executable.symbol_at(place)
        size = 0
        saved: dict[int, int] = {}
        if found is not None:
            start = found[0].address
            for at in range(start, min(place, start + 4 * LONGEST_PROLOGUE), 4):
                word = load(at)
                row = find(word) if word is not None and word & 3 == 3 else None
                if row is None or word is None:
                    break
                rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
                offset = immediate(word, row.layout)
                if row == _ADDI and rd == rs1 == SP and offset < 0:
                    size += -offset
                elif row == _SW and rs1 == SP:
                    saved.setdefault(rs2, offset)
        if sp is None:
            return None, None
        registers = {number: frame.registers[number] for number in CALLEE_SAVED if number in frame.registers}
        for number, offset in saved.items():
            value = load(sp + offset & 0xFFFFFFFF)
            if number in CALLEE_SAVED and value is not None:
                registers[number] = value
        cfa = sp + size & 0xFFFFFFFF
        registers[SP] = cfa
        if RA in saved:
            back = load(sp + saved[RA] & 0xFFFFFFFF)
        else:
            back = frame.registers.get(RA) if is_innermost else None
        return cfa, self._frame(back, registers, frame, True)

    def _frame(self, back: int | None, registers: dict[int, int], callee: Frame, is_guess: bool) -> Frame | None:
        if back is None or back == 0 or back % 4:
            return None
        same_place = back == callee.pc and registers.get(SP) == callee.registers.get(SP)
        return None if same_place else Frame(back, registers, None, is_guess or callee.is_guess)


def backtrace(
    pc: int, registers: list[int], holding: Callable[[int], Unwinder | None], load: LoadWord, limit: int
) -> list[Frame]:
    """The frames of a core, innermost first.

    Args:
        pc: where it is.
        registers: x0 to x31.
        holding: the unwinder of the program with code at an address, or None.
        load: reads the core's memory.
        limit: frames at most.
    """
    frame = Frame(pc, dict(enumerate(registers)), None, False)
    frames: list[Frame] = []
    while len(frames) < limit:
        unwinder = holding(frame.pc if not frames else frame.pc - 4)
        if unwinder is None:
            if not frames:
                frames.append(frame)
            break
        cfa = unwinder.cfa(frame, not frames, load)
        above = unwinder.caller(frame, not frames, load)
        frames.append(Frame(frame.pc, frame.registers, cfa, frame.is_guess))
        if above is None or (cfa is not None and above.registers.get(SP, cfa) < frame.registers.get(SP, 0)):
            break
        frame = above
    return frames
