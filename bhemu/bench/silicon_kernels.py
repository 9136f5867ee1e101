"""Measuring SFPU kernels of the LLK as its own performance suite does for math alone (MATH_ISOLATE), in timed mode.

Core T0 hands both source banks over again and again without data; core T1 copies SrcA to Dst and executes the
operation, a tile at a time. The headers are those of an installed LLK, by whose version figures differ: `BHEMU_LLK`
names it, `BHEMU_SFPI` the vendor's compiler.
"""

from __future__ import annotations

import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from bhemu.api.machine import Machine
from bhemu.bench.silicon_micro import NotReproduced
from bhemu.cc import CompileError, MissingTool, compile_kernel, find_llk
from bhemu.errors import BhemuError
from bhemu.isa.tile_registers import address_of

TILES: Final = 32
ITERATIONS: Final = 32
"""Of a call of the kernel: a tile, as the suite's performance tests call it."""
_RESULT: Final = 0x100000
_MOST_CLOCKS: Final = 10_000_000

_GLOBALS: Final = """
#include <cstdint>
#include "ckernel.h"
#include "ckernel_defs.h"
#include "ckernel_ops.h"
#include "llk_defs.h"
std::uint32_t unp_cfg_context = 0, pack_sync_tile_dst_ptr = 0, math_sync_tile_dst_index = 0;
namespace ckernel {
volatile std::uint32_t tt_reg_ptr *pc_buf_base = (volatile std::uint32_t tt_reg_ptr *)PC_BUF_BASE;
volatile std::uint32_t tt_reg_ptr *regfile = (volatile std::uint32_t tt_reg_ptr *)REGFILE_BASE;
std::uint32_t cfg_state_id = 0, dest_offset_id = 0;
}
"""
_UNPACK: Final = """
int main() {
    for (int i = 0; i < K_COPY * 4 * K_TILES; i++) {
        TTI_STALLWAIT(ckernel::p_stall::STALL_TDMA, ckernel::p_stall::SRCA_CLR | ckernel::p_stall::SRCB_CLR);
        TTI_SETDVALID(3);
    }
    return 0;
}
"""
_CLOCK: Final = address_of("control", "WALL_CLOCK_0")
_MATH: Final = """
static constexpr bool is_fp32_dest_acc_en = K_WIDE;
#include "llk_math_common.h"
#include "llk_math_eltwise_unary_datacopy.h"
#include "llk_math_eltwise_unary_sfpu.h"
#include "sfpu_operations.h"
using namespace ckernel;
int main() {
    constexpr auto half = DstSync::SyncHalf;
    constexpr std::uint32_t format = K_FORMAT, in_dst = K_WIDE ? 4 : 8;
    _llk_math_eltwise_unary_datacopy_init_<DataCopyType::A2D, is_fp32_dest_acc_en>(4, format);
    _llk_math_pack_sync_init_<half, is_fp32_dest_acc_en>();
    _llk_math_hw_configure_<is_fp32_dest_acc_en>(format, format);
    test_utils::call_unary_sfpu_operation_init<
        SfpuType::K_OPERATION, K_APPROX, is_fp32_dest_acc_en, K_ITERATIONS>(format);
    tensix_sync();
    volatile std::uint32_t *clock = (volatile std::uint32_t *)K_CLOCK, *result = (volatile std::uint32_t *)K_RESULT;
    const std::uint32_t begin = clock[0];
    for (std::uint32_t tile = 0; tile < K_TILES; tile += in_dst) {
        for (std::uint32_t i = 0; i < in_dst; i++) {
#if K_COPY
            _llk_math_eltwise_unary_datacopy_<DataCopyType::A2D, half, is_fp32_dest_acc_en, BroadcastType::NONE, false>(
                i, format, format);
#endif
            test_utils::call_unary_sfpu_operation<
                half, is_fp32_dest_acc_en, SfpuType::K_OPERATION, K_APPROX, is_fp32_dest_acc_en, K_ITERATIONS>(
                i, format);
        }
    }
    tensix_sync();
    result[0] = clock[0] - begin;
    return 0;
}
"""


