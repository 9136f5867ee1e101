"""Build a release into dist/: wheel, source archive, bill of materials. Builds twice and compares.

    python tools/build_release.py [--once] [DIRECTORY]

The date of what is packed is SOURCE_DATE_EPOCH, by default that of the last commit.
"""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def source_date() -> str:
    """Seconds since 1970: SOURCE_DATE_EPOCH, else the date of the last commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        return given
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def build(directory: Path) -> list[Path]:
    """Build wheel and source archive into a directory; returns the files by name."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": source_date()}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sorted(directory.iterdir())


def bill_of_materials(target: Path) -> None:
    """Write what an installation consists of, as CycloneDX says it; this environment is the installation."""
    program = Path(sys.executable).with_name("cyclonedx-py")
    command = [program, "environment", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml"]
    command += ["--output-format", "JSON", "--output-file", target, sys.executable]
    subprocess.run(list(map(str, command)), check=True)


def main() -> int:
    once = "--once" in sys.argv
    directory = Path(next((word for word in sys.argv[1:] if not word.startswith("-")), ROOT / "dist"))
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("bhemu*"):
        old.unlink()
    first = build(directory)
    if not once:
        with tempfile.TemporaryDirectory() as folder:
            second = build(Path(folder))
            different = [
                a.name for a, b in zip(first, second, strict=True) if a.name != b.name or not filecmp.cmp(a, b, False)
            ]
            if different:
                print(f"two builds differ: {', '.join(different)}", file=sys.stderr)
                return 1
    bill_of_materials(directory / "bhemu.cdx.json")
    print("\n".join(f"{file.stat().st_size:>10,} {file.name}" for file in sorted(directory.glob("bhemu*"))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
