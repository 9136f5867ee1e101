"""A client that ends the simulator and begins again has new chips, and settings are read anew (capi/simulator.c)."""

from __future__ import annotations

from pathlib import Path

from tests.capi.library_client import run_client

USE = """
import os
# addi x1, x1, 1; sw x1, 0x400(x0); jal x0, -8
COUNT = [0x00108093, 0x40102023, 0xFF9FF06F]
def use():
    assert peek(5, 5, 0x400) == bytes(4)
    assert peek(5, 5, 0xFFB121B0) == struct.pack("<I", 0x47800)
    release_b(COUNT, 5, 5)
    clock(30)
    assert struct.unpack("<I", peek(5, 5, 0x400))[0] == 10
"""


def check(library: Path, script: str) -> None:
    ended = run_client(library, USE + script, BHEMU_PACE="exact")
    assert ended.status == 0, ended.out + ended.errors


def test_each_time_chips_are_new(library: Path) -> None:
    check(library, "init()\nuse()\nexit_()\ninit()\nuse()\nexit_()\n")


def test_settings_are_read_each_time(library: Path) -> None:
    """A refusal then stops the chip, and does not end the process."""
    check(
        library,
        """
init()
exit_()
os.environ["BHEMU_REFUSAL"] = "stop"
init()
use()
release_b([0], 6, 5)
clock(30)
assert peek(5, 5, 0x400) == struct.pack("<I", 10), "clocks have passed"
""",
    )
