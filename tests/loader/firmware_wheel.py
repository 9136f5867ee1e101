"""The tt-metal firmware in the ttnn wheel."""

from __future__ import annotations

from pathlib import Path

from tests.ttnn_wheel import NoWheel, unpacked

__all__ = ["FILES", "NoWheel", "firmware_sets"]

INSIDE = "ttnn/tt_metal/pre-compiled/"
FILES = tuple(f"{name}/{name}.elf" for name in ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2"))


def firmware_sets() -> list[Path]:
    """The directories of all firmware sets, fetched when they are not there.

    Raises:
        NoWheel: pip cannot fetch the wheel.
    """
    folder = unpacked("firmware", _place)
    return sorted(path for path in folder.iterdir() if all((path / name).is_file() for name in FILES))


def _place(name: str) -> str | None:
    below = name.removeprefix(INSIDE)
    return below if below != name and below.partition("/")[2] in FILES else None
