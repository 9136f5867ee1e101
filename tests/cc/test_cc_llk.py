"""Tenstorrent's LLK headers compile for the three T cores; skipped where no LLK tree is found (BHEMU_LLK)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bhemu.cc import CompileError, LlkTree, Toolchain, compile_kernel, write_llk_home
from bhemu.cc.llk import PARTS
from bhemu.cli.main import app
from bhemu.loader.elf import load_elf

KERNEL = """
#include <cstdint>
#include "ckernel.h"
#include "ckernel_globals.h"
#include "ckernel_helper.h"
#include "llk_defs.h"
std::uint32_t unp_cfg_context = 0, pack_sync_tile_dst_ptr = 0, math_sync_tile_dst_index = 0;
#if defined(LLK_TRISC_UNPACK)
#include "llk_unpack_A.h"
#include "llk_unpack_common.h"
void run() { _llk_unpack_hw_configure_<false>(5u, 5u, 5u, 5u, 16, 16, 4, 4); }
#elif defined(LLK_TRISC_MATH)
#include "llk_math_common.h"
#include "llk_math_eltwise_unary_datacopy.h"
void run() { _llk_math_pack_sync_init_<DstSync::SyncHalf, false>(); _llk_math_hw_configure_<false>(5, 5); }
#elif defined(LLK_TRISC_PACK)
#include "llk_pack.h"
#include "llk_pack_common.h"
void run() { _llk_packer_wait_for_math_done_(); }
#endif
int main() { run(); ckernel::tensix_sync(); return 0; }
"""


@pytest.mark.parametrize("part", PARTS)
def test_llk_headers_compile_for_their_core(llk: LlkTree, tmp_path: Path, part: str) -> None:
    (tmp_path / "k.cpp").write_text(KERNEL)
    target = tmp_path / "k.elf"
    result = CliRunner().invoke(
        app, ["cc", str(tmp_path / "k.cpp"), "-o", str(target), "--llk", str(llk.root), "--llk-core", part]
    )
    assert result.exit_code == 0, result.output
    assert f"core {PARTS[part]}," in result.output
    assert load_elf(target).address_of("main") is not None


def test_sfpu_intrinsics_are_refused_with_that_reason(llk: LlkTree, tmp_path: Path) -> None:
    body = "sfpi::vFloat x = sfpi::dst_reg[0]; sfpi::dst_reg[0] = x * x;"
    (tmp_path / "k.cpp").write_text(f'#include "ckernel.h"\n#include "sfpi.h"\nint main() {{ {body} return 0; }}')
    with pytest.raises(CompileError, match=r"it needs the vendor's SFPU compiler \(sfpi\)") as refused:
        compile_kernel([tmp_path / "k.cpp"], tmp_path / "k.elf", core="T1", llk=llk)
    assert "TTI_SFP" in str(refused.value.remedy)


def test_the_harness_firmware_builds_with_the_vendors_tools(llk: LlkTree, cxx: Toolchain, tmp_path: Path) -> None:
    if not (llk.root / "tests" / "helpers" / "src" / "brisc.cpp").is_file():
        pytest.skip(f"NO LLK HARNESS: {llk.root} has no tests/helpers")
    home = write_llk_home(tmp_path / "view", llk, cxx)
    scripts = [f"-Thelpers/ld/{name}.ld" for name in ("memory.blackhole", "brisc", "sections")]
    includes = "../tt_llk_blackhole/llk_lib ../tt_llk_blackhole/common/inc ../common ../../hw/inc helpers/include"
    includes += " ../tools/include ../../hw/inc/internal/tt-1xx/blackhole ../../hostdevcommon/api"
    defines = "TENSIX_FIRMWARE ENV_LLK_INFRA KERNEL_BUILD ARCH_BLACKHOLE LLK_BOOT_MODE_BRISC LLK_PERF_L1_MUX_GROUP=0"
    command = [
        "sfpi/compiler/bin/riscv-tt-elf-g++",
        *("-mcpu=tt-bh", "-g", "-O3", "-std=c++17", "-ftt-nttp", "-ftt-constinit", "-ftt-consteval", "-nostdlib"),
        *("-nostartfiles", "-fno-exceptions", "-fno-rtti", "-Wl,-z,max-page-size=16", "-Isfpi/include"),
        *(f"-I{path}" for path in includes.split()),
        *(f"-D{name}" for name in defines.split()),
        *scripts,
        *("-o", str(tmp_path / "brisc.elf"), "helpers/src/brisc.cpp"),
    ]
    done = subprocess.run(
        command, cwd=home / "tests", capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]}
    )
    assert done.returncode == 0, done.stderr
    firmware = load_elf(tmp_path / "brisc.elf")
    assert firmware.entry == 0
    assert firmware.address_of("__loader_init_start") == 0x4000
