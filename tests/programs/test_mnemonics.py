"""What a program will execute is found in its text."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

import bhemu
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.programs.mnemonics import mnemonics_of
from bhemu.programs.thread_core import ISSUED_BY

EXAMPLES = Path(__file__).parents[2] / "examples"


def post(core: bhemu.Core) -> None:
    core.SEMPOST(sem_sel=2)


class Base:
    def __init__(self, core: bhemu.Core) -> None:
        self.core = core

    def clear(self) -> None:
        self.core.ZEROACC(clear_mode=3)


class Helper(Base):
    @property
    def waits(self) -> None:
        return self.core.SEMWAIT(sem_sel=2)

    @staticmethod
    def count(core: bhemu.Core) -> None:
        core.INCRWC(rwc_d=1)


class Computing:
    """Computes its attributes, and refuses this one."""

    clear = Base.clear

    def __getattr__(self, name: str) -> None:
        raise bhemu.BhemuError(name)


computing = Computing()
post_later = functools.partial(post)


def mentioned(math) -> set[str]:  # type: ignore[no-untyped-def]
    program = bhemu.Program("test")
    program.math(math)
    return mnemonics_of(program)


def test_functions_that_a_thread_calls_are_looked_at() -> None:
    def math(core: bhemu.Core) -> None:
        [core.ZEROACC(clear_mode=3) for _ in range(2)]
        post(core)

    assert mentioned(math) == {"ZEROACC", "SEMPOST"}


def test_methods_of_classes_and_of_their_bases_are_looked_at() -> None:
    def math(core: bhemu.Core) -> None:
        Helper(core).clear()

    assert mentioned(math) == {"ZEROACC", "SEMWAIT", "INCRWC"}


def test_objects_are_looked_at_without_asking_them() -> None:
    def math(core: bhemu.Core) -> None:
        computing.clear()
        print(computing.tiles)
        post_later(core)

    assert mentioned(math) == {"ZEROACC", "SEMPOST"}


def test_functions_of_an_enclosing_function_are_looked_at() -> None:
    def increment(core: bhemu.Core) -> None:
        core.INCRWC(rwc_d=1)

    def math(core: bhemu.Core) -> None:
        increment(core)
        later(core)

    found = mentioned(math)  # `later` has no value yet
    later = post
    assert found == {"INCRWC"}
    assert mentioned(math) == {"INCRWC", "SEMPOST"}


def test_what_attributes_of_the_core_issue_is_known() -> None:
    def math(core: bhemu.Core) -> None:
        core.config["ALU_ACC_CTRL_Fp32_enabled"] = 1
        core.replay(0, 4)

    assert mentioned(math) == {*ISSUED_BY["config"], "REPLAY"}


@pytest.mark.parametrize("example", ["add1", "datacopy", "eltwise", "matmul"])
def test_all_that_an_example_executes_is_found(example: str) -> None:
    program = bhemu.load_program(EXAMPLES / f"{example}.py")
    found = mnemonics_of(program)
    issued = bhemu.run_program(program).tile.record.issued.sum(axis=0)
    assert {name for name, row in INSTRUCTIONS.items() if issued[row.opcode]} <= found
