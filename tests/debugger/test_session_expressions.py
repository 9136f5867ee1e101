"""Expressions of the debugger: C's operators on whole numbers; nonsense gets an error and nothing else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.expressions import evaluate

pytestmark = pytest.mark.plain


class Fixed:
    """Registers are 7, names their length, memory the address plus one."""

    def register(self, name: str) -> int:
        return 7

    def name_value(self, name: str) -> int:
        return len(name)

    def name_address(self, name: str) -> int:
        return 100 + len(name)

    def load(self, address: int) -> int:
        return address + 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("0x10 | 1 << 2", 0x14),
        ("10 - 3 - 2", 5),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("1 < 2 && 3 == 3", 1),
        ("0 || !5", 0),
        ("~0 & 0xff", 0xFF),
        ("$a0 * 2", 14),
        ("abc + &abc", 106),
        ("*8 + *(1+1)", 12),
        ("a::b", 4),
        ("0b101 ^ 1", 4),
        ("4 >= 4 != 1", 0),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, Fixed()) == value


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1 2", "&5", "1 / 0", "1 % 0", "0x", "1 << 1000", "a b", "@", "()"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(DebugError):
        evaluate(text, Fixed())


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DebugError, match="nested too deeply"):
        evaluate("(" * 1000 + "1" + ")" * 1000, Fixed())


numbers = st.integers(0, 1 << 20).map(str)
expressions = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "|", "^", "&"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["-", "~"]), inner).map(lambda t: f"({t[0]}{t[1]})"),
    ),
    max_leaves=12,
)


@given(expressions)
def test_bracketed_expressions_are_those_of_python(text: str) -> None:
    assert evaluate(text, Fixed()) == eval(text)


@given(st.text(alphabet="0123456789abx$&*()+-<>=!|~ .:", max_size=20))
def test_any_text_gives_a_number_or_an_error(text: str) -> None:
    with suppress(DebugError):
        assert isinstance(evaluate(text, Fixed()), int)
