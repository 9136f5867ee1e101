"""Tenstorrent's LLK headers: where they are installed, and what a source that includes them needs (B20-B22)."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from bhemu.cc.cores import Core
from bhemu.cc.errors import MissingTool

ENVIRONMENT = "BHEMU_LLK"
"""Environment variable that names the LLK tree when `--llk` does not."""

PARTS = {"unpack": "T0", "math": "T1", "pack": "T2"}
"""The parts of an LLK kernel and the cores that run them."""

_BELOW = ("", "tt-llk", "tt_metal/tt-llk", "ttnn/tt_metal/tt-llk", "tt_metal/third_party/tt_llk")

OPTIONS = (
    "-O3",
    "-ffast-math",
    "-fno-finite-math-only",
    "-fsigned-zeros",
    "-fno-associative-math",
    "-fhosted",
    "-w",
)
"""What the vendor's headers are built with (B22); after our own defaults, before the user's options."""

DEFINES = ("TENSIX_FIRMWARE", "ENV_LLK_INFRA", "KERNEL_BUILD", "ENABLE_LLK_ASSERT", "ARCH_BLACKHOLE")


@dataclass(frozen=True, slots=True)
class LlkTree:
    """An installed LLK tree.

    Attributes:
        root: the directory that holds `tt_llk_blackhole`.
    """

    root: Path

    @property
    def metal(self) -> Path:
        """The directory around the root, with the `hw` tree that the headers include from."""
        return self.root.parent

    def include_dirs(self) -> tuple[Path, ...]:
        """Directories that exist, in search order; the LLK's own headers win over those of tt-metal."""
        blackhole = self.root / "tt_llk_blackhole"
        hardware = self.metal / "hw"
        wanted = (
            blackhole / "llk_lib",
            blackhole / "llk_lib" / "hal",
            blackhole / "common" / "inc",
            blackhole / "common" / "inc" / "sfpu",
            self.root / "common",
            self.root / "tools" / "include",
            self.root / "tests" / "helpers" / "include",
            self.root / "tests" / "hw_specific" / "blackhole" / "inc",
            hardware / "inc",
            hardware / "inc" / "internal" / "tt-1xx" / "blackhole",
            self.metal / "hostdevcommon" / "api",
            hardware / "ckernels" / "blackhole" / "metal" / "llk_api",
            hardware / "ckernels" / "blackhole" / "metal" / "llk_api" / "llk_sfpu",
        )
        return tuple(path for path in wanted if path.is_dir())


def find_llk(path: str | Path | None = None) -> LlkTree:
    """The LLK headers: at or below `path`, else where BHEMU_LLK says, else in an installed `ttnn` package.

    The package is located, never imported.

    Raises:
        MissingTool: none found; the remedy says how to get them.
    """
    if path is not None:
        return _tree_at(Path(path), f"--llk {path}")
    named = os.environ.get(ENVIRONMENT)
    if named:
        return _tree_at(Path(named), f"{ENVIRONMENT}={named}")
    spec = importlib.util.find_spec("ttnn")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        found = _look(Path(location))
        if found is not None:
            return found
    raise MissingTool(
        "no LLK headers are installed",
        remedy=f"pip install ttnn (its wheel carries them), or give a path with --llk or {ENVIRONMENT}",
    )


def _tree_at(path: Path, said: str) -> LlkTree:
    found = _look(path)
    if found is None:
        raise MissingTool(
            f"{said}: no tt_llk_blackhole there",
            remedy="give the tt-llk directory, a tt-metal checkout, or the directory of an unpacked ttnn wheel",
        )
    return found


def _look(path: Path) -> LlkTree | None:
    for below in _BELOW:
        root = path / below
        if (root / "tt_llk_blackhole" / "llk_lib").is_dir():
            return LlkTree(root.absolute())
    return None


def llk_options(core: Core) -> list[str]:
    """The compiler's arguments for a source that includes LLK headers, without the directories."""
    options = [*OPTIONS, *(f"-D{name}" for name in DEFINES)]
    if core.thread is not None:
        part = next(name for name, runs_on in PARTS.items() if runs_on == core.name)
        options += [f"-DCOMPILE_FOR_TRISC={core.thread}", f"-DLLK_TRISC_{part.upper()}"]
    return options
