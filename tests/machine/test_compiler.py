"""The compile cache: what it answers, and that it never answers with code of another source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.machine.compiler import JIT, files_reached

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled with Numba disabled")

PACKAGE = Path(__file__).resolve().parents[2] / "bhemu"

# Executes SETADCXX in a process of its own; prints what was compiled and the counter that it set. Only the handler and
# one other entry are compiled: the front end, which `Tile.execute` needs, takes ten times as long.
SCRIPT = """
from bhemu.machine import compiler
import bhemu.tensix.units
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.machine.state import new_tiles
from bhemu.tensix.frontend.run import push_entry
from bhemu.tensix.instruction import HANDLERS
compiler.on_compile(lambda name: print("compiled", name))
tiles = new_tiles()
compiler.compile_entry("fifo_push", push_entry, arguments=3)
handler = HANDLERS[INSTRUCTIONS["SETADCXX"].opcode]
entry = compiler.compile_entry("SETADCXX", handler.function, source=handler.source)
entry.call(tiles.ctypes.data, 0, assemble("SETADCXX 1, 15, 3"))
print("x", int(tiles[0].adc[0, 0, 0]))
"""
EXECUTE = """
from bhemu.machine import compiler
from bhemu.api.tile import Tile
compiler.on_compile(lambda name: print("compiled", name))
Tile().execute(0, "SETADCXX 1, 15, 3")
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that a test may edit."""
    target = tmp_path / "bhemu"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", "vectors"))
    return target


def run(copy: Path, script: str = SCRIPT) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "BHEMU_CACHE": str(copy.parent / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=copy.parent, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_the_second_process_compiles_nothing(copy: Path) -> None:
    first = run(copy)
    assert "compiled SETADCXX" in first
    assert run(copy) == ["x 3"]


def test_an_edit_of_a_function_in_another_module_is_seen(copy: Path) -> None:
    run(copy)
    callee = copy / "machine" / "counters.py"
    text = callee.read_text()
    assert "CH0_X: Final = 0" in text
    callee.write_text(
        text.replace("CH0_X: Final = 0", "CH0_X: Final = 1").replace("CH0_Y: Final = 1", "CH0_Y: Final = 0")
    )
    after = run(copy)
    assert "compiled SETADCXX" in after
    assert after[-1] == "x 0"


STAMP = """
from pathlib import Path
import bhemu
from bhemu.machine.compiler import module_stamp
print(module_stamp(Path(bhemu.__file__).parent / "tensix" / "units.py").hex())
"""
COUNTERS = Path("machine") / "counters.py"


def edited(copy: Path, old: str, new: str) -> list[str]:
    """The stamp of the handlers before and after an edit of a module that they reach."""
    stamps = run(copy, STAMP)
    callee = copy / COUNTERS
    text = callee.read_text()
    assert text.count(old) >= 1
    callee.write_text(text.replace(old, new, 1))
    return stamps + run(copy, STAMP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CH0_X: Final = 0", "CH0_X: Final = 0  # a comment"),
        ("CH0_X: Final = 0", "\n\nCH0_X:Final=(\n    0)"),
        ("CH0_X: Final = 0", 'CH0_X: Final = 0\n"""What follows a constant."""'),
        ('"""', '"""Reads behaviour.toml. '),
    ],
    ids=["comment", "formatting", "string below a constant", "docstring that names a table"],
)
def test_an_edit_of_text_that_is_not_code_keeps_the_stamp(copy: Path, old: str, new: str) -> None:
    before, after = edited(copy, old, new)
    assert before == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("CH0_X: Final = 0", "CH0_X: Final = 7"),
        ("CH0_X: Final = 0", 'CH0_X: Final = 0\n_TABLE = "behaviour.toml"'),
        ("CH0_X: Final = 0", "CH0_X: Final = 0\nimport bhemu.cli.warm"),
    ],
    ids=["constant", "string", "import"],
)
def test_an_edit_of_code_changes_the_stamp(copy: Path, old: str, new: str) -> None:
    before, after = edited(copy, old, new)
    assert before != after


def test_another_layout_of_the_record_is_seen(copy: Path) -> None:
    """Also where the function does not reach the module that lays the record out."""
    run(copy)
    state = copy / "machine" / "state.py"
    text = state.read_text()
    first = '    ("dst", "u2", (1024, 16)),'
    assert text.count(first) == 1
    state.write_text(text.replace(first, '    ("unused", "u2", (1024, 16)),\n' + first))
    after = run(copy)
    assert "compiled SETADCXX" in after
    assert after[-1] == "x 3"


def test_an_edit_of_a_docstring_compiles_nothing(copy: Path) -> None:
    run(copy)
    callee = copy / COUNTERS
    callee.write_text('"""Longer.\n\n' + callee.read_text().removeprefix('"""'))
    assert run(copy) == ["x 3"]


@pytest.mark.parametrize("name", ["instructions.toml", "config_registers.tsv"])
def test_an_edit_of_a_table_is_seen(copy: Path, name: str) -> None:
    run(copy)
    table = copy / "isa" / "data" / name
    table.write_text(table.read_text() + "# edited\n")
    assert "compiled SETADCXX" in run(copy)


def test_an_edit_of_a_table_that_no_handler_reads_compiles_nothing(copy: Path) -> None:
    run(copy)
    table = copy / "isa" / "data" / "behaviour.toml"
    table.write_text(table.read_text() + "\n# edited\n")
    assert run(copy) == ["x 3"]


def test_every_table_is_named_by_the_module_that_reads_it() -> None:
    modules = [*sorted((PACKAGE / "isa").glob("*.py")), PACKAGE / "riscv/encodings.py"]
    for table in (PACKAGE / "isa" / "data").iterdir():
        assert any(table in files_reached(module) for module in modules), table.name


@pytest.mark.parametrize(
    "module",
    [
        *(
            "tensix/unpack/unpacr.py",
            "tensix/matrix/moves.py",
            "riscv/execute.py",
            "riscv/slow.py",
            "riscv_vector/execute.py",
        ),
        *("tile/schedule.py", "tile/memory_map.py", "chip/clock/run.py", "chip/pcie/direct.py", "cluster/clock.py"),
        *("timed/schedule.py", "timed/chip_clock.py", "timed/cluster_clock.py"),
        *("recording/core_clock.py", "recording/row_code.py", "counting/clock.py"),
    ],
)
def test_compiled_code_does_not_depend_on_what_the_package_offers_its_users(module: str) -> None:
    """`from bhemu import checks` would: the package's own text names all rooms, so any edit would compile all again."""
    reached = files_reached(PACKAGE / module)
    assert PACKAGE / "__init__.py" not in reached
    rooms = {path.relative_to(PACKAGE).parts[0] for path in reached}
    assert not rooms & {"api", "cc", "loader", "programs", "capi", "cli", "debugger"}, rooms


