"""The table that the C library shares with Python."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from bhemu.capi.slots import SLOTS, Table, fill, header
from tests.c_programs import compiler_or_skip


def test_c_and_python_agree_on_the_place_of_every_slot(tmp_path: Path) -> None:
    compiler = compiler_or_skip("THE TABLE'S C SIDE IS NOT TESTED")
    (tmp_path / "slots.h").write_text(header())
    places = "\n".join(f'printf("%zu\\n", offsetof(struct slots, {slot.name}));' for slot in SLOTS)
    (tmp_path / "places.c").write_text(
        f'#include "slots.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{ {places} return 0; }}\n'
    )
    subprocess.run([*compiler, "-Wall", "-Werror", "places.c", "-o", "places"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "places"], check=True, capture_output=True, text=True).stdout
    assert [int(line) for line in out.split()] == [getattr(Table, slot.name).offset for slot in SLOTS]


def test_a_python_function_in_the_table_is_called_through_its_address() -> None:
    table, seen = Table(), []
    kept = fill(table, {"clock": seen.append})
    ctypes.CFUNCTYPE(None, ctypes.c_uint32)(table.clock)(7)
    assert seen == [7]
    assert len(kept) == 1
