"""The five cores as a linker sees them: where each starts in L1 and how much local RAM it has (T14, T19)."""

from __future__ import annotations

from dataclasses import dataclass

from bhemu.cc.errors import CompileError
from bhemu.isa.memory_map import L1_SIZE, local_ram_bytes
from bhemu.machine.agents import CORE_NAMES


@dataclass(frozen=True, slots=True)
class Core:
    """One core.

    Attributes:
        name: B, T0, T1, T2 or NC.
        number: its place in `CORE_NAMES`.
        reset_pc: where it starts when nothing overrides it (T14).
        l1_length: bytes from there to the next core's start, so that kernels of all five cores fit side by side.
        local_length: bytes of local RAM.
        stack_least: bytes of local RAM that .data and .bss must leave.
    """

    name: str
    number: int
    reset_pc: int
    l1_length: int
    local_length: int
    stack_least: int

    @property
    def thread(self) -> int | None:
        """The Tensix thread that the core feeds; None for B and NC."""
        return int(self.name[1]) if self.name.startswith("T") else None

    @property
    def defines(self) -> tuple[str, ...]:
        """Macros by which a source knows the core."""
        names = [f"BHEMU_CORE={self.number}", f"BHEMU_CORE_{self.name}=1"]
        if self.thread is not None:
            names.append(f"BHEMU_THREAD={self.thread}")
        return tuple(f"-D{name}" for name in names)


_PLACES = {
    "B": (0x00000, 0x6000, 512),
    "T0": (0x06000, 0x4000, 256),
    "T1": (0x0A000, 0x4000, 256),
    "T2": (0x0E000, 0x4000, 256),
    "NC": (0x12000, 0x6000, 512),
}
CORES = {
    name: Core(name, CORE_NAMES.index(name), reset_pc, l1_length, local_ram_bytes(name), stack_least)
    for name, (reset_pc, l1_length, stack_least) in _PLACES.items()
}


def find_core(name: str) -> Core:
    """The core called `name`, in upper or lower case."""
    try:
        return CORES[name.upper()]
    except KeyError:
        raise CompileError(f"no core is called {name!r}", remedy=f"cores are {', '.join(CORES)}") from None


def l1_region(core: Core, text: int | None, length: int | None) -> tuple[int, int]:
    """Origin and length in L1 of a kernel for `core`.

    Args:
        core: the core.
        text: address of its first instruction; None for the reset pc.
        length: bytes that the kernel may take; None for the room to the next core's start, or to the end of L1 when
            `text` is given.

    Raises:
        CompileError: not in L1, or not a multiple of 16.
    """
    origin = core.reset_pc if text is None else text
    if length is None:
        length = core.l1_length if text is None else L1_SIZE - origin
    if origin % 16 or not 0 <= origin < L1_SIZE:
        raise CompileError(
            f"a kernel cannot start at 0x{origin:X}",
            remedy=f"give a multiple of 16 in L1, 0 to 0x{L1_SIZE - 16:X}",
        )
    if not 0 < length <= L1_SIZE - origin:
        raise CompileError(
            f"0x{length:X} bytes from 0x{origin:X} are not in L1",
            remedy=f"at most 0x{L1_SIZE - origin:X} fit",
        )
    return origin, length
