"""The description of the cores for GDB: target.xml with registers, the list of threads, the map of memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

from bhemu.isa.riscv import REGISTER_NAMES
from bhemu.machine.agents import CORE_NAMES

PC: Final = 32
CFG0: Final = 33
FCSR: Final = 34
REGISTERS: Final = 35
"""Numbers: x0 to x31, pc, cfg0, fcsr."""


def target_xml() -> bytes:
    """The target description: 32-bit RISC-V with two registers of the baby cores' own."""
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE target SYSTEM "gdb-target.dtd">',
        '<target version="1.0">',
        "<architecture>riscv:rv32</architecture>",
        "<osabi>none</osabi>",  # GDB would take Linux otherwise, and step by breakpoints
        '<feature name="org.gnu.gdb.riscv.cpu">',
    ]
    types = {"ra": "code_ptr", "sp": "data_ptr", "gp": "data_ptr", "tp": "data_ptr"}
    for number, name in enumerate(REGISTER_NAMES):
        gdb_name = "fp" if name == "s0" else name
        lines.append(f'<reg name="{gdb_name}" bitsize="32" type="{types.get(name, "int")}" regnum="{number}"/>')
    lines += [
        f'<reg name="pc" bitsize="32" type="code_ptr" regnum="{PC}"/>',
        "</feature>",
        '<feature name="org.bhemu.baby-core">',
        f'<reg name="cfg0" bitsize="32" type="int" group="system" regnum="{CFG0}"/>',
        f'<reg name="fcsr" bitsize="32" type="int" group="system" regnum="{FCSR}"/>',
        "</feature>",
        "</target>",
    ]
    return "\n".join(lines).encode()


def threads_xml(cores: Iterable[tuple[int, str]]) -> bytes:
    """The list of threads: a core each.

    Args:
        cores: (core number, what it does).
    """
    rows = [
        f'<thread id="{thread_of(core):x}" core="{core}" name="{CORE_NAMES[core]}">{escape(text)}</thread>'
        for core, text in cores
    ]
    return "\n".join(['<?xml version="1.0"?>', "<threads>", *rows, "</threads>"]).encode()


def thread_of(core: int) -> int:
    """GDB's number of a core: threads are counted from 1."""
    return core + 1


def part(content: bytes, offset: int, size: int) -> bytes:
    """A part of a document as qXfer sends it, not yet escaped: `m` in front when more follows, else `l`."""
    piece = content[offset : offset + size]
    return (b"m" if offset + size < len(content) else b"l") + piece
