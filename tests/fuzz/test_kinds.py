"""Kinds of fuzzing: each finds a fault that is planted, and nothing without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.conformance import machine_state
from bhemu.errors import FormatError
from bhemu.fuzz import entries, lockstep, parsers, replay, tiles
from bhemu.fuzz.batch import Task
from bhemu.fuzz.machine import FuzzTile, Program
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.isa.instructions import encode
from bhemu.machine.compiler import JIT


def test_every_valid_file_of_the_parsers_is_read() -> None:
    assert all(parsers.seeds(name) for name in parsers.PARSERS)


@pytest.mark.parametrize("name", parsers.PARSERS)
def test_a_valid_file_is_read_without_a_refusal(name: str, tmp_path: Path) -> None:
    path = tmp_path / "input"
    for content in parsers.seeds(name):
        path.write_bytes(content)
        parsers.PARSERS[name].read(path)


def test_damaged_files_give_errors_of_ours_alone(tmp_path: Path) -> None:
    result = parsers.run(Task("parsers", 1, 3000, keep=tmp_path))
    assert result.findings == []
    assert result.done == 3000


def test_a_parser_that_fails_is_found_and_its_input_is_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: Path) -> None:
        content = path.read_bytes()
        if b"x" not in content:
            raise FormatError("no x", remedy="have one")
        if content.count(b"y") > 2:
            {}["planted"]

    monkeypatch.setattr(parsers, "PARSERS", {"planted": parsers.Parser(read, lambda: [b"abcxdefyyghi" * 3])})
    parsers.seeds.cache_clear()
    result = parsers.run(Task("parsers", 1, 30, keep=tmp_path))
    parsers.seeds.cache_clear()
    (finding,) = result.findings
    assert "KeyError" in finding.title
    assert sorted(Path(finding.file).read_bytes()) == sorted(b"xyyy")
    assert "KeyError" in replay.replayed(Path(finding.file), None)[0]


def test_a_parser_that_hangs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        while True:
            pass

    monkeypatch.setattr(parsers, "SECONDS", 0.01)
    monkeypatch.setattr(parsers, "PARSERS", {"hangs": parsers.Parser(read, lambda: [b"a"])})
    parsers.seeds.cache_clear()
    result = parsers.run(Task("parsers", 1, 1, keep=tmp_path))
    parsers.seeds.cache_clear()
    assert "_TooLongError" in result.findings[0].title


def test_cores_and_unicorn_agree() -> None:
    pytest.importorskip("unicorn", reason="the package unicorn is not installed")
    result = lockstep.run(Task("riscv", 1, 20_000))
    assert result.findings == []
    assert result.done >= 20_000


def test_a_core_that_is_wrong_is_found_at_its_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("unicorn", reason="the package unicorn is not installed")
    whole = lockstep.Core.state

    def state(core: lockstep.Core) -> Any:
        x, memory = whole(core)
        return [
            value ^ (number == 3 and int(core.tile.record.core_retired[0]) > 100) for number, value in enumerate(x)
        ], memory

    monkeypatch.setattr(lockstep.Core, "state", state)
    result = lockstep.run(Task("riscv", 1, 1))
    assert "; x3 " in result.findings[0].text


@pytest.mark.skipif(not JIT, reason="compares compiled code with plain code")
def test_all_ways_to_execute_a_program_agree(tmp_path: Path) -> None:
    result = entries.run(Task("tensix", 2, 400, keep=tmp_path))
    assert result.findings == []
    assert all(result.counts[way] for way in (*entries.WAYS, "plain"))


@pytest.mark.skipif(not JIT, reason="compares compiled code with plain code")
def test_a_way_that_is_wrong_is_found_shrunk_kept_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(program: Program) -> Any:
        state = {name: values.copy() for name, values in entries.one_word(program).items()}
        if (program.items >> 24 & 0xFF == INSTRUCTIONS["SFPSTORE"].opcode).any():
            state["gpr"][5] ^= 1
        return state

    monkeypatch.setattr(entries, "WAYS", {"one word": faulty})
    result = entries.run(Task("tensix", 2, 1, keep=tmp_path))
    (finding,) = result.findings
    assert finding.title == "one word: gpr"
    assert finding.text.count("SFPSTORE") == 1
    assert "SFPLOADI" not in finding.text
    path = Path(finding.file)
    assert replay.replayed(path, None) == []
    store = machine_state.store

    def wrong(*given: Any) -> Any:
        return store(*given) | {"gpr": np.ones(192, np.uint32)}

    monkeypatch.setattr(machine_state, "store", wrong)
    assert "gpr" in replay.replayed(path, None)[0]


def test_clocks_of_a_tile_can_be_cut_anywhere(tmp_path: Path) -> None:
    if not JIT:
        pytest.skip("takes minutes as plain Python")
    result = tiles.run(Task("tile", 3, 1, keep=tmp_path))
    assert result.findings == []


def test_a_program_that_waits_is_not_whole() -> None:
    ran = FuzzTile().run(Program.of([(0, encode("NOP")), (0, encode("STALLWAIT", 64, 0x80)), (0, encode("NOP"))]))
    assert (ran.executed, ran.waits, ran.is_whole) == (1, True, False)
