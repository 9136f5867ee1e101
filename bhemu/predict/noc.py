"""How long a data-movement kernel takes: a loop of reads, writes or multicasts, and the barrier after it.

A request and its answer together go once round each ring that they use: a NoC is a one-way torus. Further requests
follow at the rate of the slowest of the issuing core, the link, and the bank. What many cores do to each other
is a factor that was fitted, by the pattern; links are not followed one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from bhemu.checks import checked
from bhemu.isa.silicon import figure

FLIT: Final = 64
"""Bytes that a link moves in a cycle."""
_GAP_COLUMNS: Final = 7


@checked
@dataclass(frozen=True, slots=True)
class Traffic:
    """A kernel of one core, or of many that do the same at once.

    Attributes:
        reads: it reads; otherwise it writes.
        count: transactions of each core between two barriers, over all its destinations.
        size: bytes of a transaction.
        destinations: cores that each core addresses, one after the other, or together by a multicast.
        columns, rows: of the grid of destinations.
        same_axis: a single destination is in the core's own column.
        memory: "l1", "sharded" (one DRAM bank), "interleaved" (DRAM pages over all banks).
        multicast, linked: a multicast; without releasing its path in between.
        outside: the sender of a multicast is outside of the rectangle.
        stateful: a state is set before the loop.
        everybody: all cores do it at once; multicasts: each core of a row or column to all of it.
        noc: 0 or 1.
        cores: how many cores there are, of `everybody`.
    """

    reads: bool
    count: int
    size: int
    destinations: int = 1
    columns: int = 1
    rows: int = 1
    same_axis: bool = False
    memory: str = "l1"
    multicast: bool = False
    linked: bool = False
    outside: bool = False
    stateful: bool = False
    everybody: bool = False
    noc: int = 0
    cores: int = 110


def _f(name: str) -> float:
    return figure(name).value


def packets(count: int, size: int) -> tuple[int, int]:
    """(packets, bytes of each) of a number of transactions."""
    each = max(1, math.ceil(size / _f("noc.packet.bytes")))
    return count * each, min(size, int(_f("noc.packet.bytes")))


def wire(size: int, reads: bool = False) -> float:
    """Cycles for which a packet occupies a link."""
    flits = math.ceil(size / FLIT)
    return flits + max(_f("noc.packet"), flits * _f("noc.read.packet.long" if reads else "noc.packet.long"))


def _body(size: int) -> float:
    """Cycles that a packet's data take beyond its first 64 bytes."""
    return (math.ceil(size / FLIT) - 1) * (1 + _f("noc.packet.long"))


def _round(traffic: Traffic) -> float:
    """A request and its answer, without data."""
    hops = 0.0
    columns = traffic.columns > 1 or (traffic.destinations == 1 and not traffic.same_axis)
    rows = traffic.rows > 1 or traffic.destinations == 1
    hops += _f("noc.ring.x") if columns else 0
    hops += _f("noc.ring.y") if rows else 0
    return _f("noc.read.fixed" if traffic.reads else "noc.write.fixed") + _f("noc.hop") * hops


def _issue(traffic: Traffic) -> float:
    kind = "read" if traffic.reads else "write"
    return _f(f"noc.issue.{kind}{'.stateful' if traffic.stateful else ''}")


def _unicast(traffic: Traffic) -> float:
    count, size = packets(traffic.count, traffic.size)
    step = max(_issue(traffic), wire(size, traffic.reads))
    turns = 0.0
    if traffic.destinations > 1 and not traffic.reads:
        turns = _f("noc.destination.stateful" if traffic.stateful else "noc.destination")
        if traffic.count > traffic.destinations:
            turns += _f("noc.destination.again")
        if step > _issue(traffic):  # the core is ahead of the link
            turns = min(turns, max(0.0, turns - (step - _issue(traffic)) * traffic.count / traffic.destinations))
    return _round(traffic) + _body(size) + (count - 1) * step + turns * traffic.destinations


