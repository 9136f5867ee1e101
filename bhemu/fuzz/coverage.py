"""What a program has reached, from its words and from the decoded configuration that it leaves in the record."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np

from bhemu.fuzz.machine import Words
from bhemu.isa.instruction_table import BY_OPCODE, INSTRUCTIONS, Field
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS, RegisterField

NARROW: Final = 4
"""Widest field whose values are told apart; of a wider one it counts whether it is zero."""


@cache
def _operands(mnemonic: str, form: str) -> tuple[Field, ...]:
    row = INSTRUCTIONS[mnemonic]
    return next((found.fields for found in row.forms if found.name == form), row.fields)


@cache
def _of_word(word: int) -> frozenset[str]:
    row = BY_OPCODE[word >> 24]
    if row is None:
        return frozenset()
    form = row.form_of(word)
    name = form.name if form is not None else ""
    return frozenset(
        f"{row.mnemonic} {name} {field.name}={_value(field.extract(word), field.width)}"
        for field in _operands(row.mnemonic, name)
    ) | {row.mnemonic}


def _value(number: int, width: int) -> str:
    return str(number) if width <= NARROW else "0" if number == 0 else "other"


_BY_PREFIX: Final = {
    "unpack": ("THCON_SEC0_REG0", "THCON_SEC0_REG2", "THCON_SEC1_REG2", "THCON_SEC0_REG7", "UNP"),
    "pack": ("THCON_SEC0_REG1", "STACC", "PCK", "PACK", "TILE_ROW", "ALU_FORMAT_SPEC_REG2"),
    "matrix": ("ALU_",),
    "vector": ("ALU_ACC", "ALU_FORMAT_SPEC_REG1"),
}
"""Fields of configuration that matter to a unit, by how their names begin."""


@cache
def _fields_of(unit: str) -> tuple[RegisterField, ...]:
    prefixes = _BY_PREFIX.get(unit, ())
    return tuple(field for field in CONFIG_FIELDS.values() if field.name.startswith(prefixes) and field.access == "rw")


def features(record: Any, words: Words) -> set[str]:
    """What a program reaches, given the record that it has left: modes of instructions, and settings by unit."""
    found: set[str] = set()
    for _, word in words:
        found |= _of_word(word)
    units = {BY_OPCODE[opcode].unit for opcode in np.nonzero(record.issued.sum(axis=0))[0] if BY_OPCODE[opcode]}  # type: ignore[union-attr]
    for unit in units:
        for field in _fields_of(unit):
            number = int(record.config[0, field.word]) >> field.lsb & (1 << field.width) - 1
            if number:
                found.add(f"{unit}: {field.name}={_value(number, field.width)}")
    if "pack" in units or "unpack" in units or "matrix" in units:
        for field in THREAD_FIELDS.values():
            for thread in {thread for thread, _ in words}:
                if int(record.thread_config[thread, field.word]) >> field.lsb & (1 << field.width) - 1:
                    found.add(f"thread: {field.name}")
    return found
