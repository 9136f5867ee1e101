"""Run the tests of the C library with its C part under the address and undefined-behaviour sanitizers.

    python tools/sanitized.py [ARGUMENTS OF PYTEST]

The library is built by `bhemu.capi.build`, so every C file that it lists is instrumented; `CC` brings the sanitizers
in. A finding ends the process that made it, so the test that started it fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
MARK = "SANITIZED"
"""Set in the environment of tests that run so."""


def compiler() -> str | None:
    """GCC, whose sanitizers can be loaded into a process that was not built with them."""
    return shutil.which("gcc")


def environment(gcc: str) -> dict[str, str]:
    """Variables for a process that builds and loads the library with sanitizers."""

    def runtime(name: str) -> str:
        command = [gcc, f"-print-file-name={name}"]
        return str(Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()).resolve())

    return {
        "CC": " ".join((gcc, *FLAGS)),
        "LD_PRELOAD": f"{runtime('libasan.so')}:{runtime('libubsan.so')}",
        # Python and LLVM do not free everything at the end, and catch signals of their own.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:handle_segv=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        MARK: "1",
    }


def main() -> int:
    gcc = compiler()
    if gcc is None:
        print("NOT RUN WITH SANITIZERS: there is no gcc: apt install gcc libc6-dev", file=sys.stderr)
        return 0
    command = [sys.executable, "-m", "pytest", *(sys.argv[1:] or ["-rs", "tests/capi", "tests/report/test_client.py"])]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment(gcc), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
