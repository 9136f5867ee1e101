"""Random instruction words and configuration, from the tables of isa/."""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from bhemu.isa.instruction_table import BY_OPCODE, INSTRUCTIONS, Field
from bhemu.isa.instructions import encode
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS, RegisterField
from bhemu.isa.roles import ROLES
from bhemu.tensix.instruction import HANDLERS

NARROW: Final = 4
"""Widest field, in bits, whose value is a mode rather than a number."""

NOT_FUZZED: Final = frozenset({"MOP", "MOP_CFG"})
"""Instructions of the front end that need registers which no instruction sets."""


@cache
def mnemonics(unit: str | None = None) -> tuple[str, ...]:
    """Instructions that are built, of one unit or of all."""
    built = [HANDLERS[row.opcode].instruction.mnemonic for row in INSTRUCTIONS.values() if row.opcode in HANDLERS]
    front_end = [row.mnemonic for row in INSTRUCTIONS.values() if row.unit == "frontend" and row.opcode not in HANDLERS]
    return tuple(
        name for name in built + front_end if name not in NOT_FUZZED and unit in (None, INSTRUCTIONS[name].unit)
    )


@cache
def operands(mnemonic: str, form: int) -> tuple[Field, ...]:
    """The operands of one layout of an instruction."""
    row = INSTRUCTIONS[mnemonic]
    return row.forms[form].fields if row.forms else row.fields


def value(chance: random.Random, width: int) -> int:
    """A number of `bits` bits: often zero, a power of two, all ones, or small."""
    kind = chance.randrange(8)
    top = (1 << width) - 1
    if kind < 3:
        return 0
    if kind == 3:
        return 1 << chance.randrange(width)
    if kind == 4:
        return top - (1 << chance.randrange(width) if chance.randrange(2) else 0)
    if kind == 5:
        return min(top, chance.randrange(1, 17))
    return chance.randrange(top + 1)


def word(chance: random.Random, mnemonic: str) -> int:
    """A random word of an instruction."""
    row = INSTRUCTIONS[mnemonic]
    form = chance.randrange(len(row.forms)) if row.forms else 0
    found = row.base
    for operand in operands(mnemonic, form):
        selected = row.forms[form].selectors.get(operand.name) if row.forms else None
        number = value(chance, operand.width) if selected is None else selected
        found = found & ~operand.mask | number << operand.lsb
    return found


def mutated(chance: random.Random, old: int) -> int:
    """A word with one operand changed, or one bit."""
    row = BY_OPCODE[old >> 24]
    if row is None or not row.fields or chance.randrange(8) == 0:
        return old ^ 1 << chance.randrange(24)
    form = row.form_of(old)
    operand = chance.choice(form.fields if form is not None else row.fields)
    return old & ~operand.mask | value(chance, operand.width) << operand.lsb


@cache
def _key_fields(mnemonic: str, form: str) -> tuple[Field, ...]:
    row = INSTRUCTIONS[mnemonic]
    fields = next((f.fields for f in row.forms if f.name == form), row.fields)
    places = {role.operand for role in (*ROLES[mnemonic].reads, *ROLES[mnemonic].writes)}
    config = {role.operand for role in ROLES[mnemonic].writes if role.file in ("config", "thread_config")}
    return tuple(f for f in fields if f.name in config or (f.width <= NARROW and f.name not in places))


def signature(old: int) -> tuple[int, ...]:
    """Opcode and modes of a word: what a machine that lacks something refuses it for."""
    row = BY_OPCODE[old >> 24]
    if row is None:
        return (old >> 24,)
    form = row.form_of(old)
    return (row.opcode, *(f.extract(old) for f in _key_fields(row.mnemonic, form.name if form is not None else "")))


# --- configuration ----------------------------------------------------------------------------------------------------

_CONFIG: Final = [field for field in CONFIG_FIELDS.values() if field.access == "rw"]
_THREAD: Final = [field for field in THREAD_FIELDS.values() if field.access == "rw"]


_GPR: Final = 60
"""Through which programs write Config."""


def config_words(word_index: int, bits: int) -> list[int]:
    """Words that write a word of Config through a GPR."""
    return [
        encode("SETDMAREG", value=bits & 0xFFFF, RegIndex16b=2 * _GPR),
        encode("SETDMAREG", value=bits >> 16, RegIndex16b=2 * _GPR + 1),
        encode("WRCFG", GprAddress=_GPR, CfgReg=word_index),
    ]


def changed_field(chance: random.Random, held: dict[int, int]) -> tuple[RegisterField, int]:
    """A field of Config of a word that is in use (or, now and then, of any), and the word with another value in it."""
    used = [field for field in _CONFIG if field.word in held]
    field = chance.choice(used if used and chance.randrange(8) else _CONFIG)
    bits = held.get(field.word, 0) & ~field.mask | value(chance, field.width) << field.lsb
    return field, bits


def thread_word(chance: random.Random) -> int:
    """SETC16 with a random value in one field."""
    field = chance.choice(_THREAD)
    return encode("SETC16", setc16_reg=field.word, setc16_value=value(chance, field.width) << field.lsb & 0xFFFF)
