"""Faults planted into kernels are found, each by its kind and with both places; the kernels without them are silent."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import bhemu
from bhemu.analysis.found import FoundHazard
from bhemu.api.checked import CheckedRecording
from bhemu.cc import compile_kernel
from bhemu.errors import ConfigurationError
from bhemu.recording.circular_buffers import CircularBuffer

FOLDER = Path(__file__).parent / "planted"
FAULTS: dict[str, dict[str, list[str]]] = tomllib.loads((FOLDER / "faults.toml").read_text())
CORES = {"copy": ("B", "NC"), "lock": ("B", "NC"), "sum": ("B", "NC", "T0", "T1")}
TILE = (5, 5)
GO = 0x2F000
RING = CircularBuffer(3, 0x30000, 256, 4)
CLOCKS = 20_000


def enum(kernel: str) -> list[str]:
    """The faults that a kernel can have, in the order of their numbers."""
    found = re.search(r"enum \{\s*(NONE.*?)\};", (FOLDER / f"{kernel}.c").read_text(), re.DOTALL)
    assert found is not None
    return re.findall(r"\w+", found[1])


def start(chip: bhemu.Chip, folder: Path, kernel: str, fault: str, **options: Any) -> CheckedRecording:
    """Start the kernels with a fault on `TILE`, which is recorded."""
    number = enum(kernel).index(fault)
    files = {
        core: compile_kernel(
            [FOLDER / f"{kernel}.c"], folder / f"{core}.elf", core=core, options=["-Werror", f"-DFAULT={number}"]
        ).path
        for core in CORES[kernel]
    }
    for tile in chip.tensix:
        tile.programs.hold()
    chip.load(files, tiles=TILE)
    chip[TILE].write_word(GO, 0)
    recording = chip.record(tiles=TILE, buffers=[RING], **options)
    chip.start(*files, tiles=TILE)
    return recording


def run(chip: bhemu.Chip, folder: Path, kernel: str, fault: str, **options: Any) -> list[FoundHazard]:
    """Hazards of a kernel with a fault; one that does not end, since a fault makes it wait forever, is cut off."""
    recording = start(chip, folder, kernel, fault, **options)
    chip.clock(CLOCKS)
    found = recording.hazards()
    recording.stop()
    return found


@pytest.mark.parametrize("kernel", CORES)
def test_a_kernel_without_a_fault_has_no_hazard(chip: bhemu.Chip, tmp_path: Path, kernel: str) -> None:
    assert run(chip, tmp_path, kernel, "NONE") == []


@pytest.mark.parametrize(("kernel", "fault"), [(kernel, fault) for kernel, some in FAULTS.items() for fault in some])
def test_a_planted_fault_is_found(chip: bhemu.Chip, tmp_path: Path, kernel: str, fault: str) -> None:
    kind, message, missing = FAULTS[kernel][fault]
    found = run(chip, tmp_path, kernel, fault, check=kind)
    assert {one.hazard.kind for one in found} == {kind}
    assert any(message in one.hazard.message and missing in one.hazard.missing for one in found)
    assert all(end.place and end.function for one in found for end in one.ends)


def test_each_fault_of_a_kernel_is_in_the_table() -> None:
    assert {kernel: {"NONE", *some} for kernel, some in FAULTS.items()} == {name: set(enum(name)) for name in FAULTS}


def test_kinds_are_chosen_separately(chip: bhemu.Chip, tmp_path: Path) -> None:
    both = run(chip, tmp_path, "copy", "NO_READ_BARRIER")
    assert {one.hazard.kind for one in both} >= {"noc", "cb"}
    assert run(chip, tmp_path, "copy", "NO_READ_BARRIER", check="order,l1") == []


def test_suppressions_leave_out_what_they_name(chip: bhemu.Chip, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('[[suppress]]\nkind = "cb"\nfunction = "main"\n\n[[suppress]]\nplace = "bhemu.h"\nkind = "noc"\n')
    assert run(chip, tmp_path, "copy", "NO_READ_BARRIER", suppressions=file) == []
    file.write_text('[[suppress]]\nkind = "cb"\nmessage = "pushes a page*"\n')
    assert {one.hazard.kind for one in run(chip, tmp_path, "copy", "NO_READ_BARRIER", suppressions=file)} == {"noc"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("suppress = 1", "'suppress' is not expected"),
        ("[[suppress]]\nkind = 'dma'", "kind 'dma' does not exist"),
        ("[[suppress]]\nline = '3'", "entry 1 has 'line'"),
        ("[[suppress]]\nreason = 'known'", "entry 1 fits every report"),
        ("[[suppress]", "known.toml: "),
    ],
)
def test_a_wrong_file_of_suppressions_is_refused(chip: bhemu.Chip, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "known.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        chip.record(tiles=TILE, suppressions=file)


def test_a_kind_that_does_not_exist_is_refused(chip: bhemu.Chip) -> None:
    with pytest.raises(ConfigurationError, match="'dma' is not a kind of check"):
        chip.record(tiles=TILE, check="noc,dma")
