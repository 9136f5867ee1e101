"""The profile accounts for every instruction and every round; the lower bound of time follows the documents."""

from __future__ import annotations

import json

import pytest

from bhemu.recording import CoreRecorder, Profile, core_lines, profile, profile_as_json, profile_lines
from tests.recording.core_runs import PUSHED, WAITS, run

pytestmark = pytest.mark.plain


def profiled(texts: dict[str, str] = WAITS) -> Profile:
    recorder = CoreRecorder(instructions=False)
    run(texts, recorder)
    return profile(recorder.log())


def cycles(text: str) -> int:
    (core,) = profiled({"B": text}).cores
    return core.cycles


def test_functions_add_up_to_the_retired_instructions() -> None:
    recorder = CoreRecorder(instructions=False)
    tile = run(WAITS, recorder)
    found = profile(recorder.log())
    assert [core.name for core in found.cores] == ["B", "T0", "T1"]
    for core in found.cores:
        retired = tile.cores[core.name].retired
        assert core.instructions == retired == sum(spot.instructions for spot in core.functions)
        assert core.cycles == sum(spot.cycles for spot in core.functions)
    t1 = found.cores[2]
    assert {spot.name: spot.instructions for spot in t1.functions}["push"] == PUSHED + 12


def test_rounds_are_running_polling_blocked_or_idle() -> None:
    found = profiled()
    for core in found.cores:
        idle = core.rounds - core.running - core.polling - core.blocked
        assert core.rounds == found.rounds
        assert idle >= 0
        assert core.blocked == sum(wait.rounds for wait in core.blocked_on)
        assert core.polling == sum(wait.rounds for wait in core.polls)
    b, t0, t1 = found.cores
    assert b.running + b.polling == b.instructions
    assert b.blocked == t0.blocked == t1.polling == 0
    assert t0.running + t0.polling == t0.instructions
    # Of 21 adjacent pushes 20 share their rounds by four.
    assert t1.running == t1.instructions - 12 * 15
    assert t0.polls[0].what == "semaphore 1 (MATH_PACK)"
    assert t1.blocked_on[0].what == "mailbox with B"


def test_a_core_that_never_leaves_its_first_access_is_there() -> None:
    found = profiled({"T2": "lw a0, 0(zero)\nli a0, 0xffec0000\nlw a1, 0(a0)"})
    (core,) = found.cores
    assert (core.name, core.instructions, core.blocked) == ("T2", 2, found.rounds - 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("li a0, 1", 1),
        ("li a0, 1\nadd a1, a0, a0", 2),
        ("li a0, 7\nmul a1, a0, a0", 2),
        ("li a0, 7\nmul a1, a0, a0\nadd a2, a0, a0", 3),
        ("li a0, 7\nmul a1, a0, a0\nadd a2, a1, a0", 4),  # EX1, EX2
        ("li a0, 7\ndiv a1, a0, a0", 7),  # at least six in EX1
        ("li a0, 7\nli a1, 1\ndivu a2, a0, a1", 4),
        ("li a0, 0x80000000\nli a1, -1\nrem a2, a0, a1", 4),
        ("li a0, 0x80000000\nli a1, -1\nremu a2, a0, a1", 8),
        ("lw a0, 0x100(zero)\nadd a1, a0, a0", 3),  # a hit of the L0 data cache
        ("li a0, 0xffb00000\nlw a0, 0(a0)\nadd a1, a0, a0", 4),
        ("li a0, 0xffec2000\nlw a0, 4(a0)\nadd a1, a0, a0", 5),  # status of a mailbox
        ("li a0, 0xffef0000\nlw a0, 0(a0)\nadd a1, a0, a0", 6),
        ("li a0, 0xffb12000\nlw a0, 0x1b0(a0)\nadd a1, a0, a0", 9),
        ("li a0, 0x100\namoadd.w a1, a0, (a0)\nadd a1, a1, a0", 14),
        ("fcvt.s.w fa0, zero\nfadd.s fa1, fa0, fa0\nfadd.s fa2, fa1, fa1", 4),
        ("lw a0, 0x100(zero)\nnop\nadd a1, a0, a0", 3),  # an independent instruction hides the latency
    ],
)
def test_the_lower_bound_of_time_follows_the_documents(text: str, expected: int) -> None:
    assert cycles(f"{text}\nebreak") == expected + 1


def test_fused_pushes_take_one_cycle() -> None:
    (core,) = profiled({"T1": 4 * ".ttinsn 0x02000000\n" + "ebreak"}).cores
    assert (core.instructions, core.cycles, core.mix[".ttinsn"]) == (5, 2, 4)


def test_the_report_names_functions_waits_and_its_assumptions() -> None:
    found = profiled()
    text = "\n".join(core_lines(found))
    assert "a core executes one instruction a round" in text
    assert "BlackholeA0/TensixTile/BabyRISCV/README.md" in text
    assert "loads from L1 (each miss at least 6 more)" in text
    text = "\n".join(profile_lines(found))
    for part in ("core T1: blocked on", "mailbox with B, at 0x0a008 start+0x8", "push", "core T0: polls"):
        assert part in text
    short = profile_lines(found, number=1)
    assert any(line.strip() == "... and 1 more" for line in short)


def test_the_profile_as_json() -> None:
    found = profiled()
    told = json.loads(json.dumps(profile_as_json(found)))
    assert told["rounds"] == found.rounds
    assert [core["name"] for core in told["cores"]] == ["B", "T0", "T1"]
    assert told["cores"][1]["polls"][0]["what"] == "semaphore 1 (MATH_PACK)"
