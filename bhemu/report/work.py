"""How much arithmetic an operation or a kernel did and how many bytes it moved, against what the units can do.

Clocks are those of the chip in the recording: rounds of the schedule (rule T34), not time on silicon. Shares of a peak
compare operations and kernels with each other, and say what would bound them first if nothing else held them up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.analysis.access import access, unpacker_of
from bhemu.chip.coordinates import NODES, Kind
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.silicon import INSTRUCTION_TIMES, figure
from bhemu.predict.noc import FLIT
from bhemu.recording import log as column
from bhemu.recording.noc_requests import READ, Request
from bhemu.report.noc import LinkTraffic

Array = np.ndarray[Any, Any]
Work = Counter[tuple[str, str]]
"""Amounts by (resource, AMOUNT or BUSY)."""

AMOUNT: Final = "amount"
BUSY: Final = "busy"
"""Clocks that silicon needs at least for it: words by their occupancy, bytes and datums at the peak."""
MATRIX: Final = "matrix unit"
VECTOR: Final = "vector unit"
UNPACKERS: Final = ("unpacker 0", "unpacker 1")
PACKER: Final = "packer"
LINK: Final = "busiest NoC link"
BANK: Final = "busiest DRAM bank"

LANES: Final = 32
"""Of the vector unit (math V)."""
_COLUMNS: Final = 16
_PRODUCTS: Final = {
    "MVMUL": 8 * _COLUMNS * 16,
    "DOTPV": 8 * _COLUMNS * 16,
    "GAPOOL": 4 * _COLUMNS * 16,
    "ELWMUL": 8 * _COLUMNS,
    "ELWADD": 8 * _COLUMNS,
    "ELWSUB": 8 * _COLUMNS,
}
"""Multiply-adds, or additions, of a word of the matrix unit (math F11, F13, F16)."""
_NO_ARITHMETIC: Final = frozenset(
    ["SFPNOP", "SFPMOV", "SFPSETCC", "SFPPUSHC", "SFPPOPC", "SFPENCC", "SFPCOMPC", "SFPCONFIG", "SFPTRANSP"]
)
_ARITHMETIC: Final = ("mad", "simple", "round")
"""Sub-units whose words are operations of lanes."""
_OPCODES: Final = 256
_UNPACR, _PACR = INSTRUCTIONS["UNPACR"].opcode, INSTRUCTIONS["PACR"].opcode


def _table(values: dict[str, int]) -> Array:
    """int64 [256] by opcode."""
    found = np.zeros(_OPCODES, np.int64)
    for mnemonic, value in values.items():
        found[INSTRUCTIONS[mnemonic].opcode] = value
    return found


def _occupancy(unit: str) -> Array:
    return _table({name: INSTRUCTION_TIMES[name].occupancy for name, row in INSTRUCTIONS.items() if row.unit == unit})


_AMOUNTS: Final = {
    MATRIX: _table(_PRODUCTS),
    VECTOR: _table(
        {
            name: LANES
            for name, row in INSTRUCTIONS.items()
            if row.unit == "vector" and row.sub_unit in _ARITHMETIC and name not in _NO_ARITHMETIC
        }
    ),
}
_CLOCKS: Final = {MATRIX: _occupancy("matrix"), VECTOR: _occupancy("vector")}
_UNPACK_BYTES: Final = int(figure("tensix.unpack.bytes").value)
_PACK_DATUMS: Final = int(figure("tensix.pack.datums").value)
_BANK_BYTES: Final = figure("dram.bank").value
_NOCS: Final = tuple(f"NoC {noc} {way}" for noc in range(2) for way in ("in", "out"))


@dataclass(frozen=True)
class Peak:
    """What a resource can do in a clock.

    Attributes:
        value: in `unit`.
        unit: what is counted.
        source: where it is from.
        is_shared: there is one for all tiles of an operation, not one for each.
    """

    value: float
    unit: str
    source: str
    is_shared: bool = False


PEAKS: Final[dict[str, Peak]] = {
    MATRIX: Peak(
        _PRODUCTS["MVMUL"] / INSTRUCTION_TIMES["MVMUL"].occupancy,
        "multiply-adds",
        "MVMUL, 8 x 16 x 16 (math F13), a word each clock (math Y12); each fidelity phase is a word",
    ),
    VECTOR: Peak(
        LANES / INSTRUCTION_TIMES["SFPMAD"].occupancy,
        "lane operations",
        "SFPMAD in 32 lanes, a word each clock; lanes that are switched off count, scheduled macros do not",
    ),
    **dict.fromkeys(UNPACKERS, Peak(_UNPACK_BYTES, "bytes", "silicon.toml: tensix.unpack.bytes")),
    PACKER: Peak(
        _PACK_DATUMS, "datums of each interface", "silicon.toml: tensix.pack.datums; the amount is in bytes of L1"
    ),
    **dict.fromkeys(_NOCS, Peak(FLIT, "bytes", "a flit of 64 bytes each clock (predict/noc.py); data of own requests")),
    LINK: Peak(FLIT, "bytes", "a flit of 64 bytes each clock (predict/noc.py)", is_shared=True),
    BANK: Peak(_BANK_BYTES, "bytes", "silicon.toml: dram.bank", is_shared=True),
}


def work_of_words(rows: Array) -> Work:
    """What words of the coprocessor did.

    Args:
        rows: of the log (recording/log.py).
    """
    found: Work = Counter()
    counts = np.bincount(rows[:, column.WORD] >> 24, minlength=_OPCODES)
    for unit, amounts in _AMOUNTS.items():
        found[unit, AMOUNT] += int(counts @ amounts)
        found[unit, BUSY] += int(counts @ _CLOCKS[unit])
    sizes = np.maximum(rows[:, column.L1_END] - rows[:, column.L1_BEGIN], 0)
    opcodes = rows[:, column.WORD] >> 24
    unpacks = np.flatnonzero(opcodes == _UNPACR)
    words, which = np.unique(rows[unpacks, column.WORD], return_inverse=True)
    units = np.array([unpacker_of(access(word).operands) for word in words.tolist()], np.int64)[which.reshape(-1)]
    for number, name in enumerate(UNPACKERS):
        read = sizes[unpacks[units == number]]
        found[name, AMOUNT] += int(read.sum())
        found[name, BUSY] += int(np.maximum(-(-read // _UNPACK_BYTES), 1).sum())
    packs = rows[opcodes == _PACR]
    found[PACKER, AMOUNT] += int(sizes[opcodes == _PACR].sum())
    datums = (packs[:, column.PACK_X] >> 32) - (packs[:, column.PACK_X] & 0xFFFFFFFF) + 1
    found[PACKER, BUSY] += int(np.maximum(-(-datums // _PACK_DATUMS), 1).sum())
    return found


def work_of_request(request: Request) -> Work:
    """What a NoC request moved through the interface of its tile."""
    name = f"NoC {request.noc} {'in' if request.kind == READ else 'out'}"
    return Counter({(name, AMOUNT): request.size, (name, BUSY): -(-request.size // FLIT)})


def work_of_traffic(traffic: LinkTraffic) -> Work:
    """The busiest link and the busiest DRAM bank of an operation."""
    found: Work = Counter()
    banks: Counter[int] = Counter()
    for (_, first, last), size in traffic.ways.items():
        for place in (first, last):
            if NODES[place].kind is Kind.DRAM:
                banks[NODES[place].index] += size
    links = traffic.links()
    for name, amount in ((LINK, links[0][3] if links else 0), (BANK, max(banks.values(), default=0))):
        found[name, AMOUNT] = amount
        found[name, BUSY] = round(amount / PEAKS[name].value)
    return found


def intensity(work: Work) -> float | None:
    """Multiply-adds and lane operations for each byte of the own NoC requests; None without any of either."""
    done, moved = arithmetic(work), sum(work[name, AMOUNT] for name in _NOCS)
    return done / moved if done and moved else None


def arithmetic(work: Work) -> int:
    """Multiply-adds and lane operations."""
    return work[MATRIX, AMOUNT] + work[VECTOR, AMOUNT]


def work_as_json(work: Work, clocks: int, tiles: int) -> dict[str, Any]:
    """Figures of an operation or a kernel; `nearest` is the resource that is busy for the largest share of its clocks.

    A share can be above 1: the schedule executes each word in a clock, and carries requests out at once.

    Args:
        work: of all its tiles.
        clocks: that passed on each of them, on average.
        tiles: on how many it ran.
    """
    resources: list[dict[str, Any]] = []
    for name, peak in PEAKS.items():
        room = max(clocks * (1 if peak.is_shared else tiles), 1)
        amount, busy = work[name, AMOUNT], work[name, BUSY]
        if busy or amount:
            resources.append(
                {
                    "name": name,
                    "amount": amount,
                    "per_clock": amount / room,
                    "least_clocks": busy / (1 if peak.is_shared else max(tiles, 1)),
                    "share": busy / room,
                }
            )
    resources.sort(key=lambda one: -one["share"])
    return {
        "clocks": clocks,
        "tiles": tiles,
        "arithmetic_per_clock": arithmetic(work) / max(clocks * tiles, 1),
        "intensity": intensity(work),
        "nearest": resources[0]["name"] if resources else "",
        "resources": resources,
    }


def peaks_as_json() -> list[dict[str, Any]]:
    """Every peak with its source."""
    return [{"name": name, **vars(peak)} for name, peak in PEAKS.items()]
