"""`bhemu run --timing`, `--check` and `--trace`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.cli_programs import COPY, Invoke, WriteProgram, line_of

FAULTY = COPY.replace("core.SETDMAREG(0x1234, 6)", "core.SETDMAREG(0x1234, 6)\n        core.WRCFG(3, 0, 12)  # early")


def test_check_reports_a_hazard_with_both_lines_and_fails(bhemu: Invoke, write_program: WriteProgram) -> None:
    path = write_program(source=FAULTY)
    result = bhemu("run", path, "--check")
    assert result.exit_code == 1
    assert "hazard: reads GPR 3" in result.stdout
    assert f"line {line_of(path, 'SETDMAREG')}," in result.stdout
    assert f"line {line_of(path, 'early')}," in result.stdout
    assert "missing: STALLWAIT(STALL_CFG, THCON)" in result.stdout
    assert "hazards: 1" in result.stdout


def test_check_of_a_sound_program_succeeds(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY), "--check")
    assert result.exit_code == 0, result.stderr
    assert "hazards: none" in result.stdout


def test_without_check_the_faulty_program_runs_as_before(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=FAULTY))
    assert result.exit_code == 0, result.stderr
    assert "hazard" not in result.stdout


def test_quiet_check_names_hazards_on_standard_error(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=FAULTY), "--check", "--quiet")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "reads GPR 3" in result.stderr


def test_a_program_that_fails_still_shows_its_hazards(bhemu: Invoke, write_program: WriteProgram) -> None:
    path = write_program(
        unpack="core.SETDMAREG(1, 6)\ncore.WRCFG(3, 0, 12)",
        math="core.SEMWAIT(stall_res=2, sem_sel=2, wait_sem_cond=1)\ncore.SEMPOST(sem_sel=2)",
    )
    result = bhemu("run", path, "--check")
    assert result.exit_code == 1
    assert "nothing can move" in result.stderr
    assert "reads GPR 3" in result.stderr


def test_timing_and_hazards_stand_in_the_json_report(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=FAULTY), "--timing", "--check", "--json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["timing"]["cycles"] > 0
    assert report["timing"]["units"]["scalar"]["instructions"] == 1
    assert report["hazards"][0]["consumer"]["text"].startswith("WRCFG")
    assert report["hazards"][0]["severity"] == "hazard"


def test_timing_shows_units_and_threads(bhemu: Invoke, write_program: WriteProgram) -> None:
    result = bhemu("run", write_program(source=COPY), "--timing")
    assert result.exit_code == 0, result.stderr
    assert "modelled time:" in result.stdout
    assert "stalled" in result.stdout


def test_trace_is_written_with_the_outputs(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = bhemu("run", write_program(source=COPY), "--trace", path)
    assert result.exit_code == 0, result.stderr
    assert json.loads(path.read_text())["traceEvents"]
    assert "modelled time" not in result.stdout


def test_trace_and_output_must_not_be_one_file(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    result = bhemu("run", write_program(source=COPY), "--out", f"c={path}", "--trace", path)
    assert result.exit_code == 2
    assert not path.exists()