def _crowd(traffic: Traffic) -> float:
    """Every core and every other: a packet waits for those of others."""
    count, size = packets(traffic.count, traffic.size)
    cores = traffic.destinations
    if min(traffic.columns, traffic.rows) == 1:
        factor = _f("noc.crowd.line") * cores
    elif traffic.reads:
        factor = _f("noc.crowd.read") * math.sqrt(cores) + _f("noc.crowd.read.square") * cores * cores
    else:
        factor = _f("noc.crowd.write") * math.sqrt(cores)
    least = _f("noc.crowd.issue.read" if traffic.reads else "noc.crowd.issue")
    step = max(least, factor * (math.ceil(size / FLIT) + 1))
    return _round(traffic) + (count - 1) * step


def _multicast(traffic: Traffic) -> float:
    count, size = packets(traffic.count, traffic.size)
    hops = float(traffic.columns - 1 + traffic.rows - 1)
    if traffic.columns > _GAP_COLUMNS:
        hops += _f("noc.multicast.gap")
    body = _body(size)
    if traffic.outside:
        # A row is as far as a column of as many cores: the sender is in the next row.
        length = traffic.rows if traffic.rows > 1 else traffic.columns - 1
        path = _f("noc.multicast.outside") + _f("noc.multicast.hop") * length
        first = _f("noc.write.fixed") + _f("noc.hop") * (_f("noc.ring.x") + _f("noc.ring.y"))
        first += _f("noc.multicast.first.outside") + _f("noc.multicast.first.row") * min(length, 8)
    else:
        path = _f("noc.multicast.fixed") + _f("noc.multicast.hop") * hops
        first = _round(traffic) + _f("noc.multicast.first.hop") * hops
    if traffic.linked:
        answers = float(traffic.destinations) + (0 if traffic.outside else wire(size))
        step = max(_f("noc.issue.multicast.linked"), wire(size), answers)
        # The last transaction ends the link: its packets release the path one by one.
        first += (count // traffic.count - 1) * path
    else:
        step = path + body
    alone = first + body + (count - 1) * step
    # Their paths meet, so one waits until another's is released; the release itself overlaps with what follows.
    return alone * traffic.destinations * _f("noc.multicast.together") if traffic.everybody else alone


def _dram(traffic: Traffic) -> float:
    count, size = traffic.count, traffic.size
    kind = "read" if traffic.reads else "write"
    if traffic.everybody:
        rate = _f(f"dram.all.{kind}.noc{traffic.noc}")
        step = max(_f(f"dram.all.issue.{kind}"), size * traffic.cores / rate)
        return max(_f(f"dram.all.{kind}.first"), _f("dram.all.begin") + count * step)
    first = _f(f"dram.{kind}.first") + (math.ceil(size / FLIT) - 1) * _f(f"dram.{kind}.tail")
    if traffic.memory == "sharded":
        rate = _f("dram.bank.long" if size >= _f("noc.packet.bytes") else "dram.bank")
        step = max(_f(f"dram.issue.{kind}"), size / rate)
    else:
        step = max(_f(f"dram.issue.{kind}.interleaved"), wire(size, reads=True))
    return first + (count - 1) * step


@checked
def cycles(traffic: Traffic) -> float:
    """Cycles from before the first request until the barrier is over."""
    if traffic.memory != "l1":
        return _dram(traffic)
    if traffic.multicast:
        return _multicast(traffic)
    if traffic.everybody:
        return _crowd(traffic)
    return _unicast(traffic)


@checked
def dram_readers(readers: int, banks: int, size: int) -> float:
    """Bytes a cycle that a number of cores read together, each from one of a number of banks, placed without care.

    Args:
        size: bytes of a packet.
    """
    peak = _f("dram.peak") * (size / (size + FLIT))
    share = 1.0 if banks <= 2 else _f("dram.four") if banks <= 4 else _f("dram.eight")
    return min(readers, banks) * peak * share
