"""Memory of a tile that will move soon is fetched into the processor's caches while another tile moves.

A tile that runs translated code up to the end of a span takes less than a microsecond. What it touches of its record
is some forty cache lines in nine pages. With many chips the lines are in no cache, and the pages in no translation
buffer, when its turn comes. Fetched one after the other they take longer than what the tile does.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types

from bhemu.machine.agents import CORES
from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic, kernel
from bhemu.machine.state import TILE, offset_of
from bhemu.machine.types import AnyInt, Int, TileRecord

_LINE: Final = 64
_CONTROL: Final = offset_of(TILE, "config_dirty")
_CORES: Final = offset_of(TILE, "core_state")
_FLOATS: Final = offset_of(TILE, "core_f")
_INTEGERS: Final = offset_of(TILE, "core_round")
_CORES_END: Final = offset_of(TILE, "core_stream_scratch")
_LOOPS: Final = offset_of(TILE, "core_loops")
_POLLS: Final = offset_of(TILE, "poll_pc")
_POLL_BYTES: Final = TILE["poll_pc"].itemsize // CORES
_ROUNDS: Final = offset_of(TILE, "round_goal")
_CLOCK: Final = offset_of(TILE, "clock")
_DEBUG: Final = offset_of(TILE, "debug_half_step")

if JIT:

    @intrinsic
    def prefetch(typingctx: Any, address: Int) -> Any:
        """Fetch the cache line at an address of this process while what follows is executed; any address will do."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            i8, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [i8, i32, i32, i32])
            name = "llvm.prefetch.p0i8"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            read, most, data = (ir.Constant(i32, value) for value in (0, 3, 1))
            builder.call(function, [builder.inttoptr(args[0], i8), read, most, data])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

else:

    def prefetch(address: Int) -> None:
        """A hint, without which everything is the same."""


@kernel
def fetch_record(start: Int) -> None:
    """Fetch what a turn of cores touches of the record of a tile, which is at an address of this process."""
    for at in range(_CORES, _FLOATS, _LINE):
        prefetch(start + at)
    for at in range(_INTEGERS, _CORES_END, _LINE):
        prefetch(start + at)
    for core in range(CORES):
        prefetch(start + _POLLS + core * _POLL_BYTES)
    prefetch(start + _CONTROL)
    prefetch(start + _CONTROL + _LINE)
    prefetch(start + _LOOPS)
    prefetch(start + _ROUNDS)
    prefetch(start + _ROUNDS + _LINE)
    prefetch(start + _CLOCK)
    prefetch(start + _CLOCK + _LINE)
    prefetch(start + _DEBUG)


@kernel
def fetch_code(t: TileRecord, l1: Int) -> None:
    """Fetch the code that the cores of a tile will execute first; its record should be there.

    Args:
        l1: where the tile's L1 is in this process.
    """
    for core in range(CORES):
        prefetch(l1 + np.int64(t.core_pc[core]))