@dataclass(frozen=True)
class SfpuKernel:
    """An operation as the LLK's suite calls it.

    Attributes:
        operation: of the headers' `SfpuType`.
        approximate: its mode of approximation.
        integer: 32-bit integers, which lie in Dst before it begins; otherwise bfloat16.
    """

    operation: str
    approximate: bool = False
    integer: bool = False


KERNELS: Final = MappingProxyType(
    {
        ("signbit", ""): SfpuKernel("signbit"),
        ("gelu", "exact"): SfpuKernel("gelu"),
        ("gelu", "approx"): SfpuKernel("gelu", approximate=True),
        ("gelu_tanh", ""): SfpuKernel("gelu_tanh"),
        ("sigmoid", "exact"): SfpuKernel("sigmoid"),
        ("sigmoid", "approx"): SfpuKernel("sigmoid", approximate=True),
        ("ceil", ""): SfpuKernel("ceil"),
        ("floor", ""): SfpuKernel("floor"),
        ("trunc", ""): SfpuKernel("trunc"),
        ("tanh", "exact"): SfpuKernel("tanh"),
        ("tanh", "approx"): SfpuKernel("tanh", approximate=True),
        ("exp", "exact"): SfpuKernel("exponential"),
        ("exp", "approx"): SfpuKernel("exponential", approximate=True),
        ("atan", ""): SfpuKernel("atan"),
        ("abs", ""): SfpuKernel("abs"),
        ("abs_int32", ""): SfpuKernel("abs_int32", integer=True),
        ("bitwise_not", ""): SfpuKernel("bitwise_not", integer=True),
        ("fill", ""): SfpuKernel("fill"),
    }
)
"""By operation and variant of `llk_sfpu_blackhole.csv`."""


def _compile(folder: Path, kernel: SfpuKernel) -> tuple[Path, Path]:
    sources = {"T0": ("unpack", _UNPACK), "T1": ("math", _MATH)}
    options = [
        f"-DK_TILES={TILES}",
        f"-DK_RESULT={_RESULT:#x}",
        f"-DK_CLOCK={_CLOCK:#x}",
        f"-DK_WIDE={'true' if kernel.integer else 'false'}",
        f"-DK_FORMAT={8 if kernel.integer else 5}",
        f"-DK_OPERATION={kernel.operation}",
        f"-DK_APPROX={'true' if kernel.approximate else 'false'}",
        f"-DK_ITERATIONS={ITERATIONS}",
        f"-DK_COPY={int(not kernel.integer)}",
    ]
    built = []
    for core, (name, text) in sources.items():
        source = folder / f"{name}.cpp"
        source.write_text(_GLOBALS + text)
        target = folder / f"{name}.elf"
        compile_kernel(
            [source], target, core=core, llk=find_llk(), sfpi=os.environ.get("BHEMU_SFPI") or None, options=options
        )
        built.append(target)
    return built[0], built[1]


@functools.lru_cache(maxsize=64)
def _measured(kernel: SfpuKernel) -> float | str:
    with tempfile.TemporaryDirectory(prefix="bhemu-llk-") as folder:
        try:
            unpack, math = _compile(Path(folder), kernel)
        except MissingTool as error:
            return f"no LLK headers or compiler: {error.message.splitlines()[0]}"
        except CompileError:
            return "the installed LLK does not have the kernel in this form"
        machine = Machine(timed=True, allow_open=True)
        try:
            machine.load(unpack, "T0")
            machine.load(math, "T1")
            machine.start()
            machine.run(max_clocks=_MOST_CLOCKS)
        except BhemuError as error:
            return str(error).splitlines()[0]
        return float(machine.tile.record.l1_u32[_RESULT >> 2]) / TILES


def cycles_per_tile(operation: str, variant: str) -> float:
    """Cycles that an operation takes for a tile of 32x32.

    Raises:
        NotReproduced: it is not known, or cannot be compiled or run here.
    """
    kernel = KERNELS.get((operation, variant))
    if kernel is None:
        raise NotReproduced("the kernel is not among those that are built here")
    found = _measured(kernel)
    if isinstance(found, str):
        raise NotReproduced(found)
    return found
