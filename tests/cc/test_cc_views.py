"""Views of other trees in which the launchers are where the vendor's compiler is looked for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bhemu.cc import CompileError, LlkTree, Toolchain, write_llk_home, write_metal_root

TABLE = """\
template <typename F> constexpr int three(F&& get) { return get(3); }
template <typename F>
constexpr int checked(F&& get)
{
    constexpr auto value = three(get);
    static_assert(value == 9);
    return value;
}
"""


def fake_tree(root: Path) -> LlkTree:
    files = {
        "tt_metal/tt-llk/tt_llk_blackhole/llk_lib/llk.h": "// plain\n",
        "tt_metal/tt-llk/tt_llk_blackhole/common/inc/sfpu/a.h": "template <int N> void f() {\n#pragma GCC unroll N\n"
        "for (int i = 0; i < N; i++) {}\n}\n",
        "tt_metal/tt-llk/tt_llk_blackhole/common/inc/sfpu/b.h": "#pragma GCC unroll 8\n",
        "tt_metal/tt-llk/tt_llk_blackhole/common/inc/table.h": TABLE,
        "tt_metal/tt-llk/tests/python_tests/test_x.py": "",
        "tt_metal/tt-llk/tests/sources/x.cpp": "",
        "tt_metal/tt-llk/tests/helpers/include/h.h": "",
        "tt_metal/hw/inc/tensix.h": "",
        "tt_metal/hw/ckernels/blackhole/metal/x.h": "#pragma GCC unroll N\n",
        "tt_metal/hw/toolchain/tmu-crt0.S": ".globl _start\n_start:\n  call main\n",
        "tt_metal/hw/toolchain/substitutes.cpp": '#include <tensix.h>\nextern "C" void exit(int) { for (;;) {} }\n',
        "tt_metal/hw/firmware/src/tt-1xx/tdma_xmov.c": "",
        "tt_metal/hw/firmware/src/tt-1xx/blackhole/noc.c": '#include "inner.h"\nint noc() { return INNER; }\n',
        "tt_metal/hw/inc/internal/tt-1xx/blackhole/noc/inner.h": "#define INNER 5\n",
        "runtime/hw/lib/blackhole/noc.o": "of the vendor's compiler",
        "runtime/hw/lib/blackhole/other.o": "other",
        "runtime/hw/lib/wormhole/noc.o": "wormhole",
        "runtime/hw/toolchain/blackhole/kernel.ld": "script",
        "runtime/sfpi/compiler/bin/riscv-tt-elf-g++": "the vendor's",
        "core.py": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return LlkTree(root / "tt_metal" / "tt-llk")


def test_a_view_has_the_tools_and_leaves_the_tree_alone(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "tree")
    before = {path: path.read_text() for path in tree.metal.rglob("*") if path.is_file()}
    for _ in range(2):  # a view may be written again
        home = write_llk_home(tmp_path / "view", tree, cxx)
        assert home == tmp_path / "view" / "tt_metal" / "tt-llk"
        assert (home / "tests/sfpi/compiler/bin/riscv-tt-elf-g++").is_file()
        assert (home / "tests/sfpi/include/lltt.h").is_file()
        assert (home / "tests" / ".." / ".." / "hw" / "inc" / "tensix.h").is_file()
        module = home / "tests" / "python_tests" / "test_x.py"
        assert module.resolve() == module  # the harness asks where its own modules are
        (home / "tests" / "python_tests" / "log").write_text("written by the harness")
        (home / "tests" / "sources" / "made.cpp").write_text("written by the harness")
        changed = home / "tt_llk_blackhole/common/inc/sfpu/a.h"
        assert "unroll" not in changed.read_text()
        assert not changed.is_symlink()
        assert (home / "tt_llk_blackhole/common/inc/sfpu/b.h").read_text() == "#pragma GCC unroll 8\n"
        assert (home / "tt_llk_blackhole/llk_lib/llk.h").is_file()
    assert {path: path.read_text() for path in tree.metal.rglob("*") if path.is_file()} == before


def test_a_constant_made_from_a_callable_compiles_in_the_view(cxx: Toolchain, tmp_path: Path) -> None:
    home = write_llk_home(tmp_path / "view", fake_tree(tmp_path / "tree"), cxx)
    header = home / "tt_llk_blackhole/common/inc/table.h"
    assert not header.is_symlink()
    source = f'#include "{header}"\nint value = checked([](int i) {{ return i * i; }});\n'
    tools = home / "tests" / "sfpi" / "compiler" / "bin"
    command = [tools / "riscv-tt-elf-g++", "-ftt-nttp", "-x", "c++", "-", "-c", "-o", tmp_path / "k.o"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_view_replaces_nothing_else(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "tree")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(CompileError, match="holds something else"):
        write_llk_home(tmp_path / "mine", tree, cxx)
    assert (tmp_path / "mine" / "file").read_text() == "mine"


def test_a_view_of_tt_metal(cxx: Toolchain, tmp_path: Path) -> None:
    """The package without the vendor's compiler and what it has compiled."""
    tree = fake_tree(tmp_path / "package")
    before = {path: path.read_text() for path in (tmp_path / "package").rglob("*") if path.is_file()}
    for _ in range(2):
        root = write_metal_root(tmp_path / "view", tree, cxx)
        assert root == tmp_path / "view"
        assert (root / "core.py").is_symlink()
        assert (root / "runtime/hw/toolchain/blackhole/kernel.ld").read_text() == "script"
        assert (root / "runtime/hw/lib/wormhole/noc.o").read_text() == "wormhole"
        objects = root / "runtime" / "hw" / "lib" / "blackhole"
        assert (objects / "other.o").read_text() == "other"
        for name in ("tmu-crt0.o", "substitutes.o", "noc.o", "tdma_xmov.o"):
            assert (objects / name).read_bytes().startswith(b"\x7fELF"), name
        assert "bhemu cc" in (root / "runtime/sfpi/compiler/bin/riscv-tt-elf-g++").read_text()
        assert "unroll" not in (root / "tt_metal/hw/ckernels/blackhole/metal/x.h").read_text()
        (root / "cache").mkdir()  # what tt-metal compiles
    assert {path: path.read_text() for path in (tmp_path / "package").rglob("*") if path.is_file()} == before


def test_a_view_of_tt_metal_says_what_does_not_compile(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "package")
    (tmp_path / "package/tt_metal/hw/toolchain/substitutes.cpp").write_text("int x = nothing;\n")
    with pytest.raises(CompileError, match=r"substitutes.cpp of .*package does not compile"):
        write_metal_root(tmp_path / "view", tree, cxx)


def test_a_view_of_tt_metal_needs_a_package(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "package")
    shutil.rmtree(tmp_path / "package" / "runtime")
    with pytest.raises(CompileError, match="has no runtime/hw/lib/blackhole"):
        write_metal_root(tmp_path / "view", tree, cxx)
    assert not (tmp_path / "view").exists()
