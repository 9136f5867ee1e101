"""From a client to the report: recorded by `bhemu run-client`, named by its ELF files, shown on one page."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bhemu.capi import build
from bhemu.cc.toolchain import find_toolchain
from bhemu.errors import BhemuError
from bhemu.recording.parts import Reader
from bhemu.report.model import make_report
from bhemu.report.text import hazard_lines, perfetto_json, report_as_json, summary_lines
from tests.c_programs import compiler_or_skip

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1500


def bhemu(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of bhemu in a process of its own."""
    command = [sys.executable, "-m", "bhemu", *arguments]
    variables = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def bhemu_python(folder: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script of the folder."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    return subprocess.run(
        [sys.executable, script], cwd=folder, env=variables, capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library, the kernels, and a recording `out` of the client."""
    try:
        find_toolchain()
    except BhemuError:
        pytest.skip("NO CLIENT IS RECORDED: there is no RISC-V compiler")
    compiler_or_skip("NO CLIENT IS RECORDED")
    made = tmp_path_factory.mktemp("looking")
    build(made / "simulator")
    kernels = ROOT / "examples" / "kernels"
    for name, *more in (
        ("produce",),
        ("consume", "--core", "T1"),
        ("bad", "--core", "T1", "-DNO_WAIT"),
    ):
        source = kernels / f"{'consume' if name == 'bad' else name}.c"
        done = bhemu(made, "cc", str(source), "-o", f"{name}.elf", *more)
        assert done.returncode == 0, done.stderr
    done = client(made, "consume.elf", "--record", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pages that have arrived: 4" in done.stdout
    return made


def client(folder: Path, consumer: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The client of examples/two_tiles.py, recorded."""
    script = str(ROOT / "examples" / "two_tiles.py")
    command = ("--", sys.executable, script, "produce.elf", consumer)
    return bhemu(folder, "run-client", "--library", "simulator", *options, *command, **environment)


def test_the_report_names_kernels_lines_and_waits(folder: Path) -> None:
    found = make_report(folder / "out")
    assert {(kernel.name, kernel.core) for kernel in found.kernels} == {("produce", "B"), ("consume", "T1")}
    consume = found.kernels[0]
    assert consume.name == "consume"
    assert consume.tiles == {(3, 4)}
    assert re.fullmatch(r"consume\.c:\d+", consume.hottest)
    assert consume.waits_for == "polls 0x21000 in L1"
    assert consume.units["vector"] == 4 * 64 * 3
    assert any("vector unit" in cause for cause in consume.stalls)
    assert found.traffic["1-2", "write", "tile 3-4"] == 4 * 256 + 16
    assert found.hazards == []
    lines = "\n".join(summary_lines(found))
    assert "slowest: consume on core T1" in lines
    assert "hazards: none" in lines


def test_the_timeline_goes_down_to_single_instructions(folder: Path) -> None:
    timeline = make_report(folder / "out").timeline
    begin, length, track, kind, text = timeline.columns()
    names = [name for place, name in timeline.tracks if place == (3, 4)]
    assert {"T1", "T1 instructions", "thread 1 (math)", "unit: vector"} <= set(names)
    assert ((1, 2), "NoC 0") in timeline.tracks
    assert (length > 0).all()
    assert (begin >= 0).all()
    number = timeline.tracks.index(((3, 4), "unit: vector"))
    assert "SFPMAD" in timeline.texts[text[(track == number)][1]]
    assert {timeline.texts[i].partition(" | ")[0] for i in text[kind == 2]} == {"polls L1 0x21000"}


def test_the_report_as_data(folder: Path) -> None:
    found = make_report(folder / "out")
    told = json.loads(json.dumps(report_as_json(found)))
    assert [kernel["name"] for kernel in told["kernels"]] == ["consume", "produce"]
    trace = json.loads(perfetto_json(found))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == len(found.timeline)
    done = bhemu(folder, "report", "out", "--json")
    assert json.loads(done.stdout)["kernels"][0]["name"] == "consume"
    assert not (folder / "out" / "report.html").exists()


def test_check_finds_a_missing_wait_with_both_source_lines(folder: Path) -> None:
    done = client(folder, "bad.elf", "--record", "checked", "--tiles", "3-4", "--check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "tile 3-4: hazard (order): reads GPR 12 right after the scalar unit wrote it" in done.stdout
    assert len(re.findall(r"\(consume\.c:\d+ in main; ", done.stdout)) == 2
    assert "hazards: 1" in done.stdout
    assert {part.place for part in Reader(folder / "checked").parts()} == {(3, 4)}
    assert len(hazard_lines(make_report(folder / "checked"))) == 4


def test_a_profile_has_counts_and_no_single_instructions(folder: Path) -> None:
    assert client(folder, "consume.elf", "--record", "profile", "--detail", "profile").returncode == 0
    found, whole = make_report(folder / "profile"), make_report(folder / "out")
    assert [kernel.instructions for kernel in found.kernels] == [kernel.instructions for kernel in whole.kernels]
    assert len(found.timeline) < len(whole.timeline)


def test_counters_have_the_counts_of_a_profile(folder: Path) -> None:
    options = ("--record", "counters", "--detail", "counters")
    assert client(folder, "consume.elf", *options, BHEMU_PACE="exact").returncode == 0
    found, whole = make_report(folder / "counters"), make_report(folder / "out")
    assert [kernel.instructions for kernel in found.kernels] == [kernel.instructions for kernel in whole.kernels]
    assert [kernel.waits for kernel in found.kernels] == [kernel.waits for kernel in whole.kernels]
    assert found.tiles[3, 4].words == whole.tiles[3, 4].words
    assert any("only counted" in note for note in found.notes)
    for wrong in (("--check",), ("--states",), ("--states-every", "9")):
        assert client(folder, "consume.elf", "--record", "wrong", "--detail", "counters", *wrong).returncode == 2


def test_counters_are_the_same_in_the_clients_process_and_in_one_of_their_own(folder: Path) -> None:
    found = []
    for process in ("client", "own"):
        options = ("--record", f"counters-{process}", "--detail", "counters")
        assert client(folder, "consume.elf", *options, BHEMU_PROCESS=process, BHEMU_PACE="exact").returncode == 0
        reader = Reader(folder / f"counters-{process}")
        told = {"about": [{**one, "pid": 0, "command": [], "time": ""} for one in reader.about]}
        left_out = dict.fromkeys(("log", "tensix", "names"))
        parts = [told | vars(part) | vars(part.log) | left_out for part in reader.parts()]
        found.append(
            [{name: getattr(value, "tolist", lambda v=value: v)() for name, value in part.items()} for part in parts]
        )
    assert found[0] == found[1]
    assert {part["started"] for part in found[0]} == {0}


def test_a_forked_client_leaves_the_counts_to_its_parent(folder: Path) -> None:
    program = (
        "import os, runpy, sys\n"
        "sys.argv = ['two_tiles.py', 'produce.elf', 'consume.elf']\n"
        "load = __import__('ctypes').CDLL\n"
        "def loaded(*given):\n"
        "    library = load(*given)\n"
        "    start = library.libttsim_init\n"
        "    def init():\n"
        "        start()\n"
        "        if os.fork() == 0:\n"
        "            library.libttsim_clock(1000)\n"
        "            library.libttsim_exit()\n"
        "            os._exit(0)\n"
        "        os.wait()\n"
        "    library.libttsim_init = init\n"
        "    return library\n"
        "__import__('ctypes').CDLL = loaded\n"
        f"runpy.run_path({str(ROOT / 'examples' / 'two_tiles.py')!r}, run_name='__main__')\n"
    )
    (folder / "forks.py").write_text(program)
    library = str(folder / "simulator" / "libttsim_bh.so")
    variables = {"BHEMU_RECORD": str(folder / "forked"), "BHEMU_DETAIL": "counters", "TT_METAL_SIMULATOR": library}
    done = bhemu_python(folder, "forks.py", **variables)
    assert "pages that have arrived: 4" in done.stdout, done.stdout + done.stderr
    assert len(list((folder / "forked").iterdir())) == 1
    found = make_report(folder / "forked", elf=[folder / "produce.elf", folder / "consume.elf"])
    whole = make_report(folder / "counters-client")
    assert [kernel.instructions for kernel in found.kernels] == [kernel.instructions for kernel in whole.kernels]


def test_counts_that_cannot_be_written_end_with_one_message(folder: Path) -> None:
    """No file may be larger than a few bytes: `about` does not fit."""
    script = str(ROOT / "examples" / "two_tiles.py")
    library = str(folder / "simulator" / "libttsim_bh.so")
    variables = {"BHEMU_RECORD": str(folder / "full"), "BHEMU_DETAIL": "counters", "TT_METAL_SIMULATOR": library}
    program = (
        "import resource, runpy, signal, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.argv = ['two_tiles.py', 'produce.elf', 'consume.elf']\n"
        f"runpy.run_path({script!r}, run_name='__main__')\n"
    )
    (folder / "limited.py").write_text(program)
    done = bhemu_python(folder, "limited.py", **variables)
    assert done.stdout.count("the recording ends") == 1, done.stdout + done.stderr
    assert "pages that have arrived: 4" in done.stdout


def test_a_tile_that_does_not_exist_is_refused_by_name(folder: Path) -> None:
    done = client(folder, "consume.elf", "--record", "nowhere", "--tiles", "1-2,8-5")
    assert done.returncode == 1
    assert "ConfigurationError: libttsim_init: tile 8-5 is to be recorded" in done.stdout
    done = client(folder, "consume.elf", "--record", "nowhere2", "--tiles", "1.2")
    assert done.returncode == 2
    assert "'1.2' is not a tile" in done.stderr


def test_a_directory_with_a_recording_is_not_written_again(folder: Path) -> None:
    done = client(folder, "consume.elf", "--record", "out")
    assert done.returncode == 2
    assert "out holds a recording already" in done.stderr


@pytest.mark.parametrize("detail", ["instructions", "counters"])
def test_a_directory_that_cannot_be_written_is_said_once_and_the_client_goes_on(folder: Path, detail: str) -> None:
    script = str(ROOT / "examples" / "two_tiles.py")
    variables = {
        "BHEMU_RECORD": "/dev/null/out",
        "BHEMU_DETAIL": detail,
        "TT_METAL_SIMULATOR": str(folder / "simulator" / "libttsim_bh.so"),
    }
    done = subprocess.run(
        [sys.executable, script, "produce.elf", "consume.elf"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout.count("nothing is recorded: /dev/null/out") == 1
    assert "pages that have arrived: 4" in done.stdout


def test_what_a_killed_client_has_done_is_readable(folder: Path) -> None:
    script = str(ROOT / "examples" / "two_tiles.py")
    out = folder / "killed"
    variables = {"BHEMU_RECORD": str(out), "TT_METAL_SIMULATOR": str(folder / "simulator" / "libttsim_bh.so")}
    running = subprocess.Popen(
        [sys.executable, script, "produce.elf", "consume.elf", "100000000"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
        stdout=subprocess.DEVNULL,
    )
    try:
        for _ in range(10 * LIMIT):
            if out.is_dir() and any(True for _ in out.iterdir()) and len(list(Reader(out).parts())) > 1:
                break
            assert running.poll() is None
            time.sleep(0.1)
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    found = make_report(out, elf=[folder / "produce.elf", folder / "consume.elf"])
    assert {kernel.name for kernel in found.kernels} == {"produce", "consume"}


def test_an_elf_file_that_does_not_match_is_said_by_name(folder: Path) -> None:
    other = folder / "other.elf"
    source = ROOT / "examples" / "kernels" / "sum.c"
    assert bhemu(folder, "cc", str(source), "-o", str(other)).returncode == 0
    done = bhemu(folder, "report", "out", "--json", "--elf", "other.elf")
    assert "other.elf does not match anything that was executed" in done.stdout
    done = bhemu(folder, "report", "out", "--elf", "nothing.elf")
    assert done.returncode == 1
    assert "nothing.elf: no such file or directory" in done.stderr


def test_a_client_that_cannot_be_started(folder: Path) -> None:
    done = bhemu(folder, "run-client", "--record", "never", "--", "./no-such-program")
    assert done.returncode == 127
    assert "./no-such-program cannot be started" in done.stderr
