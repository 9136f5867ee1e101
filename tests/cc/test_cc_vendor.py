"""The launchers that replace the vendor's tools."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from bhemu.cc import Toolchain, write_vendor_tools
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


def test_constants_of_the_vector_language_need_no_code_before_main(tools: Path, tmp_path: Path) -> None:
    """tt-metal refuses kernels with constructors of globals."""
    target = tmp_path / "k.o"
    source = "#include <sfpi.h>\nint main() { return 0; }\n"
    done = gxx(tools, "-mcpu=tt-bh-tensix", *VENDOR_FLAGS, "-x", "c++", "-", "-c", "-o", target, source=source)
    assert done.returncode == 0, done.stderr
    listing = subprocess.run([tools / "riscv-tt-elf-objdump", "-h", target], capture_output=True, text=True, check=True)
    assert ".text" in listing.stdout
    assert "init_array" not in listing.stdout


def test_sources_meet_in_link_time_optimisation(tools: Path, tmp_path: Path) -> None:
    """As tt-metal links: several sources in one assembly, and the libraries that a C++ driver names by itself."""
    flags = ["-mcpu=tt-bh-tensix", *VENDOR_FLAGS, "-flto=1"]
    for number in (1, 2):
        source = f'extern "C" int f{number}() {{ asm volatile(".ttinsn %0" ::"n"({number})); return {number}; }}\n'
        done = gxx(tools, *flags, "-x", "c++", "-", "-c", "-o", tmp_path / f"{number}.o", source=source)
        assert done.returncode == 0, done.stderr
    start = 'extern "C" int f1(), f2();\nextern "C" void _start() { f1(); f2(); }\n'
    done = gxx(tools, *flags, "-x", "c++", "-", "-c", "-o", tmp_path / "start.o", source=start)
    assert done.returncode == 0, done.stderr
    objects = [tmp_path / name for name in ("start.o", "1.o", "2.o")]
    done = gxx(tools, *flags, "-nostartfiles", *objects, "-o", tmp_path / "k.elf")
    assert done.returncode == 0, done.stderr
    code = tmp_path / "k.bin"
    subprocess.run(
        [tools / "riscv-tt-elf-objcopy", "-O", "binary", "-j", ".text", tmp_path / "k.elf", code], check=True
    )
    words = [word >> 2 for (word,) in struct.iter_unpack("<I", code.read_bytes()) if word & 3 != 3]
    assert sorted(words) == [1, 2]
