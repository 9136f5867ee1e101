"""The table of roles: every instruction has its roles, in a notation that names only what exists."""

from __future__ import annotations

import pytest

from bhemu.analysis import access, dst
from bhemu.errors import AssemblyError
from bhemu.isa import INSTRUCTIONS, encode
from bhemu.isa.names import Condition
from bhemu.isa.roles import FILES, ROLES, Role, parse_role

pytestmark = pytest.mark.plain

ALL_ROLES = [
    role
    for roles in ROLES.values()
    for group in (roles.reads, roles.writes, roles.waits, roles.gives)
    for role in group
]


def test_every_instruction_has_roles_and_no_other_name_has() -> None:
    assert set(ROLES) == set(INSTRUCTIONS)
    assert all(roles.rule for roles in ROLES.values())


def test_every_register_file_is_named_by_some_role() -> None:
    assert {role.file for role in ALL_ROLES} == set(FILES)


def test_every_function_that_a_role_names_exists_and_every_such_function_is_named() -> None:
    named = {role.by for role in ALL_ROLES if role.by}
    assert named == set(access.BY) | set(dst.BY)


def test_every_condition_that_a_write_is_certain_with_is_one_of_stallwait() -> None:
    assert {role.until for role in ALL_ROLES if role.until} <= {condition.name for condition in Condition}


@pytest.mark.parametrize("text", ["gpr NoSuchOperand", "gpr RegIndex if NoSuchOperand==1"])
def test_a_role_that_names_an_operand_the_instruction_lacks_is_refused(text: str) -> None:
    with pytest.raises(AssemblyError, match="has no operand"):
        parse_role("ADDDMAREG", text)


@pytest.mark.parametrize("text", ["gprs OpARegIndex", "gpr OpARegIndex*2", "gpr OpARegIndex if OpBisConst=1"])
def test_a_role_in_no_notation_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parse_role("ADDDMAREG", text)


def places(mnemonic: str, text: str, **operands: int) -> tuple[int, ...] | None:
    return parse_role(mnemonic, text).places(encode(mnemonic, **operands))


def test_places_come_from_operands_numbers_and_masks() -> None:
    assert places("WRCFG", "gpr GprAddress", GprAddress=13) == (13,)
    assert places("WRCFG", "gpr GprAddress x4 align4", GprAddress=13) == (12, 13, 14, 15)
    assert places("STOREIND", "gpr DataRegIndex x2 align4", form="Src", DataRegIndex=7) == (4, 5)
    assert places("SETDMAREG", "gpr RegIndex16b/2", form="immediate", RegIndex16b=7) == (3,)
    assert places("SFPSHFT2", "lreg imm12_math&15", imm12_math=0x123) == (3,)
    assert places("SFPLOAD", "lreg lreg_ind+4", lreg_ind=2) == (6,)
    assert places("SEMPOST", "semaphore bits:sem_sel", sem_sel=0b1010) == (1, 3)
    assert places("SFPLUT", "lreg 0..3") == (0, 1, 2, 3)
    assert places("PACR", "dst by packer_rows") is None
    assert places("PACR", "l1") is None


@pytest.mark.parametrize(
    ("tests", "holds"),
    [
        ("instr_mod1==5", True),
        ("instr_mod1", True),
        ("!instr_mod1", False),
        ("instr_mod1&2", False),
        ("!instr_mod1&2", True),
        ("instr_mod1&6==4", True),
        ("instr_mod1>=5 and instr_mod1<6", True),
        ("instr_mod1!=5 and instr_mod1", False),
    ],
)
def test_a_role_holds_when_all_tests_of_operands_do(tests: str, holds: bool) -> None:
    role = parse_role("SFPMOV", f"lreg lreg_c if {tests}")
    assert role.holds(encode("SFPMOV", instr_mod1=5)) is holds


def test_a_role_prints_as_the_table_writes_it() -> None:
    role: Role = ROLES["ADDDMAREG"].reads[1]
    assert str(role) == "gpr OpBRegIndex if !OpBisConst"
