"""The public riscv-tests (github.com/riscv-software-src/riscv-tests), as far as the cores have the instructions.

BHEMU_RISCV_TESTS names an unpacked checkout; they are built with riscv64-unknown-elf-gcc and the environment in env/.
Left out: lrsc (no LR/SC, T5), and ma_data, whose misaligned accesses must be refused (T27).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bhemu.errors import NonContractualBehavior, UndefinedBehavior
from tests.riscv.rv_machine import START, machine

CHECKOUT = os.environ.get("BHEMU_RISCV_TESTS")
COMPILER = "riscv64-unknown-elf-gcc"
ENVIRONMENT = Path(__file__).parent / "env"
SUITES = {
    "rv32ui": None,
    "rv32um": None,
    "rv32ua": None,
    "rv32uzba": None,
    "rv32uzbb": None,
    "rv32uzbkb": {"pack", "brev8"},
}
"""Directories below isa/, and the tests of those that the cores have in part."""
REFUSED = {("rv32ua", "lrsc"), ("rv32ui", "ma_data")}
CLOCKS = 50_000

pytestmark = [
    pytest.mark.plain,
    pytest.mark.skipif(CHECKOUT is None, reason="BHEMU_RISCV_TESTS does not name a checkout of riscv-tests"),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed"),
]


def _tests() -> list[tuple[str, str]]:
    if CHECKOUT is None:
        return [("rv32ui", "none")]
    found = []
    for suite, names in SUITES.items():
        for source in sorted((Path(CHECKOUT) / "isa" / suite).glob("*.S")):
            if names is None or source.stem in names:
                found.append((suite, source.stem))
    return found


def build(directory: Path, suite: str, name: str, core: str) -> bytes:
    """The bytes of a test, linked to where the core starts."""
    isa = Path(str(CHECKOUT)) / "isa"
    elf, image = directory / "test.elf", directory / "test.bin"
    command = [COMPILER, "-march=rv32ima_zicsr_zifencei_zba_zbb_zbkb", "-mabi=ilp32", "-nostdlib", "-nostartfiles"]
    command += ["-static", "-I", str(ENVIRONMENT), "-I", str(isa / "macros" / "scalar")]
    command += ["-T", str(ENVIRONMENT / "core.ld"), f"-Wl,--defsym=START={START[core]}", "-Wl,--no-warn-rwx-segments"]
    subprocess.run([*command, "-o", str(elf), str(isa / suite / f"{name}.S")], check=True)
    subprocess.run([COMPILER.replace("gcc", "objcopy"), "-O", "binary", str(elf), str(image)], check=True)
    return image.read_bytes()


@pytest.mark.parametrize("core", ["B", "T1"])
@pytest.mark.parametrize(("suite", "name"), [test for test in _tests() if test not in REFUSED])
def test_passes(tmp_path: Path, suite: str, name: str, core: str) -> None:
    tile = machine({core: build(tmp_path, suite, name, core)}, CLOCKS)
    view = tile.cores[core]
    assert view.halt_reason == "ebreak", view
    assert int(view.x[10]) == 0, f"case {int(view.x[10])} failed"
    assert int(view.x[3]) >= 2 or name == "simple", "no case was executed"  # simple has none


def test_load_reserved_and_misaligned_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UndefinedBehavior, match="load-reserved"):
        machine(build(tmp_path, "rv32ua", "lrsc", "B"), CLOCKS)
    with pytest.raises(NonContractualBehavior, match="misaligned"):
        machine(build(tmp_path, "rv32ui", "ma_data", "B"), CLOCKS)
