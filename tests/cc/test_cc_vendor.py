"""The launchers that stand in for the vendor's tools, and the view of an LLK tree that has them."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from bhemu.cc import CompileError, LlkTree, Toolchain, write_llk_home, write_vendor_tools
from bhemu.isa import encode, from_ttinsn

VENDOR_FLAGS = (
    *("-g", "-O3", "-std=c++17", "-ftt-nttp", "-ftt-constinit", "-ftt-consteval", "-ftt-no-dyninit", "-ffast-math"),
    *("-fno-exceptions", "-fno-rtti", "-Wall", "-Werror", "-Wno-error=deprecated-declarations", "-Wunused-parameter"),
    "-mno-tt-fix-whbhebreak",
)

SOURCE = """
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <lltt.h>
template <auto Value> struct Holder { static constexpr int value = Value; };
#if __riscv_xtttensixbh
extern "C" int tensix(int unused) {
    asm volatile(".ttinsn %0" ::"n"(0xB2010000u));
    lltt::record<lltt::Exec>(3, 5);
    lltt::replay(3, 5);
    return Holder<2>::value;
}
#endif
extern "C" void _start() { asm volatile("fence rw, rw"); }
"""


@pytest.fixture(scope="module")
def tools(cxx: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vendor_tools(tmp_path_factory.mktemp("the tools")) / "compiler" / "bin"


def gxx(tools: Path, *arguments: object, source: str = SOURCE) -> subprocess.CompletedProcess[str]:
    command = [str(tools / "riscv-tt-elf-g++"), *map(str, arguments)]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


def test_the_vendors_arguments_compile_and_link(tools: Path, tmp_path: Path) -> None:
    target = tmp_path / "k.elf"
    link = ["-nostdlib", "-nostartfiles", "-Wl,-z,max-page-size=16", "-x", "c++", "-", "-lc", "-lgcc", "-o", target]
    done = gxx(tools, "-mcpu=tt-bh-tensix", *VENDOR_FLAGS, *link)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # -Werror is dropped, and so are the warnings
    binary = tmp_path / "k.bin"
    subprocess.run([tools / "riscv-tt-elf-objcopy", "-O", "binary", "-j", ".text", target, binary], check=True)
    code = binary.read_bytes()
    words = [from_ttinsn(word) for (word,) in struct.iter_unpack("<I", code) if word & 3 != 3]
    assert words == [0xB2010000, encode("REPLAY", 3, 5, 1, 1), encode("REPLAY", 3, 5, 0, 0)]


def test_a_core_without_the_coprocessor_is_told_so(tools: Path, tmp_path: Path) -> None:
    done = gxx(tools, "-mcpu=tt-bh", *VENDOR_FLAGS, "-x", "c++", "-", "-c", "-o", tmp_path / "k.o")
    assert done.returncode == 0, done.stderr
    listing = subprocess.run(
        [tools / "riscv-tt-elf-nm", tmp_path / "k.o"], capture_output=True, text=True, check=True
    ).stdout
    assert "_start" in listing
    assert "tensix" not in listing


def test_other_chips_are_refused(tools: Path) -> None:
    done = gxx(tools, "-mcpu=tt-wh-tensix", "-x", "c++", "-", "-c", "-o", "/dev/null")
    assert done.returncode == 1
    assert "Blackhole only" in done.stderr


def test_vector_operations_are_refused_when_code_needs_them(tools: Path, tmp_path: Path) -> None:
    unused = "#include <sfpi.h>\ntemplate <int N> void f() { sfpi::dst_reg[N] = sfpi::vFloat(1.0f) * 2.0f; }\n"
    compiling = ["-mcpu=tt-bh-tensix", *VENDOR_FLAGS, "-x", "c++", "-", "-c", "-o", tmp_path / "k.o"]
    assert gxx(tools, *compiling, source=unused).returncode == 0
    raw = "unsigned f() { return sfpi::SFPLOADI_MOD0_LOWER; }\n"
    assert gxx(tools, *compiling, source="#include <sfpi.h>\n" + raw).returncode == 0
    used = gxx(tools, *compiling, source=unused + "void g() { f<0>(); }")
    assert used.returncode != 0
    assert "needs the vendor's SFPU compiler (sfpi)" in used.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "sfpi::vFloat x = sfpi::dst_reg[0]; sfpi::dst_reg[1] = x;",
        "v_if (sfpi::dst_reg[0] < 0.0f) { sfpi::dst_reg[0] = 1.0f; } v_else { sfpi::dst_reg++; } v_endif;",
        "sfpi::l_reg[sfpi::LRegs::LReg1] = sfpi::vConstFloatPrgm0;",
        "sfpi::vInt e = sfpi::exexp(sfpi::vConst1);",
        "sfpi::vUInt u = sfpi::as<sfpi::vUInt>(sfpi::vConst1);",
    ],
)
def test_every_vector_construct_is_refused_and_none_is_dropped(tools: Path, tmp_path: Path, statement: str) -> None:
    source = f"#include <sfpi.h>\nvoid f() {{ {statement} }}\n"
    done = gxx(
        tools, "-mcpu=tt-bh-tensix", *VENDOR_FLAGS, "-x", "c++", "-", "-c", "-o", tmp_path / "k.o", source=source
    )
    assert done.returncode != 0
    assert "needs the vendor's SFPU compiler (sfpi)" in done.stderr


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
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return LlkTree(root / "tt_metal" / "tt-llk")


def test_a_view_has_the_tools_and_leaves_the_tree_alone(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "tree")
    before = {path: path.read_text() for path in tree.metal.rglob("*") if path.is_file()}
    for _ in range(2):  # a view may be written again
        home = write_llk_home(tmp_path / "view", tree)
        assert home == tmp_path / "view" / "tt_metal" / "tt-llk"
        assert (home / "tests/sfpi/compiler/bin/riscv-tt-elf-g++").is_file()
        assert (home / "tests/sfpi/include/lltt.h").is_file()
        assert (home / "tests" / ".." / ".." / "hw" / "inc" / "tensix.h").is_file()
        (home / "tests" / "python_tests" / "log").write_text("written by the harness")
        (home / "tests" / "sources" / "made.cpp").write_text("written by the harness")
        changed = home / "tt_llk_blackhole/common/inc/sfpu/a.h"
        assert "unroll" not in changed.read_text()
        assert not changed.is_symlink()
        assert (home / "tt_llk_blackhole/common/inc/sfpu/b.h").read_text() == "#pragma GCC unroll 8\n"
        assert (home / "tt_llk_blackhole/llk_lib/llk.h").is_file()
    assert {path: path.read_text() for path in tree.metal.rglob("*") if path.is_file()} == before


def test_a_constant_made_from_a_callable_compiles_in_the_view(cxx: Toolchain, tmp_path: Path) -> None:
    home = write_llk_home(tmp_path / "view", fake_tree(tmp_path / "tree"))
    header = home / "tt_llk_blackhole/common/inc/table.h"
    assert not header.is_symlink()
    source = f'#include "{header}"\nint value = checked([](int i) {{ return i * i; }});\n'
    tools = home / "tests" / "sfpi" / "compiler" / "bin"
    done = gxx(tools, "-ftt-nttp", "-x", "c++", "-", "-c", "-o", tmp_path / "k.o", source=source)
    assert done.returncode == 0, done.stderr


def test_a_view_replaces_nothing_else(cxx: Toolchain, tmp_path: Path) -> None:
    tree = fake_tree(tmp_path / "tree")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(CompileError, match="holds something else"):
        write_llk_home(tmp_path / "mine", tree)
    assert (tmp_path / "mine" / "file").read_text() == "mine"
