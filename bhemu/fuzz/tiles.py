"""Programs of all five cores of a tile, with Tensix words, atomics on shared words, and NoC requests to itself:
however its clocks are cut into pieces, whatever observes it, the tile's whole state must be the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError
from bhemu.fuzz import riscv_programs, words
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.machine import FuzzTile, Program
from bhemu.isa.assembler import to_ttinsn
from bhemu.isa.instruction_table import BY_OPCODE
from bhemu.isa.riscv import disassemble_riscv
from bhemu.isa.riscv_words import PARKED, riscv_word, set_register
from bhemu.isa.tile_registers import address_of, bit_of
from bhemu.loader.boot import start_stores
from bhemu.machine.agents import CORE_NAMES, CORES, T0, T2
from bhemu.machine.device_state import LONE_TILE
from bhemu.machine.state import state_field
from bhemu.recording import CoreRecorder

STARTS: Final = (0x0, 0x6000, 0xA000, 0xE000, 0x12000)
CLOCKS: Final = 3000
SHARED: Final = 0x20000
APART: Final = 0x800
"""Bytes between what two cores reach: neighbours share half of theirs."""
_PARTS: Final = 4
_MOST_FINDINGS: Final = 10
_A0, _T0 = 10, 5


def _store(address: int, value: int) -> list[int]:
    return [*set_register(_T0, value), *set_register(_A0, address), riscv_word("sw", rs1=_A0, rs2=_T0)]


def _request(chance: random.Random) -> list[int]:
    """Words that start a NoC request of the tile to itself."""
    niu = 0x800 * chance.randrange(4)
    here = LONE_TILE[1] << bit_of("niu", "TARG_ADDR_HI", "END_Y") | LONE_TILE[0]
    kind = chance.choice(("READ", "WRITE"))
    size = chance.choice((4, 16, 32, 64, 256, 1024))
    fields = {
        "TARG_ADDR_LO": SHARED + 64 * chance.randrange(64),
        "TARG_ADDR_HI": here,
        "RET_ADDR_LO": SHARED + 0x4000 + 64 * chance.randrange(64),
        "RET_ADDR_HI": here,
        "PACKET_TAG": chance.randrange(16) << bit_of("niu", "PACKET_TAG", "TRANSACTION_ID"),
        "CTRL": (1 << bit_of("niu", "CTRL", "WRITE") if kind == "WRITE" else 0)
        | chance.randrange(2) << bit_of("niu", "CTRL", "RESPONSE"),
        "AT_LEN_BE": size,
        "CMD_CTRL": 1,
    }
    return [word for name, value in fields.items() for word in _store(address_of("niu", name) + niu, value)]


def _tensix(chance: random.Random, tile: FuzzTile, thread: int) -> list[int]:
    """Words for a thread, each of which bhemu executes after reset; now and then one that it may refuse."""
    found = []
    for _ in range(chance.randrange(1, 16)):
        unit = chance.choice(("vector", "vector", "matrix", "misc", "scalar", "sync", "config"))
        word = words.word(chance, chance.choice(words.mnemonics(unit)))
        if chance.randrange(200) == 0 or tile.run(Program.of([(thread, word)])).is_whole:
            found.append(to_ttinsn(word))
    return found


def programs(chance: random.Random, tile: FuzzTile) -> list[list[int]]:
    """A program for each core."""
    found = []
    for core in range(CORES):
        lines: list[int] = []
        for _ in range(_PARTS):
            lines += riscv_programs.program(chance, 90, SHARED + APART * core)
            if T0 <= core <= T2:
                lines += _tensix(chance, tile, core - T0)
            if chance.randrange(3) == 0:
                lines += _request(chance)
        found.append([*lines, PARKED])
    return found


def _start(tile: Tile, code: list[list[int]], data: bytes) -> None:
    for core, lines in enumerate(code):
        first = STARTS[core] // 4
        tile.record.l1_u32[first : first + len(lines)] = lines
    tile.l1[SHARED - 0x1000 : SHARED - 0x1000 + len(data)] = np.frombuffer(data, np.uint8)
    for address, value in start_stores(dict(enumerate(STARTS))):
        tile.cores.store(address, value)


def _pieces(tile: Tile, sizes: list[int]) -> None:
    for size in sizes:
        tile.clock(size)


def _cut(chance: random.Random) -> list[int]:
    cuts = sorted(chance.sample(range(1, CLOCKS), 12))
    return [high - low for low, high in zip([0, *cuts], [*cuts, CLOCKS], strict=True)]


def at_once(tiles: list[Tile], chance: random.Random) -> None:
    """All clocks in one call."""
    tiles[-1].clock(CLOCKS)


def single(tiles: list[Tile], chance: random.Random) -> None:
    """A clock at a time."""
    _pieces(tiles[-1], [1] * CLOCKS)


def pieces(tiles: list[Tile], chance: random.Random) -> None:
    """In pieces."""
    _pieces(tiles[-1], _cut(chance))


def recorded(tiles: list[Tile], chance: random.Random) -> None:
    """With a recorder."""
    CoreRecorder().attach(tiles[-1])
    tiles[-1].clock(CLOCKS)


def restored(tiles: list[Tile], chance: random.Random) -> None:
    """From a snapshot on another tile, half-way."""
    half = chance.randrange(1, CLOCKS)
    tiles[-1].clock(half)
    snapshot = tiles[-1].snapshot()
    tiles.append(Tile())
    tiles[-1].restore(snapshot)
    tiles[-1].clock(CLOCKS - half)


WAYS: Final[dict[str, Callable[[list[Tile], random.Random], None]]] = {
    "single": single,
    "pieces": pieces,
    "recorder": recorded,
    "snapshot": restored,
}
"""Ways to let clocks pass, on the last of the tiles; each must give what `at_once` gives."""


def outcome(code: list[list[int]], data: bytes, way: Any, seed: int) -> tuple[str, dict[str, Any]]:
    """Why it was refused, if it was, and the state: registers, memory, counters, clocks."""
    tiles, refusal = [Tile()], ""
    _start(tiles[0], code, data)
    try:
        way(tiles, random.Random(seed))
        for core in CORE_NAMES:  # what runs ahead of the clock comes to it
            _ = tiles[-1].cores[core].pc
    except BhemuError as error:
        refusal = f"{error.category}: {error.message}"
    return refusal, {name: np.array(state_field(tiles[-1].record, name)) for name in (*OF_CORES, *SHARED_STATE)}


OF_CORES: Final = ("core_x", "core_pc", "core_retired", "core_ram", "clock")
"""Fields that, when an instruction is refused, depend on the pieces (docs/kernels.md)."""
SHARED_STATE: Final = (
    *("issued", "l1_u32", "sync.semaphore", "sync.mutex_owner"),
    *("dst", "srca", "srcb", "lregs", "gpr", "config", "thread_config", "adc", "rwc"),
)
"""Fields that do not."""


def run(task: Task) -> Result:
    """Let the cores execute `task.size` instructions, in every way."""
    chance = random.Random(task.seed)
    result, small = Result(), FuzzTile()
    while result.done < task.size:
        code = programs(chance, small)
        data = chance.randbytes(0x6000)
        seed = chance.getrandbits(63)
        refusal, expected = outcome(code, data, at_once, seed)
        result.counts["programs"] += 1
        issued = expected["issued"].sum(axis=0)
        result.done += int(expected["core_retired"].sum()) + int(issued.sum())
        result.features |= {row.mnemonic for row in BY_OPCODE if row is not None and issued[row.opcode]}
        if refusal:
            result.counts["refused by bhemu"] += 1
            result.features.add(refusal.partition(":")[0] + refusal.partition("[")[2].partition("]")[0])
        for name, way in WAYS.items():
            other, found = outcome(code, data, way, seed)
            fields = SHARED_STATE if refusal else (*OF_CORES, *SHARED_STATE)
            different = [field for field in fields if not np.array_equal(expected[field], found[field])]
            if (refusal != other or different) and len(result.findings) < _MOST_FINDINGS:
                result.counts["differences"] += 1
                title = f"tile, {name}: {', '.join(different) or 'refusals differ'}"
                if any(known.title == title for known in result.findings):
                    continue
                lines = [f"seed {task.seed}", f"at once: {refusal or 'goes on'}", f"{name}: {other or 'goes on'}"]
                for core, program in zip(CORE_NAMES, code, strict=True):
                    task.keep.mkdir(parents=True, exist_ok=True)
                    path = task.keep / f"tile-{task.seed:x}-{len(result.findings)}-{core}.bin"
                    path.write_bytes(np.array(program, "<u4").tobytes())
                    lines.append(f"{core}: {path}, {len(program)} words, first {disassemble_riscv(program[0])}")
                for field in different[:4]:
                    lines.append(f"{field} at {np.argwhere(expected[field] != found[field])[:3].tolist()}")
                result.findings.append(Finding(title, "\n".join(lines)))
    return result
