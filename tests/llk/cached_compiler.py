"""The LLK suite's compiler, with its results kept: a launcher in the compiler's place, and what the launcher runs.

A result is kept under the hash of the preprocessed source, the arguments, the linker scripts and the compiler. The
suite compiles and links in one command, for which the usual compiler caches have no answer.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

LARGEST = 4 << 30
"""Bytes that the kept results may take; the oldest are removed first."""


def write_launchers(target: Path, sfpi: Path, kept: Path, python: str) -> None:
    """Write a view of the vendor's compiler whose C++ driver keeps its results.

    Args:
        target: a new directory.
        sfpi: the compiler.
        kept: directory for results.
        python: interpreter that runs the launcher.
    """
    binaries = target / "compiler" / "bin"
    binaries.mkdir(parents=True)
    (target / "include").symlink_to(sfpi / "include")
    for tool in (sfpi / "compiler" / "bin").iterdir():
        (binaries / tool.name).symlink_to(tool)
    launcher = binaries / "riscv-tt-elf-g++"
    launcher.unlink()
    words = [python, "-S", "-E", str(Path(__file__).resolve()), str(sfpi), str(kept)]
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    launcher.chmod(0o755)


def trim(kept: Path, largest: int = LARGEST) -> None:
    """Remove the results that have not been used for longest, until the rest fits."""
    files = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in kept.glob("*/*"))
    total = sum(size for _, size, _ in files)
    for _, size, file in files:
        if total <= largest:
            return
        file.unlink(missing_ok=True)
        total -= size


def key_of(sfpi: Path, arguments: Sequence[str], preprocessed: bytes, own: str) -> str:
    """Name of a result.

    Args:
        sfpi: the compiler.
        arguments: of the command, without the output file.
        preprocessed: source.
        own: the folder of this run, which is another one in each run.
    """
    digest = hashlib.sha256()
    driver = sfpi / "compiler" / "bin" / "riscv-tt-elf-g++"
    digest.update(f"{driver.resolve()} {driver.stat().st_size} {driver.stat().st_mtime_ns}".encode())
    # A variant's own folder is in the arguments and in the lines that say where a piece of the source comes from.
    variant = re.compile(re.escape(own) + r"[^\s\"\0]*") if own else None
    text = "\0".join(arguments)
    digest.update((variant.sub("OWN", text) if variant else text).encode())
    digest.update(re.sub(variant.pattern.encode(), b"OWN", preprocessed) if variant else preprocessed)
    for argument in arguments:
        if argument.startswith("-T") and Path(argument[2:]).is_file():
            digest.update(Path(argument[2:]).read_bytes())
    return digest.hexdigest()


def compile_or_fetch(sfpi: Path, kept: Path, arguments: Sequence[str]) -> int:
    """Do what the compiler does with these arguments, or take an earlier result."""
    driver = str(sfpi / "compiler" / "bin" / "riscv-tt-elf-g++")
    if "-o" not in arguments or "-x" not in arguments or "-" not in arguments:
        return subprocess.run([driver, *arguments], check=False).returncode
    place = len(arguments) - 1 - list(reversed(arguments)).index("-o")
    output, rest = Path(arguments[place + 1]), [*arguments[:place], *arguments[place + 2 :]]
    source = sys.stdin.buffer.read()
    first = subprocess.run([driver, *rest, "-E"], input=source, capture_output=True, check=False)
    if first.returncode == 0:
        own = os.environ.get("RUNNER_TEMP", "")
        name = key_of(sfpi, [*rest, source.decode(errors="replace")], first.stdout, own)
        known = kept / name[:2] / name
        if known.is_file():
            try:
                output.write_bytes(zlib.decompress(known.read_bytes()))
            except zlib.error:
                known.unlink(missing_ok=True)
            else:
                os.utime(known)
                return 0
    done = subprocess.run([driver, *arguments], input=source, capture_output=True, check=False)
    sys.stdout.buffer.write(done.stdout)
    sys.stderr.buffer.write(done.stderr)
    if done.returncode == 0 and first.returncode == 0 and not done.stderr:
        known.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=known.parent, delete=False) as file:
            file.write(zlib.compress(output.read_bytes(), 1))
        shutil.move(file.name, known)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(compile_or_fetch(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
