"""The tt-metal firmware in the ttnn wheel."""

from __future__ import annotations

from pathlib import Path

from tests.ttnn_wheel import NoWheel, unpacked

__all__ = ["ETHERNET_FILES", "FILES", "NoWheel", "ethernet_sets", "firmware_sets"]

INSIDE = "ttnn/tt_metal/pre-compiled/"
FILES = tuple(f"{name}/{name}.elf" for name in ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2"))
ETHERNET_FILES = tuple(
    f"{part}{name}_erisc/{part}{name}_erisc.elf" for name in ("idle", "active") for part in ("", "subordinate_")
)
"""Those of Blackhole's Ethernet tiles."""


def firmware_sets() -> list[Path]:
    """The directories of all firmware sets, fetched when they are not there.

    Raises:
        NoWheel: pip cannot fetch the wheel.
    """
    folder = unpacked("firmware", _place)
    return sorted(path for path in folder.iterdir() if all((path / name).is_file() for name in FILES))


def ethernet_sets() -> list[Path]:
    """The directories of all firmware sets for Ethernet tiles of Blackhole, fetched when they are not there.

    Raises:
        NoWheel: pip cannot fetch the wheel.
    """
    folder = unpacked("firmware-ethernet", lambda name: _file(name, ETHERNET_FILES))
    return sorted(path for path in folder.iterdir() if all((path / name).is_file() for name in ETHERNET_FILES))


def _place(name: str) -> str | None:
    return _file(name, FILES)


def _file(name: str, files: tuple[str, ...]) -> str | None:
    below = name.removeprefix(INSIDE)
    return below if below != name and below.partition("/")[2] in files else None
