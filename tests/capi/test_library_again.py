"""A client that ends the simulator and begins again: chips that nothing has changed are kept (capi/simulator.c)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capi.library_client import run_client

BEGIN = """
import os, resource
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def begin():
    before = faults()
    init()
    return faults() - before
# addi x1, x1, 1; sw x1, 0x400(x0); jal x0, -8
COUNT = [0x00108093, 0x40102023, 0xFF9FF06F]
def use():
    assert peek(5, 5, 0x400) == bytes(4)
    assert peek(5, 5, 0xFFB121B0) == struct.pack("<I", 0x47800)
    release_b(COUNT, 5, 5)
    clock(30)
    assert struct.unpack("<I", peek(5, 5, 0x400))[0] == 10
first = begin()
assert config_read(0, 0) == 0xB1401E52
"""
"""A tile's record costs a page fault when a chip is made."""


def check(library: Path, script: str, **environment: str) -> None:
    ended = run_client(library, BEGIN + script, BHEMU_PACE="exact", **environment)
    assert ended.status == 0, ended.out + ended.errors


def test_chips_of_a_client_that_has_only_asked_are_kept(library: Path) -> None:
    check(
        library,
        """
exit_()
assert begin() < 20 < 140 <= first
use()
exit_()
assert begin() >= 140
use()
""",
    )


@pytest.mark.parametrize(
    "change",
    [
        "read(BAR0, 4)",
        "put(CONFIG, 0)",
        "clock(1)",
        "config_write(0, 4, 6)",
        "lib.bhemu_record.restype = ptr; ctypes.memset(lib.bhemu_record(1), 1, 1)",
    ],
)
def test_chips_that_may_have_changed_are_not(library: Path, change: str) -> None:
    check(library, f"{change}\nexit_()\nassert begin() >= 140\nuse()\n")


def test_chips_are_made_for_other_settings(library: Path) -> None:
    """A refusal then stops the chip, and does not end the process."""
    check(
        library,
        """
exit_()
os.environ["BHEMU_REFUSAL"] = "stop"
assert begin() >= 140
use()
release_b([0], 6, 5)
clock(30)
assert peek(5, 5, 0x400) == struct.pack("<I", 10), "clocks have passed"
""",
    )
