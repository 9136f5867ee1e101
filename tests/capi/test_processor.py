"""The C library asks the processor for what its machine code needs (capi/processor.c)."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

import bhemu.capi
from bhemu.capi.machine_text import PROCESSOR_FEATURES
from tests.c_programs import compiler_or_skip

CAPI = Path(bhemu.capi.__file__).parent
PROGRAM = """
#include "processor.h"
#include "shim.h"
#include <stdio.h>
#include <stdlib.h>

void refuse(const char *function, const char *text, const char *remedy)
{
    (void)function, (void)remedy;
    puts(text);
    exit(3);
}

int main(void)
{
    check_processor();
    return 0;
}
"""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors are not asked")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Compile the program with this text behind it, and run it."""
    compiler = compiler_or_skip("THE PROCESSOR CHECK IS NOT TESTED")
    (folder / "program.c").write_text(PROGRAM + code)
    command = [*compiler, "-Wall", "-Werror", f"-I{CAPI}", str(folder / "program.c"), str(CAPI / "processor.c")]
    subprocess.run([*command, "-o", str(folder / "program")], check=True)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=False)


def row(name: str) -> str:
    return f'{{"{name}", {", ".join(map(str, PROCESSOR_FEATURES[name]))}}}, '


@pytest.mark.parametrize("name", sorted(PROCESSOR_FEATURES))
def test_it_says_what_the_compiler_says(tmp_path: Path, name: str) -> None:
    done = run(
        tmp_path,
        f"""
const struct feature machine_features[] = {{{row(name)}{{0}}}};
__attribute__((constructor)) static void say(void)
{{
    puts(__builtin_cpu_supports("{name}") ? "yes" : "no");
    fflush(stdout);
}}
""",
    )
    if done.stdout.startswith("yes"):
        assert done.returncode == 0
    else:
        assert done.returncode == 3
        assert f"this processor does not have {name}, which this library uses" in done.stdout


def test_what_a_processor_has_not_is_named(tmp_path: Path) -> None:
    """PREFETCHWT1, which Xeon Phi alone had."""
    text = f'const struct feature machine_features[] = {{{row("popcnt")}{{"prefetchwt1", 7, 2, 0, 0}}, {{0}}}};'
    done = run(tmp_path, text)
    assert (done.returncode, done.stdout) == (3, "this processor does not have prefetchwt1, which this library uses\n")


def test_a_library_of_any_processor_asks_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "const struct feature machine_features[] = {{0}};").returncode == 0
