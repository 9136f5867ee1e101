"""Addresses of tile and card have one home each: the tables of isa/, and chip/pcie/pci.py for the BARs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bhemu
from bhemu.chip.pcie.pci import BAR0, BAR0_SIZE, BAR2, BAR2_SIZE, BAR4, BAR4_SIZE
from bhemu.isa.memory_map import L1_SIZE, REGIONS, region
from bhemu.isa.registers import config
from bhemu.isa.tile_registers import address_of

PACKAGE = Path(bhemu.__file__).parent
BARS = ((BAR0, BAR0_SIZE), (BAR2, BAR2_SIZE), (BAR4, BAR4_SIZE))
HOME_OF_BARS = PACKAGE / "chip" / "pcie" / "pci.py"
DEVICES = [place for place in REGIONS.values() if place.base >= L1_SIZE]
HEADER = PACKAGE / "cc" / "data" / "bhemu.h"
LINKER_SCRIPT = PACKAGE / "cc" / "data" / "kernel.ld"


def is_address_of_tile(value: int) -> bool:
    """The low 32 bits are those of an address at which a core sees something other than L1."""
    return any(value & 0xFFFFFFFF in place for place in DEVICES)


def is_address_of_card(value: int) -> bool:
    return any(base <= value < base + size for base, size in BARS)


def literals(text: str) -> Iterator[tuple[int, int]]:
    """(line, value) of each number in the code, and of each hexadecimal number in a text that is not a docstring."""
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            if isinstance(node.value, int):
                yield node.lineno, node.value
            elif isinstance(node.value, str):
                yield from ((node.lineno, int(found, 16)) for found in re.findall(r"0x[0-9a-fA-F_]{8,}", node.value))


def addresses(path: Path) -> list[str]:
    """The literals of a file that are addresses."""
    return [
        f"{path.relative_to(PACKAGE)}:{line}: {value:#x}"
        for line, value in literals(path.read_text())
        if is_address_of_tile(value) or (path != HOME_OF_BARS and is_address_of_card(value))
    ]


@pytest.mark.slow
def test_no_file_spells_an_address_that_a_table_has() -> None:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 300
    assert [found for path in files for found in addresses(path)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SOFT_RESET = 0xFFB121B0", [(1, 0xFFB121B0)]),
        ("BASE = 0x100_FFB20000", [(1, 0x100FFB20000)]),
        ("def f():\n    return f'at 0xffe80004: {x}'", [(2, 0xFFE80004)]),
        ("WINDOWS = 0x1_0000_0000", [(1, 0x100000000)]),
    ],
)
def test_an_address_is_noticed_in_code_and_in_messages(text: str, found: list[tuple[int, int]]) -> None:
    noticed = [item for item in literals(text) if is_address_of_tile(item[1]) or is_address_of_card(item[1])]
    assert noticed == found


def test_a_docstring_may_name_an_address() -> None:
    assert not list(literals('"""At 0xffb12000."""\nX = None\n"""At 0xffb12000."""'))


# --- the header and the linker script of kernels, which are C -------------------------------------------------------

REGION_OF = {"NOC0": "niu0", "NOC1": "niu1", "PUSH_WINDOW": "push0"}
"""Macros that are not called as the region is."""
REGISTER_OF = {
    "TTSYNC": ("sync", "COPROCESSOR_DONE"),
    "MOPSYNC": ("sync", "MOP_DONE"),
    "SEMAPHORES": ("sync", "SEMAPHORE"),
    "T0_RESET_PC": ("control", "TRISC0_RESET_PC"),
    "T1_RESET_PC": ("control", "TRISC1_RESET_PC"),
    "T2_RESET_PC": ("control", "TRISC2_RESET_PC"),
    "T_RESET_PC_OVERRIDE": ("control", "TRISC_RESET_PC_OVERRIDE"),
    "NC_RESET_PC": ("control", "NCRISC_RESET_PC"),
    "NC_RESET_PC_OVERRIDE": ("control", "NCRISC_RESET_PC_OVERRIDE"),
}
"""Macros that are not called as the register of the control block is."""


def meant(macro: str) -> int:
    """The address in the tables that a macro of bhemu.h names."""
    if macro == "ICACHE_INVALIDATE":
        return region("config").base + 4 * config("RISCV_IC_INVALIDATE_InvalidateAll")[0]
    name = REGION_OF.get(macro, macro.lower())
    if name in REGIONS:
        return region(name).base
    return address_of(*REGISTER_OF.get(macro, ("control", macro)))


def test_bhemu_h_has_the_addresses_of_the_tables() -> None:
    macros = re.findall(r"^#define BHEMU_(\w+) +(0x[0-9A-F]{8})\b", HEADER.read_text(), re.MULTILINE)
    assert len(macros) == 29
    assert {name: int(value, 16) for name, value in macros} == {name: meant(name) for name, _ in macros}
    assert f"#define BHEMU_L1_SIZE          {L1_SIZE:#x} " in HEADER.read_text()


def test_the_linker_script_has_the_addresses_of_the_tables() -> None:
    addresses = {int(found, 16) for found in re.findall(r"0x[0-9A-F]{8}\b", LINKER_SCRIPT.read_text())}
    assert addresses == {region("local_ram").base, region("push0").base}