def test_a_damaged_cache_file_is_compiled_again(copy: Path) -> None:
    run(copy)
    for path in (copy.parent / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    after = run(copy)
    assert "compiled SETADCXX" in after
    assert after[-1] == "x 3"


def test_a_cache_file_under_another_name_is_compiled_again(copy: Path) -> None:
    run(copy)
    cache = copy.parent / "cache"
    target = next(cache.glob("SETADCXX-*"))
    next(cache.glob("fifo_push-*")).replace(target)
    after = run(copy)
    assert {"compiled SETADCXX", "compiled fifo_push"} <= set(after)
    assert after[-1] == "x 3"
    assert run(copy) == ["x 3"]


def test_a_cache_that_cannot_be_written_is_no_error(copy: Path) -> None:
    (copy.parent / "cache").write_text("a file where the folder should be")
    assert run(copy)[-1] == "x 3"


def test_only_what_a_program_uses_is_compiled(copy: Path) -> None:
    compiled = {line.split()[1] for line in run(copy, EXECUTE) if line.startswith("compiled")}
    assert compiled == {"SETADCXX", "fifo_push", "drain"} | (compiled & {"run"})


def test_code_of_a_module_edited_while_the_process_runs_is_not_kept(copy: Path) -> None:
    script = SCRIPT.replace(
        "tiles = new_tiles()",
        "import pathlib, os, time, bhemu.tensix.adc as adc\n"
        "path = pathlib.Path(adc.__file__); later = time.time() + 5; os.utime(path, (later, later))\n"
        "tiles = new_tiles()",
    )
    cache = copy.parent / "cache"
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "BHEMU_CACHE": str(cache)}
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=copy.parent, check=True, capture_output=True)
    assert not list(cache.glob("SETADCXX-*"))


# Two objects with a copy of one function each, and all memory within 4 GiB of the first taken before the second.
FAR = """
import ctypes
from bhemu.machine.codegen import compile_function, load_object, object_file
from bhemu.machine.kernel import kernel
from bhemu.machine.state import TILE_TYPE

lines = [f"    a = (a * {n + 3}) ^ (a >> 2) if a & {n + 1} else a + (a << 3)" for n in range(200)]  # no inlining
exec("\\n".join(["def shared(a):", *lines, "    return a"]))
shared = kernel(shared)

def entry(t, a, b):
    return shared(a) + shared(b)

symbol, library = compile_function(entry, None, 2, TILE_TYPE)
content = object_file(library)
first = load_object(symbol, content)
mmap = ctypes.CDLL(None).mmap
mmap.restype, mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
NOTHING, PRIVATE_ANONYMOUS = 0, 0x22
size = 64 << 20
while size >= 4096:
    while mmap(None, size, NOTHING, PRIVATE_ANONYMOUS, -1, 0) > first - (4 << 30):
        pass
    size //= 4
second = load_object(symbol, content)
call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
print(first - second > 2 << 30, call(first)(None, 2, 3) == call(second)(None, 2, 3))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers of mmap's flags are Linux's")
def test_objects_may_lie_further_apart_than_their_code_reaches() -> None:
    done = subprocess.run([sys.executable, "-c", FAR], check=False, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr
