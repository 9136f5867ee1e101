"""The public conformance vectors, and that the runner would see a difference if there were one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.conformance.run import VECTORS, as_json, conformance, describe
from bhemu.conformance.vector_file import INFORMATIVE, VectorFile
from bhemu.errors import FormatError
from bhemu.isa.instructions import encode

FAMILIES = ("adc_rwc", "fpu", "frontend", "pack", "programs", "scalar", "sfpu", "unpack")

Arrays = dict[str, Any]


def test_every_family_is_there() -> None:
    assert sorted(path.stem for path in VECTORS.glob("*.npz")) == list(FAMILIES)


@pytest.mark.plain
@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_of_the_family_passes(family: str) -> None:
    [report] = conformance([VECTORS / f"{family}.npz"])
    assert report.family == family
    assert report.total.passed + report.total.failed + report.total.refused == len(VectorFile(report.path))
    assert (report.total.failed, report.total.refused) == (0, 0), "\n".join(describe(d) for d in report.differences[:3])


def test_a_file_leaves_nothing_in_l1_for_the_next_one() -> None:
    """The window of `programs` is larger than that of `scalar`."""
    paths = [VECTORS / f"{family}.npz" for family in ("programs", "scalar")]
    assert VectorFile(paths[0]).l1_size > VectorFile(paths[1]).l1_size
    assert [report.clean for report in conformance(paths, limit=3)] == [True, True]


# --- the runner can fail -------------------------------------------------------------------------


@pytest.fixture
def rewritten(tmp_path: Path) -> Callable[..., Path]:
    """`rewritten(family, change)`: a copy of a public file whose arrays `change` has edited."""

    def rewrite(family: str, change: Callable[[Arrays], None]) -> Path:
        with np.load(VECTORS / f"{family}.npz", allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
        change(arrays)
        path = tmp_path / "edited.npz"
        np.savez(path, **arrays)
        return path

    return rewrite


def plant(name: str) -> Callable[[Arrays], None]:
    """Change the last expected value of array `name`."""

    def change(arrays: Arrays) -> None:
        arrays[f"exp_{name}_val"] = arrays[f"exp_{name}_val"].copy()
        arrays[f"exp_{name}_val"][-1] ^= 1

    return change


@pytest.mark.parametrize(("family", "name"), [("frontend", "sync"), ("adc_rwc", "adc"), ("adc_rwc", "rwc")])
def test_one_wrong_expected_bit_is_found_and_described(rewritten: Callable[..., Path], family: str, name: str) -> None:
    path = rewritten(family, plant(name))
    with np.load(path, allow_pickle=False) as content:
        pointers = content[f"exp_{name}_ptr"]
    planted = int(np.flatnonzero(np.diff(pointers))[-1])
    [report] = conformance([path])
    assert [d.case.index for d in report.differences] == [planted]
    [difference] = report.differences
    assert (difference.total, difference.refusal) == (1, None)
    [(array, _index, expected, got)] = difference.cells
    assert (array, expected) == (name, got ^ 1)
    assert not report.clean
    assert report.total.failed == 1
    for label in difference.case.labels:
        assert report.labels[label].failed == 1
    text = describe(difference)
    assert difference.case.name in text
    assert f"expected {expected:#x}" in text
    assert f"got {got:#x}" in text
    [plain] = as_json([report])
    assert json.loads(json.dumps(plain))["differences"][0]["case"] == difference.case.name


def test_expected_change_that_does_not_happen_is_found(rewritten: Callable[..., Path]) -> None:
    def forget_program(arrays: Arrays) -> None:
        arrays["prog_word"] = np.full_like(arrays["prog_word"], encode("NOP"))

    [report] = conformance([rewritten("frontend", forget_program)], label="SEMPOST")
    assert report.total.passed == 0
    assert report.total.failed == len(report.differences) > 0


def test_refused_instruction_counts_as_refused(rewritten: Callable[..., Path]) -> None:
    def undefined_opcode(arrays: Arrays) -> None:
        arrays["prog_word"] = np.full_like(arrays["prog_word"], 0xFF000000)

    [report] = conformance([rewritten("frontend", undefined_opcode)], limit=5)
    assert (report.total.passed, report.total.failed, report.total.refused) == (0, 0, 5)
    assert "UndefinedBehavior" in describe(report.differences[0])


def test_word_that_waits_for_ever_fails(rewritten: Callable[..., Path]) -> None:
    def wait(arrays: Arrays) -> None:
        words = np.full_like(arrays["prog_word"], encode("NOP"))
        words[arrays["prog_ptr"][:-1]] = encode("SEMWAIT", stall_res=0x1FF, sem_sel=0xFF, wait_sem_cond=1)
        arrays["prog_word"] = words
        arrays["prog_thread"] = np.zeros_like(arrays["prog_thread"])

    [report] = conformance([rewritten("frontend", wait)], label="SEMPOST", limit=20)
    assert report.total.failed == 20
    assert any("NOP of thread 0 waits forever" in d.note for d in report.differences)


# --- the reader ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    content = (VECTORS / "frontend.npz").read_bytes()
    path = tmp_path / "cut.npz"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(FormatError, match=r"cut\.npz: cannot read conformance vectors"):
        VectorFile(path)


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    content = bytearray((VECTORS / "frontend.npz").read_bytes())
    content[len(content) // 3] ^= 0xFF
    path = tmp_path / "damaged.npz"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"damaged\.npz"):
        VectorFile(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nothing\.npz"):
        conformance([tmp_path / "nothing.npz"])


def test_folder_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no \.npz"):
        conformance([tmp_path])


def test_another_version_is_refused(rewritten: Callable[..., Path]) -> None:
    def version_2(arrays: Arrays) -> None:
        arrays["meta"] = np.array(json.dumps({**json.loads(str(arrays["meta"])), "version": 2}))

    with pytest.raises(FormatError, match="version 2"):
        VectorFile(rewritten("frontend", version_2))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("prog_ptr", lambda a: a[:-1]),
        ("prog_word", lambda a: a[:-1]),
        ("prog_thread", lambda a: np.full_like(a, 3)),
        ("label_id", lambda a: a[:-1]),
        ("state", lambda a: np.full_like(a, 60000)),
        ("exp_sync_val", lambda a: a[:-1]),
        ("exp_sync_start", lambda a: np.full_like(a, 21)),
        ("name", lambda a: a[:-1]),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(
    rewritten: Callable[..., Path], key: str, value: Callable[[Any], Any]
) -> None:
    def change(arrays: Arrays) -> None:
        arrays[key] = value(arrays[key])

    with pytest.raises(FormatError, match="does not fit"):
        VectorFile(rewritten("frontend", change))


def test_missing_array_is_refused(rewritten: Callable[..., Path]) -> None:
    with pytest.raises(FormatError, match="prog_word"):
        VectorFile(rewritten("frontend", lambda arrays: arrays.pop("prog_word")))


@pytest.mark.parametrize("family", FAMILIES)
def test_expected_state_is_the_initial_state_with_every_listed_cell_changed(family: str) -> None:
    file = VectorFile(VECTORS / f"{family}.npz")
    with np.load(file.path, allow_pickle=False) as content:
        arrays = {key: content[key] for key in content.files}
    changed = 0
    for index in range(0, len(file), 50):
        initial = file.initial(index)
        expected = file.expected(index, initial)
        for name, before in initial.items():
            pointers = arrays.get(f"exp_{name}_ptr")
            listed = 0
            if pointers is not None:
                listed = int(arrays[f"exp_{name}_len"][pointers[index] : pointers[index + 1]].astype(np.int64).sum())
            different = int(np.count_nonzero(before != expected[name]))
            assert different == listed or name in INFORMATIVE
            changed += different
    assert changed > 0


# --- damaged files -------------------------------------------------------------------------------


def damaged(whole: bytes, choose: random.Random) -> bytes:
    """The bytes of a file with one to four of them changed, or cut."""
    changed = bytearray(whole)
    if choose.random() < 0.2:
        del changed[choose.randrange(len(changed)) :]
    for _ in range(choose.randint(1, 4)):
        if changed:
            changed[choose.randrange(len(changed))] = choose.randrange(256)
    return bytes(changed)


def test_a_damaged_vector_file_is_refused_or_reads_to_the_end(tmp_path: Path) -> None:
    whole, choose = (VECTORS / "frontend.npz").read_bytes(), random.Random(7)
    file, refused = tmp_path / "damaged.npz", 0
    for _ in range(300):
        file.write_bytes(damaged(whole, choose))
        try:
            read = VectorFile(file)
            for case in read:
                read.expected(case.index, read.initial(case.index))
        except FormatError:
            refused += 1
    assert refused > 250


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prog_thread", np.array([-1], np.int64)),
        ("prog_word", np.array([1 << 40], np.int64)),
        ("state", np.array([0.5])),
        ("label_ptr", np.array([[0, 1]])),
        ("exp_gpr_start", np.array([-5], np.int64)),
        ("name", np.array([b"\xff\xfe"])),
        ("meta", np.array('{"family": "x", "cases": 1, "l1_base": -16, "l1_size": 1}')),
        ("meta", np.array("[1]")),
        ("meta", np.array("{}")),
    ],
)
def test_arrays_that_make_no_sense_are_refused(rewritten: Callable[..., Path], name: str, value: Any) -> None:
    def change(arrays: Arrays) -> None:
        shape = arrays[name].shape
        arrays[name] = np.resize(value, shape) if value.ndim == 1 else value

    with pytest.raises(FormatError, match="cannot read conformance vectors"):
        VectorFile(rewritten("frontend", change))
