"""Running conformance vectors and saying what differs.

A case passes when the whole architectural state after its program equals the expected one, cell by cell; it is
refused when the machine refuses an instruction, and fails otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.conformance import machine_state
from bhemu.conformance.vector_file import INFORMATIVE, Case, State, VectorFile
from bhemu.errors import BhemuError
from bhemu.isa.assembler import disassemble
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor

VECTORS: Final = Path(__file__).parent / "vectors"
"""The public vectors that come with bhemu."""

SHOWN_CELLS: Final = 8


@dataclass
class Tally:
    """Counts of one label."""

    passed: int = 0
    failed: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Difference:
    """A case that did not pass.

    Attributes:
        family, case: what was run.
        refusal: the refusal, or None when cells differ.
        cells: (array, flat index, expected, got), the first few of each array.
        total: number of differing cells.
        note: what else is wrong (a word that waits, a write outside the L1 window).
    """

    family: str
    case: Case
    refusal: BhemuError | None
    cells: tuple[tuple[str, int, int, int], ...] = ()
    total: int = 0
    note: str = ""


@dataclass
class Report:
    """Result of one vector file."""

    path: Path
    family: str
    total: Tally = field(default_factory=Tally)
    labels: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    differences: list[Difference] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Nothing failed and nothing was refused."""
        return not self.total.failed and not self.total.refused


@checked
class Runner:
    """Executes cases on one tile that is used again and again."""

    def __init__(self) -> None:
        self._tiles = new_tiles(1)
        self._coprocessor = Coprocessor(self._tiles)

    def run(self, file: VectorFile, case: Case) -> Difference | None:
        """Execute one case; None when it passes."""
        initial = file.initial(case.index)
        machine_state.load(self._tiles, initial, file.l1_base)
        refusal, note = None, ""
        try:
            for thread, word in case.program:
                self._coprocessor.push(thread, word)
                if not self._coprocessor.drain(thread):
                    note = f"{disassemble(word)} of thread {thread} waits forever"
                    break
        except BhemuError as error:
            refusal = error
        if machine_state.wrote_outside(self._tiles, file.l1_base, file.l1_size):
            note = "L1 was written outside the window of the case"
            machine_state.clear_l1(self._tiles)
        if refusal is not None:
            return Difference(file.family, case, refusal)
        got = machine_state.store(self._tiles, file.l1_base, file.l1_size)
        cells, total = _compare(file.expected(case.index, initial), got)
        if total or note:
            return Difference(file.family, case, None, cells, total, note)
        return None


def _compare(expected: State, got: State) -> tuple[tuple[tuple[str, int, int, int], ...], int]:
    cells: list[tuple[str, int, int, int]] = []
    total = 0
    for name, want in expected.items():
        if name in INFORMATIVE:
            continue
        have = got[name]
        if have.dtype != want.dtype:
            have = have.astype(want.dtype)
        if np.array_equal(want, have):
            continue
        at = np.nonzero(want != have)[0]
        total += len(at)
        cells += [(name, int(i), int(want[i]), int(have[i])) for i in at[:SHOWN_CELLS]]
    return tuple(cells), total


@checked
def conformance(
    paths: Sequence[str | Path] = (),
    *,
    label: str | None = None,
    limit: int | None = None,
    step: int = 1,
    progress: Callable[[str, int, int], Any] | None = None,
) -> list[Report]:
    """Run vector files.

    Args:
        paths: files or folders of .npz files; none means the public vectors that come with bhemu.
        label: run only the cases with this label.
        limit: run at most this many cases of each file.
        step: run every so-many-th case, for a sample that covers the whole file.
        progress: called with (family, cases done, cases in all).

    Raises:
        FormatError: a path is not a vector file.
    """
    reports = []
    for path in _files(paths):
        file = VectorFile(path)
        report = Report(path, file.family)
        runner = Runner()  # files have different windows of L1, and what lies outside must be zero
        every = (file.case(index) for index in range(0, len(file), step))
        cases: Iterable[Case] = (case for case in every if label is None or label in case.labels)
        for done, case in enumerate(cases):
            if limit is not None and done >= limit:
                break
            _account(report, case, runner.run(file, case))
            if progress is not None:
                progress(file.family, done + 1, len(file))
        reports.append(report)
    return reports


def _files(paths: Sequence[str | Path]) -> list[Path]:
    found: list[Path] = []
    for path in map(Path, paths or [VECTORS]):
        found += sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not found:
        from bhemu.errors import FormatError

        raise FormatError(f"no .npz in {', '.join(map(str, paths))}", remedy="name vector files or a folder of them")
    return found


