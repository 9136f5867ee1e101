"""The C part under sanitizers (tools/sanitized.py): they are there, and they see faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.capi import build
from tools import sanitized

FAULTS = {
    "heap": "char *p = malloc(8); int at = 8; p[at + argc - 1] = 1; return p[0];",
    "stack": "char p[8]; int at = 8; p[at + argc - 1] = 1; return p[0];",
    "freed": "char *p = malloc(8); p[0] = (char)argc; free(p); return p[0];",
    "overflow": "int most = 2147483647; return (most + argc) & 1;",
    "shift": "return (1 << (31 + argc)) & 1;",
}


@pytest.fixture
def gcc() -> str:
    found = sanitized.compiler()
    if found is None:
        pytest.skip("there is no gcc: apt install gcc libc6-dev")
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_of_c_ends_the_process(gcc: str, tmp_path: Path, fault: str) -> None:
    source, program = tmp_path / "fault.c", tmp_path / "fault"
    source.write_text(f"#include <stdlib.h>\nint main(int argc, char **argv) {{ (void)argv; {FAULTS[fault]} }}\n")
    subprocess.run([gcc, *sanitized.FLAGS, "-w", source, "-o", program], check=True)
    options = {key: value for key, value in sanitized.environment(gcc).items() if key.endswith("_OPTIONS")}
    done = subprocess.run([program], env=os.environ | options, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr or "runtime error" in done.stderr


def test_library_is_built_and_loaded_with_sanitizers(gcc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = sanitized.environment(gcc)
    monkeypatch.setenv("CC", variables["CC"])
    library = build(tmp_path)
    assert b"__asan_init" in library.read_bytes()
    assert b"__ubsan_handle" in library.read_bytes()
    code = f"import ctypes; ctypes.CDLL({str(library)!r}); print('asan' in open('/proc/self/maps').read())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.skipif(sanitized.MARK not in os.environ, reason="make test-sanitizers runs it")
def test_tests_of_the_library_use_the_instrumented_one(library: Path) -> None:
    assert b"__asan_init" in library.read_bytes()
