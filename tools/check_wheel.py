"""Install a wheel into new environments and use it there, without a compiler.

    python tools/check_wheel.py dist/bhemu-1.0.0-py3-none-any.whl

For each supported version of Python pip is asked whether all dependencies come as wheels. With each interpreter of
these versions that is on the PATH, the wheel is installed into a new environment, and `bhemu doctor` and `bhemu run`
work with a PATH that has nothing but that environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def resolves(wheel: Path, version: str) -> str | None:
    """What pip says against an installation from wheels alone; None when it can install."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
        command += ["--python-version", version, "--only-binary=:all:", "--target", folder, str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


def interpreter(version: str) -> str | None:
    """An interpreter of a version on the PATH that runs, or this one."""
    if version == ".".join(map(str, sys.version_info[:2])):
        return sys.executable
    found = shutil.which(f"python{version}")
    runs = found is not None and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
    return found if runs else None


def use(wheel: Path, python: str) -> float:
    """Install a wheel into a new environment and run it there without a compiler; seconds of the first run.

    Raises:
        subprocess.CalledProcessError: something does not work.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
        binaries = folder / "venv" / "bin"
        install: list[str | Path] = [binaries / "python", "-m", "pip", "install", "--only-binary=:all:"]
        subprocess.run([*install, "--quiet", "--disable-pip-version-check", wheel], check=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environment |= {"PATH": str(binaries), "HOME": os.environ.get("HOME", str(folder))}
        for compiler in ("cc", "gcc", "clang", "riscv64-unknown-elf-gcc"):
            assert shutil.which(compiler, path=environment["PATH"]) is None

        def run(*arguments: object) -> None:
            subprocess.run([binaries / "bhemu", *map(str, arguments)], env=environment, cwd=folder, check=True)

        run("--version")
        begun = time.monotonic()
        run("run", ROOT / "examples" / "add1.py", "--set", "M=32", "--quiet")
        seconds = time.monotonic() - begun
        run("doctor")
    return seconds


def main() -> int:
    wheel = Path(sys.argv[1]).resolve()
    failed = False
    for version in VERSIONS:
        reason = resolves(wheel, version)
        failed |= reason is not None
        python = interpreter(version)
        print(f"Python {version}: {'all dependencies come as wheels' if reason is None else reason}", flush=True)
        if python is None:
            print(f"Python {version}: no interpreter here, not run", flush=True)
            continue
        print(f"Python {version}: works without a compiler, first run {use(wheel, python):.1f} s", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
