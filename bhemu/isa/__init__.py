"""What the bits mean: the instruction table, the configuration-register map, the assembler and the disassembler."""

from bhemu.isa.instructions import (
    BY_OPCODE,
    INSTRUCTIONS,
    UNITS,
    Decoded,
    Field,
    Form,
    Instruction,
    decode,
    encode,
    instruction,
)

__all__ = [
    "BY_OPCODE",
    "INSTRUCTIONS",
    "UNITS",
    "Decoded",
    "Field",
    "Form",
    "Instruction",
    "decode",
    "encode",
    "instruction",
]
