"""`bhemu run`: arrays in, arrays and a report out; all or nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.cli_programs import COPY, Invoke, WriteProgram
from tests.processes import HANG, interruptible, started, wait_until


def test_output_file_holds_the_values_as_float32(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    values = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) % 128
    np.save(tmp_path / "a.npy", values)
    result = bhemu(
        "run", write_program(source=COPY), "--in", f"a={tmp_path / 'a.npy'}", "--out", f"c={tmp_path / 'c.npy'}"
    )
    assert result.exit_code == 0, result.stderr
    got = np.load(tmp_path / "c.npy", allow_pickle=False)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, values)


def test_integer_output_keeps_its_dtype(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    values = np.arange(-512, 512, dtype=np.int32).reshape(32, 32)
    np.save(tmp_path / "a.npy", values)
    path = write_program(source=COPY.replace("bf16", "int32"))
    result = bhemu("run", path, "--in", f"a={tmp_path / 'a.npy'}", "--out", f"c={tmp_path / 'c.npy'}")
    assert result.exit_code == 0, result.stderr
    got = np.load(tmp_path / "c.npy")
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, values)


def test_report_names_units_tiles_difference_and_generated_inputs(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY), "--seed", 7, "--set", "M=64")
    assert result.exit_code == 0, result.stderr
    report = result.stdout
    assert "copy in L1" in report
    assert "generated, seed 7" in report
    assert "64 x 64" in report
    assert "SEMINIT 1, SEMPOST 1" in report
    assert "SETDMAREG 1" in report
    assert "4 tiles" in report
    assert "largest difference of c from the float64 reference: 0 " in report


def test_json_report_counts_instructions_by_unit(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY), "--json", "--set", "scale=2")
    report = json.loads(result.stdout)
    assert report["instructions"] == {"scalar": {"SETDMAREG": 1}, "sync": {"SEMINIT": 1, "SEMPOST": 1}}
    assert report["tiles"] == 2
    assert report["dimensions"] == {"M": 32, "N": 64}
    assert report["parameters"] == {"scale": 2}
    assert report["inputs"] == [{"name": "a", "shape": [32, 64], "format": "BF16", "file": None, "seed": 0}]
    assert report["outputs"][0]["difference"] == {"absolute": 0.0, "relative": 0.0}


def test_nan_in_the_report_is_valid_json(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY.replace("return a", "return a * float('nan')")), "--json")

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    report = json.loads(result.stdout, parse_constant=refuse)
    assert report["outputs"][0]["difference"]["absolute"] == "nan"


def test_same_seed_gives_the_same_input_and_another_seed_another(
    bhemu: Invoke, write_program: WriteProgram, tmp_path: Path
) -> None:
    path = write_program(source=COPY)
    for name, seed in (("x", 3), ("y", 3), ("z", 4)):
        assert bhemu("run", path, "--seed", seed, "--out", f"c={tmp_path / name}").exit_code == 0
    x, y, z = ((tmp_path / name).read_bytes() for name in "xyz")
    assert x == y != z


def test_quiet_prints_nothing(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY), "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_no_temporary_file_is_left(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    bhemu("run", write_program(source=COPY), "--out", f"c={folder / 'c.npy'}")
    assert [path.name for path in folder.iterdir()] == ["c.npy"]


def test_a_failed_run_leaves_an_older_output_as_it_was(
    bhemu: Invoke, write_program: WriteProgram, tmp_path: Path
) -> None:
    target = tmp_path / "c.npy"
    target.write_bytes(b"older")
    path = write_program(source=COPY.replace("core.tile_done()", "raise ValueError('broken')"))
    result = bhemu("run", path, "--out", f"c={target}")
    assert result.exit_code == 1
    assert target.read_bytes() == b"older"
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["c.npy", "program.py"]


def test_output_through_a_symbolic_link_reaches_its_target(
    bhemu: Invoke, write_program: WriteProgram, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.npy").symlink_to(tmp_path / "real" / "c.npy")
    assert bhemu("run", write_program(source=COPY), "--out", f"c={tmp_path / 'link.npy'}").exit_code == 0
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real" / "c.npy").shape == (32, 64)


def test_first_run_says_that_it_compiles(write_program: WriteProgram, tmp_path: Path) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("nothing is compiled")
    environment = {**os.environ, "BHEMU_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "bhemu.cli.main", "run", str(write_program(source=COPY))]
    first = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    second = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "compiling (first run only)" in first.stderr
    assert "first run only" not in second.stderr + second.stdout


def test_control_c_ends_with_one_line_and_status_130(write_program: WriteProgram, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    path = write_program(
        math=f"""
        open({str(marker)!r}, "w").close()
        while True:
            core.semaphore(1)
            core.SEMPOST(sem_sel=1)
        """
    )
    command = [sys.executable, "-m", "bhemu.cli.main", "run", str(path)]
    with interruptible(), started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: marker.exists() or process.poll() is not None, "the program's first instruction")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=HANG)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1] == "bhemu: interrupted"
    assert "Traceback" not in stderr
