"""What a library is made of."""

from __future__ import annotations

import pytest

from bhemu.capi import objects
from bhemu.tensix import coprocessor

pytestmark = pytest.mark.plain


def test_each_function_of_the_table_of_handlers_is_a_part() -> None:
    assert {-place for place in coprocessor._provided} <= objects._PARTS.keys()
