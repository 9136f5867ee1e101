"""`bhemu run` and `bhemu debug` on tiles of a chip."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.chip.noc_programs import ATOMIC, INCREMENT, WRITE, at, request
from tests.cli.cli_programs import Invoke
from tests.loader.boot_programs import write_elf
from tests.loader.elf_files import Name

SOURCE, TARGET, FLAG, RESULT = 0x40000, 0x41000, 0x42000, 0x43000
SENDER = (
    request(ctrl=WRITE, target=SOURCE, target_hi=at(1, 2), back=TARGET, back_hi=at(2, 2), length=16)
    + "\n"
    + request(ctrl=ATOMIC, target=FLAG, target_hi=at(2, 2), back=0x44000, back_hi=at(1, 2), length=INCREMENT, data=1)
    + "\nend: j end"
)
"""Tile 1-2 writes 16 bytes to tile 2-2, then adds 1 to its flag."""
RECEIVER = f"""
    li a1, {FLAG:#x}
wait: lw a3, 0(a1)
    beqz a3, wait
    li a2, {TARGET:#x}
    lw a4, 0(a2)
    li a5, {RESULT:#x}
    sw a4, 0(a5)
    ebreak
"""


@pytest.fixture
def sender(tmp_path: Path) -> Path:
    return write_elf(tmp_path / "sender.elf", SENDER)


@pytest.fixture
def receiver(tmp_path: Path) -> Path:
    return write_elf(tmp_path / "receiver.elf", RECEIVER, names=(Name("result", RESULT, 4, kind=1),))


@pytest.fixture
def word(tmp_path: Path) -> Path:
    np.save(tmp_path / "word.npy", np.array([0x1234, 0, 0, 0], np.uint32))
    return tmp_path / "word.npy"


def test_programs_of_two_tiles_exchange_data(bhemu: Invoke, sender: Path, receiver: Path, word: Path) -> None:
    out = word.with_name("out.npy")
    result = bhemu(
        "run", f"1,2/B={sender}", f"2,2/{receiver}", "--write", f"1,2/{SOURCE:#x}={word}:u32",
        "--read", f"2,2/result:1:u32={out}",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert np.load(out).tolist() == [0x1234]
    assert "2-2   B     " in result.stdout
    assert "halted by ebreak" in result.stdout


def test_programs_of_two_tiles_take_estimated_cycles_on_a_timed_chip(
    bhemu: Invoke, sender: Path, receiver: Path, word: Path
) -> None:
    out = word.with_name("out.npy")
    arguments = (
        "run", f"1,2/B={sender}", f"2,2/{receiver}", "--write", f"1,2/{SOURCE:#x}={word}:u32",
        "--read", f"2,2/result:1:u32={out}",
    )  # fmt: skip
    plain, timed = (json.loads(bhemu(*arguments, *more, "--json").stdout) for more in ((), ("--timed",)))
    assert np.load(out).tolist() == [0x1234]
    assert "timed" not in plain
    assert (timed["timed"]["requests"], timed["timed"]["at_once"]) == (2, 0)
    assert sorted(timed["timed"]["tiles"]) == ["1-2", "2-2"]
    assert 0 <= timed["timed"]["guessed_share"] < 0.05
    assert timed["tiles"]["2-2"]["clocks"] > plain["tiles"]["2-2"]["clocks"]
    assert "clocks are estimates of cycles of silicon" in bhemu(*arguments, "--timed").stdout


def test_tiles_that_did_the_same_share_a_line_and_json_has_each(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", "ebreak")
    assert "12 tiles" in bhemu("run", path, "--tile", "1,2-4,4").stdout
    report = json.loads(bhemu("run", path, "--tile", "1,2", "--tile", "3,4", "--board", "p100", "--json").stdout)
    assert set(report["tiles"]) == {"1-2", "3-4"}
    assert report["tiles"]["3-4"]["cores"][0]["state"] == "halted"
    assert report["ended"] == "done"
    assert report["retired"] == 2


def test_dram_is_written_and_read_by_its_bank(bhemu: Invoke, tmp_path: Path, word: Path) -> None:
    path, out = write_elf(tmp_path / "kernel.elf", "ebreak"), tmp_path / "out.npy"
    dram = f"dram3/0x1000={word}:u32"
    assert bhemu("run", path, "--tile", "1,2", "--write", dram, "--read", f"dram3/0x1000:4:u32={out}").exit_code == 0
    assert np.load(out).tolist() == [0x1234, 0, 0, 0]


def test_word_of_a_tile_ends_the_run(bhemu: Invoke, sender: Path, receiver: Path, word: Path) -> None:
    result = bhemu(
        "run", f"1,2/{sender}", f"2,2/{receiver}", "--write", f"1,2/{SOURCE:#x}={word}:u32",
        "--until-word", f"2,2/{TARGET:#x}=0x1234",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "the word has its value" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--tile", "8,2"], "8-2 is not a Tensix tile"),
        (["--tile", "1"], "does not name tiles"),
        (["--tile", "8,2-9,3"], "has no Tensix tile"),
        (["--board", "p150"], "does not say on which tile"),
        (["--tile", "1,2", "--board", "n150"], "is not known"),
        (["--tile", "1,2", "--until", "main"], "--until is for a run of one tile"),
        (["--tile", "1,2", "--dump", "x.npz"], "--dump is for a run of one tile"),
        (["--tile", "1,2", "--profile"], "--profile is for a run of one tile"),
        (["--tile", "1,2-2,2", "--read", "0x100:4=x.bin"], "does not say of which tile"),
        (["--tile", "1,2", "--read", "dram8/0x100:4=x.bin"], "no DRAM bank 8"),
        (["--tile", "1,2", "--read", "3,99/0x100:4=x.bin"], "is not a Tensix tile"),
        (["--tile", "1,2", "--set", "M=1"], "--set is for Python programs"),
    ],
)
def test_wrong_use_is_refused(bhemu: Invoke, tmp_path: Path, arguments: list[str], text: str) -> None:
    result = bhemu("run", write_elf(tmp_path / "kernel.elf", "ebreak"), *arguments)
    assert result.exit_code in (1, 2)
    assert text in result.stderr


def test_two_programs_for_one_core_of_a_tile_are_refused(bhemu: Invoke, tmp_path: Path) -> None:
    path = write_elf(tmp_path / "kernel.elf", "ebreak")
    result = bhemu("run", f"1,2/B={path}", f"B={path}", "--tile", "1,2")
    assert result.exit_code == 2
    assert "core B of tile 1-2 has two programs" in result.stderr


def test_debugger_stops_in_the_tile_with_the_breakpoint_and_chooses_it(
    bhemu: Invoke, sender: Path, receiver: Path
) -> None:
    load = 0x8 + 4 * 4  # behind the loop: the first instruction after the flag is set
    result = bhemu(
        "debug", f"1,2/{sender}", f"2,2/{receiver}", "--batch", "-c", "tile 2,2", "-c", f"break *{load:#x}",
        "-c", "tile 1,2", "-c", "continue", "-c", "stepi", "-c", "tile", "-c", "tile 3,3",
    )  # fmt: skip
    assert "tile 2,2: breakpoint 1" in result.stdout
    assert "=> 2,2 core B at" in result.stdout
    assert result.exit_code == 1
    assert "tile 3,3 is not debugged" in result.stderr
