"""Random NoC requests end as the rules say: bytes, counters and refusals (tile N14 to N23)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bhemu.chip.coordinates import NODES, TENSIX_COLUMNS, Node, tensix_index
from bhemu.errors import BhemuError
from tests.chip.noc_model import Model, receivers
from tests.chip.noc_programs import (
    ATOMIC,
    DATA,
    FIELDS,
    INCREMENT,
    MULTICAST,
    READ,
    RESPONSE,
    WRITE,
    Board,
    DramChannel,
    at,
    fill,
    rectangle,
)

ME = (4, 5)
GO = 0x18000
PROGRAM = f"""
li a0, {GO:#x}
again: lw a1, 0(a0)
beqz a1, again
sw zero, 0(a0)
li t0, 1
sw t0, 0(a1)
j again
"""
NIU = 0xFFB20000
BEGIN = 0x40
ACCUMULATE = 0x9004
ATOMICS = (INCREMENT, 0x1004, 0x3000, 0x4001, ACCUMULATE, 0xA800, 0x7004)
DRAM_X = (17, 18)


def request(
    source: random.Random, places: list[tuple[int, int]], noc: int
) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Registers of a request, most of them sound; coordinates of its end, or of a multicast's corners."""
    here, there = DATA + source.randrange(0, 0x1000, 4), DATA + 0x4000 + source.randrange(0, 0x1000, 4)
    if source.random() < 0.8:
        here, there = here & ~63 | 16 * source.randrange(4), there & ~63
        there |= here & 63
    size = source.choice((0, 1, 4, 16, 100, 4096, 16384, 16385)) if source.random() < 0.3 else source.randrange(1, 300)
    end = source.choice(places)
    kind = source.choice(("read", "write", "read dram", "write dram", "atomic", "multicast", "masked"))
    if "dram" in kind:
        end = (source.choice(DRAM_X), source.randrange(12, 24))
        there += source.choice((0, 0xFFF0, 0x10000, 0xFF000000))  # the last: a register's address in a tile
    if source.random() < 0.04:
        there = source.choice((0x17FFF0, 0x180000))
    own, other = at(*ME), at(*end)
    posted = 0 if source.random() < 0.5 else RESPONSE
    if kind.startswith("read"):
        return {"ctrl": READ, "target": there, "target_hi": other, "back": here, "back_hi": own, "length": size}, [end]
    fields = {"ctrl": WRITE & ~RESPONSE | posted, "target": here, "target_hi": own, "back": there, "back_hi": other}
    if kind == "masked":
        mask = {"length": source.getrandbits(32), "mask_high": source.getrandbits(32)}
        return fields | mask | {"ctrl": fields["ctrl"] | 4}, [end]
    if kind == "multicast":
        x, y = source.choice(TENSIX_COLUMNS[2:]), source.randrange(4, 12)
        corners = [(source.choice([c for c in TENSIX_COLUMNS if c <= x]), source.randrange(2, y + 1)), (x, y)]
        if noc:
            corners.reverse()
        control = MULTICAST | source.choice((0, 1 << 17))
        return fields | {"ctrl": fields["ctrl"] | control, "back_hi": rectangle(*corners), "length": size}, corners
    if kind == "atomic":
        there = DATA + source.randrange(0, 0x100, 1 if source.random() < 0.1 else 4)
        code = source.choice(ATOMICS)
        code |= 0 if code == ACCUMULATE else there >> 2 & 3
        ends = {"target": there, "target_hi": other, "back": DATA + 0x8000, "back_hi": own}
        fields = {"ctrl": ATOMIC & ~RESPONSE | posted, **ends, "length": code, "data": source.getrandbits(32)}
        return fields, [end]
    return fields | {"length": size}, [end]


class Side:
    """A chip with a tile that starts what the host writes into its registers."""

    def __init__(self, *, simulator_order: bool) -> None:
        self.board = Board({ME: PROGRAM}, simulator_order=simulator_order)
        chip = self.chip = self.board.chip
        for index in range(140):
            chip.tiles["l1"][index, DATA : DATA + 0xA000] = fill(index, 0xA000)
        self.board.start(ME)
        chip.clock(100)

    def carry_out(self, noc: int, initiator: int, fields: dict[str, int]) -> str:
        """What becomes of a request: empty, or why it was refused."""
        base = NIU + 0x10000 * noc + 0x800 * initiator
        for name, offset in FIELDS.items():
            self.chip.write_node(NODES[ME], base + offset, fields.get(name, 0).to_bytes(4, "little"))
        self.chip.write_node(NODES[ME], GO, (base + BEGIN).to_bytes(4, "little"))
        try:
            self.chip.clock(50)
        except BhemuError as error:
            core = self.chip.cores(tensix_index(ME))["B"]
            core.pc += 4
            core.resume()
            self.chip.clock(50)
            return f"{type(error).__name__}: {error}"
        return ""


@pytest.mark.plain
@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("simulator_order", [False, True])
def test_random_requests_end_as_the_rules_say(noc: int, simulator_order: bool) -> None:
    source = random.Random(f"{noc} {simulator_order}")
    side = Side(simulator_order=simulator_order)
    chip, me = side.chip, tensix_index(ME)
    region = slice(DATA, DATA + 0x10000)
    before = np.zeros((len(chip.tiles), 0x180000), np.uint8)
    before[:, region] = chip.tiles["l1"][:, region]
    model = Model(before)
    chip.tiles["niu_counter"] = 0
    places = [(source.choice(TENSIX_COLUMNS), source.randrange(2, 12)) for _ in range(12)]
    places = [place for place in places if place != ME]
    refused = 0
    for step in range(150):
        fields, ends = request(source, places, noc)
        found: list[Node] = [chip.node(ends[0])]
        if len(ends) == 2:
            found = receivers(NODES[ME], (ends[0], ends[1]), fields["ctrl"], NODES)
        sound = not found or model.is_sound(found, fields)
        what = side.carry_out(noc, source.randrange(4), fields)
        assert (what == "") == sound, (step, fields, what)
        refused += not sound
        if sound:
            model.carry_out(me, noc, found, fields)
    assert 5 < refused < 100
    for index, memory in enumerate(model.l1):
        changed = before[index].copy()
        for address, byte in memory.bytes.items():
            changed[address] = byte
        assert np.array_equal(chip.tiles["l1"][index][region], changed[region]), index
        assert np.array_equal(chip.tiles["l1"][index][0x17F000:], changed[0x17F000:]), index
    for number, memory in enumerate(model.dram):
        channel = DramChannel(chip, number)
        for address, byte in memory.bytes.items():
            assert channel.read(address, 1)[0] == byte, (channel.channel, hex(address))
    counters = chip.tiles["niu_counter"]
    counted = {tuple(place.tolist()): int(counters[tuple(place)]) for place in np.argwhere(counters)}
    assert counted == {key: value for key, value in model.counters.items() if value}


def test_common_requests_are_not_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    side = Side(simulator_order=False)
    side.carry_out(
        1, 0, {"ctrl": READ, "target": DATA, "target_hi": at(7, 7), "back": DATA, "back_hi": at(*ME), "length": 16}
    )
    monkeypatch.setattr(side.chip.clocks, "attend", lambda: pytest.fail("a request was left to Python"))
    away = at(11, 9)
    read = {"ctrl": READ, "target": DATA, "target_hi": away, "back": DATA + 64, "back_hi": at(*ME), "length": 4096}
    dram = read | {"target": 0x1000, "target_hi": at(17, 12)}
    write = {"ctrl": WRITE, "target": DATA, "target_hi": at(*ME), "back": DATA, "back_hi": away, "length": 4096}
    multicast = write | {"ctrl": WRITE | MULTICAST, "back_hi": rectangle((1, 2), (16, 11))}
    atomic = {"ctrl": ATOMIC, "target": DATA, "target_hi": away, "back": DATA, "back_hi": at(*ME)}
    for fields in (read, dram, write, multicast, atomic | {"length": INCREMENT, "data": 1}):
        assert side.carry_out(0, 0, fields) == ""
