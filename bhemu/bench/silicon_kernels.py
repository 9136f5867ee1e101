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
#include "llk_math_eltwise_binary_sfpu.h"
#include "sfpu_operations.h"
using namespace ckernel;
int main() {
    constexpr auto half = DstSync::SyncHalf;
    constexpr std::uint32_t format = K_FORMAT, in_dst = K_WIDE ? 4 : 8;
    _llk_math_eltwise_unary_datacopy_init_<DataCopyType::A2D, is_fp32_dest_acc_en>(4, format);
    _llk_math_pack_sync_init_<half, is_fp32_dest_acc_en>();
    _llk_math_hw_configure_<is_fp32_dest_acc_en>(format, format);
    K_INIT;
    tensix_sync();
    volatile std::uint32_t *clock = (volatile std::uint32_t *)K_CLOCK, *result = (volatile std::uint32_t *)K_RESULT;
    const std::uint32_t begin = clock[0];
    for (std::uint32_t tile = 0; tile < K_TILES; tile += in_dst) {
        for (std::uint32_t i = 0; i < in_dst; i++) {
#if K_COPY
            _llk_math_eltwise_unary_datacopy_<DataCopyType::A2D, half, is_fp32_dest_acc_en, BroadcastType::NONE, false>(
                i, format, format);
#endif
            K_CALL;
        }
    }
    tensix_sync();
    result[0] = clock[0] - begin;
    return 0;
}
"""


_CALLS: Final = {
    "unary": (
        "test_utils::call_unary_sfpu_operation_init<SfpuType::{name}, {approximate}, is_fp32_dest_acc_en, "
        "{rows}>(format)",
        "test_utils::call_unary_sfpu_operation<half, is_fp32_dest_acc_en, SfpuType::{name}, {approximate}, "
        "is_fp32_dest_acc_en, {rows}>(i, format)",
    ),
    "binary": (
        "test_utils::call_binary_sfpu_operation_init<{approximate}, is_fp32_dest_acc_en, BinaryOp::{name}, {rows}, "
        "format>()",
        "test_utils::call_binary_sfpu_operation<half, is_fp32_dest_acc_en, {approximate}, BinaryOp::{name}, {rows}, "
        "format, false>(i, (i + 1) % in_dst, i)",
    ),
    "ternary": (
        "test_utils::call_ternary_sfpu_operation_init<SfpuType::{name}, {approximate}, is_fp32_dest_acc_en>()",
        "test_utils::call_ternary_sfpu_operation<half, is_fp32_dest_acc_en, SfpuType::{name}, {approximate}, "
        "is_fp32_dest_acc_en, (DataFormat){logical}, 8>(i, (i + 1) % in_dst, (i + 2) % in_dst, i, 0x40000000u, "
        "VectorMode::RC)",
    ),
}
"""How the suite begins and calls an operation of a number of operands."""

_FORMATS: Final = MappingProxyType({"Float32": 0, "Float16": 1, "Bfp8": 2, "Float16_b": 5, "Bfp8_b": 6, "Int32": 8})
"""Codes of data formats (rules I.1)."""
_TF32: Final = 4

# The suite's performance tests leave assertions out. Its measured kernels had their loops over the rows of a tile
# unrolled; the headers of today leave some of that to the compiler.
_OPTIONS: Final = (
    "-UENABLE_LLK_ASSERT",
    f"--param=max-completely-peel-times={ITERATIONS}",
    "--param=max-completely-peeled-insns=2000",
)


@dataclass(frozen=True)
class SfpuKernel:
    """An operation as the LLK's suite calls it.

    Attributes:
        operation: of the headers' `SfpuType`, or `BinaryOp`.
        operands: "unary", "binary" or "ternary": how many tiles of Dst it reads.
        approximate: its mode of approximation.
        data_format: of the tiles, as the suite names it.
        wide: Dst holds 32-bit values.
        copied: math copies each tile to Dst first; otherwise the unpacker has written it there.
    """

    operation: str
    operands: str = "unary"
    approximate: bool = False
    data_format: str = "Float16_b"
    wide: bool = False
    copied: bool = True


_BINARY: Final = MappingProxyType(
    {
        "sfpu_elwadd": "ADD",
        "sfpu_elwsub": "SUB",
        "sfpu_elwmul": "MUL",
        "sfpu_elwdiv": "DIV",
        "sfpu_elwrsub": "RSUB",
        "sub/rsub/and int32 binary": "SUB",
        "and": "BITWISE_AND",
        "or": "BITWISE_OR",
        "xor": "BITWISE_XOR",
        "rsub_int32": "RSUB_INT32",
        "mul_int32": "MUL_INT32",
    }
)
"""Binary operations by name."""
_TERNARY: Final = ("addcmul", "addcdiv", "lerp", "snake_beta", "where")
_SAME: Final = MappingProxyType(
    {"exp": "exponential", "sin": "sine", "cos": "cosine", "recip": "reciprocal", "add_int32/sub_int32": "add_int32"}
)
"""Operations that the headers name in another way."""


def kernel_of(operation: str, variant: str, data_format: str) -> SfpuKernel:
    """What a row of `llk_sfpu_blackhole.csv` has measured, by its columns.

    Raises:
        NotReproduced: it was measured in another way than the suite's performance tests do.
    """
    name, how = operation.strip(), variant.strip()
    if any(word in how for word in ("SDPA",)):
        raise NotReproduced("it was measured within another kernel")
    layout = data_format.strip() or "Float16_b"
    if layout not in _FORMATS:
        raise NotReproduced(f"no kernel is built here for {layout}")
    in_place = "unpack_to_dest" in how
    wide = "32-bit" in how or layout == "Int32"
    copied = not in_place and layout != "Int32"
    approximate = how.startswith("approx")
    if name in _TERNARY:
        return SfpuKernel(name, "ternary", approximate, layout, wide, copied)
    if name in _BINARY:
        return SfpuKernel(_BINARY[name], "binary", approximate, layout, wide, copied)
    name = _SAME.get(name, name)
    if not name.isidentifier():
        raise NotReproduced("the kernel is not among those that are built here")
    return SfpuKernel(name, "unary", approximate, layout, wide, copied)


def _compile(folder: Path, kernel: SfpuKernel) -> tuple[Path, Path]:
    logical = _FORMATS[kernel.data_format]
    parts = {
        "name": kernel.operation,
        "approximate": "true" if kernel.approximate else "false",
        "rows": ITERATIONS,
        "logical": logical,
    }
    begin, call = (text.format(**parts) for text in _CALLS[kernel.operands])
    calls = f"#define K_INIT {begin}\n#define K_CALL {call}\n"
    sources = {"T0": ("unpack", _UNPACK), "T1": ("math", calls + _MATH)}
    options = [
        f"-DK_TILES={TILES}",
        f"-DK_RESULT={_RESULT:#x}",
        f"-DK_CLOCK={_CLOCK:#x}",
        f"-DK_WIDE={'true' if kernel.wide else 'false'}",
        f"-DK_FORMAT={_TF32 if kernel.data_format == 'Float32' else logical}",
        f"-DK_COPY={int(kernel.copied)}",
        *_OPTIONS,
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


def cycles_per_tile(operation: str, variant: str, data_format: str = "") -> float:
    """Cycles that an operation takes for a tile of 32x32.

    Args:
        operation, variant, data_format: columns of `llk_sfpu_blackhole.csv`.

    Raises:
        NotReproduced: it is not known, or cannot be compiled or run here.
    """
    found = _measured(kernel_of(operation, variant, data_format))
    if isinstance(found, str):
        raise NotReproduced(found)
    return found
