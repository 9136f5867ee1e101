"""Build hook of hatchling: a pure wheel, or a wheel for this platform with compiled code in it.

`BHEMU_NATIVE=DIR python -m build` packs every file of DIR into the wheel's folder `bhemu/native/` and names the wheel
after this interpreter's platform. Without it the wheel is pure Python.
"""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeWheel(BuildHookInterface[Any]):
    """Adds compiled code where there is any."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        directory = os.environ.get("BHEMU_NATIVE")
        if not directory or self.target_name != "wheel":
            return
        files = sorted(file for file in Path(directory).rglob("*") if file.is_file())
        if not files:
            raise FileNotFoundError(f"BHEMU_NATIVE={directory}: there is no file")
        for file in files:
            build_data["force_include"][str(file)] = f"bhemu/native/{file.relative_to(directory)}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
