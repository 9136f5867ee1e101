"""Programs of the cores that wait for each other in every way, for tests of their recorder."""

from __future__ import annotations

from bhemu import Tile
from bhemu.loader.elf import Executable, parse_elf
from bhemu.machine.agents import CORE_NAMES
from bhemu.recording import CoreRecorder
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.riscv.rv_asm import assemble_with_labels
from tests.riscv.rv_machine import START, put, release

WAITS = {
    # lets T1 wait for 800 rounds, then waits for it in a polling loop
    "B": """
        start: li t0, 400
        count: addi t0, t0, -1
               bnez t0, count
               li a0, 0xffec2000       # mailbox to T1
               li a1, 3
               sw a1, 0(a0)
               li a0, 0x20000
        poll:  lw a1, 0(a0)
               beqz a1, poll
               ebreak
    """,
    # polls a semaphore that T1 posts, then calculates
    "T0": """
        start: li a0, 0xffe80000
        poll:  lw a1, 0x24(a0)
               beqz a1, poll
               li a1, 6
               mul a2, a1, a1
               add a3, a2, a2
               div a4, a3, a1
               ebreak
    """,
    # waits for the mailbox, pushes more than its FIFO holds, waits for its thread, says that it is done
    "T1": """
        start: li t0, 12
               li a5, 0xffec0000       # mailbox from B
               lw a6, 0(a5)
        loop:  call push
               addi t0, t0, -1
               bnez t0, loop
               li a0, 0xffe80000
               sw zero, 0x24(a0)       # post semaphore 1
               lw a2, 4(a0)            # TTSync
               li a0, 0x20000
               li a1, 77
               sw a1, 0(a0)
               ebreak
        push:
    """
    + 21 * ".ttinsn 0x02000000\n"
    + "ret",
}
CLOCKS = 1500
PUSHED = 12 * 21


def programs(texts: dict[str, str]) -> dict[str, Executable]:
    """Their ELF files: each label without _ in front is a function up to the next one."""
    found = {}
    for core, text in texts.items():
        base = START[core]
        code, labels = assemble_with_labels(text, base)
        labels = {"start": base} | {name: at for name, at in labels.items() if not name.startswith("_")}
        ends = [*list(labels.values())[1:], base + len(code)]
        names = [Name(name, at, end - at) for (name, at), end in zip(labels.items(), ends, strict=True)]
        found[core] = parse_elf(make_elf((Load(base, code),), with_symbols(names), entry=base), f"{core}.elf")
    return found


def run(texts: dict[str, str], recorder: CoreRecorder | None = None, *, clocks: int = CLOCKS, calls: int = 1) -> Tile:
    """A tile that has run the programs, recorded or not; the clocks in equal parts."""
    tile = Tile()
    loaded = programs(texts)
    if recorder is not None:
        recorder.attach(tile, loaded)
    for core, executable in loaded.items():
        put(tile, START[core], executable.segments[0].content)
    release(tile, *(core for core in CORE_NAMES if core in texts))
    for _ in range(calls):
        tile.cores.advance(clocks // calls)
    return tile
