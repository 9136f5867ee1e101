"""What the files of a pair may say, and the errors of those that are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pairs.pair_files import PairError, check, read_pair
from tests.rules import pair_rules, rules_with_tests

pytestmark = pytest.mark.plain

HEADER = "# rules: I.11\n# SETDMAREG writes one half of a GPR.\n"
SET_UP = HEADER + ".thread 0\n"
INSTRUCTION = "SETDMAREG value=7, RegIndex16b=2\n"
PROGRAM = SET_UP + INSTRUCTION
EXPECTATION = "# Half 2 is the lower half of GPR 1.\ngpr[1] = 7\n"


def run(folder: Path, program: str = PROGRAM, expectation: str = EXPECTATION, *, suffix: str = ".tt") -> None:
    """Write both files, read and check them."""
    file = folder / f"pair{suffix}"
    file.write_text(program)
    file.with_suffix(".exp").write_text(expectation)
    check(read_pair(file))


def test_a_right_pair_passes(tmp_path: Path) -> None:
    run(tmp_path)


def test_a_wrong_expectation_names_line_element_and_both_values(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=re.escape("pair.exp:2: gpr[1] should be 8 (0x8), is 7 (0x7)")):
        run(tmp_path, expectation="# Wrong.\ngpr[1] = 8\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".thread 0\nSETDMAREG value=7, RegIndex16b=2\n", "pair.tt:1: the first line names rules"),
        ("# rules: I.11, K 42\n# A sentence that says it all.\n", "pair.tt:1: K 42 is not a rule id"),
        ("# rules: I.11\n.thread 0\n", "pair.tt:2: the second line is a comment, a sentence"),
        (HEADER, "pair.tt: has no instruction"),
        (HEADER + "NOP\n", "pair.tt:3: NOP: say .thread before it"),
        (HEADER + ".thread 3\n", "pair.tt:3: .thread 3: threads are 0"),
        (HEADER + ".core T3\n", "pair.tt:3: .core T3: cores are"),
        (HEADER + ".thread 0\nNOSUCH 1\n", "pair.tt:4: NOSUCH 1: .*NOSUCH"),
        (PROGRAM + ".set gpr[2] = 5\n", "pair.tt:5: .*set-up comes before the instructions"),
    ],
)
def test_a_wrong_program_is_an_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PairError, match=message):
        run(tmp_path, text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gpr[1]", "gpr.1.: is not PLACE = NUMBERS"),
        ("gqr[1] = 5", "no register is called 'gqr'; there are adc, config, "),
        ("gpr.x[1] = 5", "'gpr.x' needs 0 further parts"),
        ("config.No_such = 5", "'No_such' is unknown"),
        ("config.CFG_STATE_ID_StateID = 2", "does not fit in 1 bits"),
        ("rwc.fidel = 1", "'fidel' is unknown; there are dst, dst_cr, fidelity"),
        ("gpr[64] = 5", "index 64..64 is outside of 0..63"),
        ("gpr[a] = 5", r"\[a\] is not an index"),
        ("gpr[1][2] = 5", "has 1 indices, 2 given"),
        ("lreg.int[1] = 2147483648", "it is not between"),
        ("dst.int32[1] = -2147483648", "its magnitude does not fit"),
        ("gpr[1] = -1", "does not fit 32 bits"),
        ("gpr[1] = five", "'five' is not a number"),
        ("gpr[1] = 0x100000000", "does not fit 32 bits"),
        ("gpr[1..3] = 1 2", "2 numbers for 3 elements"),
        ("gpr[1..2] = 1*x", "write NUMBER.COUNT"),
        ("dst.bf16[0] = 1.001", "exactly"),
        ("dst.fp16[0] = inf", "not a number that fits"),
        ("l1.u8 = 1", "memory has one address"),
        ("waits = 1", "waits cannot be set"),
        ("x.a0 = 1", "register of a core"),
    ],
)
def test_a_wrong_set_up_line_is_an_error_that_says_why(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(PairError, match=rf"pair\.tt:4: .*{message}"):
        run(tmp_path, f"{SET_UP}.set {line}\n{INSTRUCTION}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpr[1] = 7\n", "pair.exp: say in a comment how the numbers come about"),
        ("# Nothing.\n", "pair.exp: expects nothing"),
        ("# Set-up.\n.set gpr[1] = 7\n", "pair.exp:2: .*an expectation has .thread, .core and PLACE = NUMBERS only"),
        ("# A wrong name.\nqpr[1] = 7\n", "pair.exp:2: .*no register is called 'qpr'"),
        ("# It is zero after reset.\ngpr[2] = 0\n", "pair.exp: holds before the program has run"),
    ],
)
def test_a_wrong_expectation_file_is_an_error_that_says_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PairError, match=message):
        run(tmp_path, expectation=text)


def test_a_program_without_expectation_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "pair.tt"
    file.write_text(PROGRAM)
    with pytest.raises(PairError, match=r"there is no pair\.exp next to it"):
        read_pair(file)


def test_a_thread_that_waits_unexpectedly_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="thread 0 waits at SETDMAREG value=0x9"):
        run(tmp_path, PROGRAM + "STALLWAIT stall_res=0x20, wait_res=0x80\nSETDMAREG value=9, RegIndex16b=4\n")


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("    nop\n    ebreak\n", PairError, "pair.s:3: nop: say .core before it"),
        (".core B\n    nosuch a0, a1\n    ebreak\n", PairError, "pair.s: core B: .*nosuch"),
        (".core B\n    li a0, 1\nloop: j loop\n", AssertionError, "core B is .* and not at its ebreak"),
    ],
)
def test_a_wrong_program_of_a_core_is_an_error(tmp_path: Path, body: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(tmp_path, HEADER + body, "# One.\nx.a0 = 1\n", suffix=".s")


def test_numbers_are_values_or_in_hexadecimal_bits(tmp_path: Path) -> None:
    program = (
        SET_UP
        + """
        .set dst.bf16[0] = -1.5*2 0x3F80 inf -0.0 0.0*11
        .set dst.fp16[2][0..1] = 131008.0 0x3C00
        .set dst.int32[1][0] = -5
        .set srca.int8[0][0..1] = -3 0
        .set lreg.int[0][0] = -1
        .set l1.fp32[0x100] = 1.0
        """
        + INSTRUCTION
    )
    run(
        tmp_path,
        program,
        EXPECTATION
        + """
        dst.bf16[0] = 0xBFC0*2 1.0 0x7F80 0x8000 0.0*11
        dst.fp16[2][0..1] = 0x7FFF 1.0
        dst.int32[1][0] = 0x80000005
        srca.int8[0][0..1] = 0x83 0
        lreg.int[0][0] = 0xFFFFFFFF
        l1.u8[0x100] = 0 0 128 63
        """,
    )


@pytest.mark.slow
def test_rules_of_pairs_are_listed_with_those_of_tests() -> None:
    assert "pairs/matrix/mvmul_lofi.tt" in rules_with_tests()["math F8"]
    assert pair_rules(Path(__file__).parent / "matrix/mvmul_lofi.tt") == ["math F8", "math F10"]