def _account(report: Report, case: Case, difference: Difference | None) -> None:
    kind = "passed" if difference is None else "failed" if difference.refusal is None else "refused"
    for tally in (report.total, *(report.labels[label] for label in case.labels)):
        setattr(tally, kind, getattr(tally, kind) + 1)
    if difference is not None:
        report.differences.append(difference)


# --- describing differences
# ---------------------------------------------------------------------------------------------

_COLUMNS: Final = {"dst": 16, "srca": 16, "srcb": 16, "lregs": 32, "gpr": 64, "cfg": 224, "tcfg": 68, "replay": 32}
_ADC_UNITS: Final = ("unpacker0", "unpacker1", "packer")
_ADC: Final = tuple(f"ch{c}_{d}{s}" for s in ("", "_cr") for c in (0, 1) for d in "xyzw")
_RWC: Final = ("SrcA", "SrcA_Cr", "SrcB", "SrcB_Cr", "Dst", "Dst_Cr", "Fidelity", "Bias")


def _place(name: str, index: int) -> str:
    """A flat index in the words of the array."""
    if name == "adc":
        thread, unit, counter = index // 48, index // 16 % 3, index % 16
        return f"adc[thread {thread}, {_ADC_UNITS[unit]}, {_ADC[counter]}]"
    if name == "rwc":
        return f"rwc[thread {index // 8}, {_RWC[index % 8]}]"
    columns = _COLUMNS.get(name)
    if columns is None:
        return f"{name}[{index}]"
    row, column = divmod(index, columns)
    if name in ("srca", "srcb"):
        return f"{name}[bank {row // 64}, row {row % 64}, column {column}]"
    return f"{name}[{row}, {column}]"


def _float32(bits: int) -> float:
    return float(np.array(bits & 0xFFFFFFFF, np.uint32).view(np.float32))


def number(name: str, bits: int) -> str:
    """The cell as the number that its most usual format gives it: Dst as BF16, Src as TF32, LRegs as FP32."""
    if name == "dst":
        value = (bits & 0x8000) << 16 | (bits & 0xFF) << 23 | (bits >> 8 & 0x7F) << 16
        return f"{_float32(value):.6g} as BF16"
    if name in ("srca", "srcb"):
        value = (bits >> 18 & 1) << 31 | (bits & 0xFF) << 23 | (bits >> 8 & 0x3FF) << 13
        return f"{_float32(value):.6g} as TF32"
    if name == "lregs":
        return f"{_float32(bits):.6g} as FP32"
    return str(bits)


@checked
def describe(difference: Difference) -> str:
    """Name, program and first differing cells of a case that did not pass, as text."""
    case = difference.case
    lines = [f"{difference.family}: case {case.index} {case.name}", f"  labels: {', '.join(case.labels)}"]
    lines += [f"  T{thread} {disassemble(word)}" for thread, word in case.program[:24]]
    if len(case.program) > 24:
        lines.append(f"  ... {len(case.program) - 24} more words")
    if difference.refusal is not None:
        lines.append(f"  refused, {difference.refusal.category}: {difference.refusal}")
    if difference.note:
        lines.append(f"  {difference.note}")
    if difference.total:
        lines.append(f"  {difference.total} cells differ:")
    for name, index, want, have in difference.cells:
        lines.append(
            f"    {_place(name, index)}: expected {want:#x} ({number(name, want)}), "
            f"got {have:#x} ({number(name, have)})"
        )
    return "\n".join(lines)


@checked
def as_json(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Reports as plain data for `--json`."""
    return [
        {
            "file": report.path.name,
            "family": report.family,
            **vars(report.total),
            "labels": {name: vars(tally) for name, tally in sorted(report.labels.items())},
            "differences": [
                {
                    "case": d.case.name,
                    "index": d.case.index,
                    "refusal": None if d.refusal is None else f"{d.refusal.category}: {d.refusal.message}",
                    "note": d.note,
                    "cells": [
                        {"array": name, "index": index, "expected": want, "got": have}
                        for name, index, want, have in d.cells
                    ],
                }
                for d in report.differences
            ],
        }
        for report in reports
    ]


def _main() -> None:
    import argparse

    parser = argparse.ArgumentParser(
        description="Run conformance vectors (for development; `bhemu conformance` for users)"
    )
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--label")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--show", type=int, default=3)
    options = parser.parse_args()
    for report in conformance(options.paths, label=options.label, limit=options.limit):
        for name, tally in sorted(report.labels.items()):
            if tally.failed or tally.refused:
                print(f"  {name}: {tally.passed} passed, {tally.failed} failed, {tally.refused} refused")
        print(
            f"{report.family}: {report.total.passed} passed, {report.total.failed} failed, "
            f"{report.total.refused} refused"
        )
        for difference in report.differences[: options.show]:
            print(describe(difference))


if __name__ == "__main__":
    _main()
