"""What a NoC request does to L1, DRAM and counters, as the rules say it (tile N14 to N23), for tests."""

from __future__ import annotations

import numpy as np

from bhemu.chip.coordinates import Kind, Node
from tests.chip.noc_programs import ATOMIC, INCLUDE_SOURCE, READ, RESPONSE

L1 = 0x180000
CHANNEL = 1 << 32
MASKED = 4


class Memory:
    """Bytes by address; what was never written is what `before` says."""

    def __init__(self, before: np.ndarray) -> None:
        self.before = before
        self.bytes: dict[int, int] = {}

    def read(self, address: int, size: int) -> list[int]:
        limit = len(self.before)
        return [self.bytes.get(a, int(self.before[a]) if a < limit else 0) for a in range(address, address + size)]

    def write(self, address: int, content: list[int]) -> None:
        self.bytes |= {address + i: byte for i, byte in enumerate(content)}

    def word(self, address: int) -> int:
        return int.from_bytes(bytes(self.read(address, 4)), "little")

    def put(self, address: int, value: int) -> None:
        self.write(address, list((value & 0xFFFFFFFF).to_bytes(4, "little")))


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


class Model:
    """Memory and counters of a chip's nodes.

    Args:
        l1: uint8 [tiles, bytes]: L1 before any request.
    """

    def __init__(self, l1: np.ndarray) -> None:
        self.l1 = [Memory(tile) for tile in l1]
        self.dram = [Memory(np.zeros(0, np.uint8)) for _ in range(8)]
        self.counters: dict[tuple[int, int, int], int] = {}

    def _expect_responses(self, tile: int, noc: int, sent: int, responses: int) -> None:
        """Requests of transaction 0 without a response, a counter of 8 bits (N20)."""
        key = (tile, noc, 16)
        self.counters[key] = (self.counters.get(key, 0) + sent - responses) & 0xFF

    def _memory(self, node: Node) -> Memory:
        return self.dram[node.index] if node.kind is Kind.DRAM else self.l1[node.index]

    def _count(self, tile: int, noc: int, **amounts: int) -> None:
        for name, amount in amounts.items():
            key = (tile, noc, int(name[1:]))
            self.counters[key] = self.counters.get(key, 0) + amount

    def is_sound(self, ends: list[Node], fields: dict[str, int]) -> bool:
        """True when nothing speaks against a request to these nodes, which are alike."""
        node = ends[0] if ends else None
        limit = CHANNEL if node and node.kind is Kind.DRAM else L1
        control, size = fields["ctrl"], fields.get("length", 0)
        reads = control & 0xF == READ & 0xF
        target, back = fields["target"], fields.get("back", 0)
        if control & 0xF == ATOMIC & 0xF:
            return target % 4 == 0 and target + 4 <= L1 and back % 4 == 0 and back + 4 <= L1
        here, there = (back, target) if reads else (target, back)
        if control & MASKED:
            here, there, size = here & -16, there & -16, 64
        if size > 16384 and (here | there) % 64:
            return False
        if size <= 0 or here + size > L1 or there + size > limit:
            return False
        modulus = 64 if reads and node is not None and node.kind is Kind.DRAM else 16
        return (here - there) % modulus == 0

    def carry_out(self, own: int, noc: int, ends: list[Node], fields: dict[str, int]) -> None:
        """Carry out a sound request of a tile."""
        control, code = fields["ctrl"], fields["length"]
        posted = not control & RESPONSE
        mine = self.l1[own]
        target, back = fields["target"], fields["back"]
        copies = control & 0xF != ATOMIC & 0xF and not control & MASKED
        p = -(-code // 16384) if copies else 1  # packets
        answers = p * len(ends)
        if control & 0xF == READ & 0xF or not posted:
            self._expect_responses(own, noc, p, answers)
        if control & 0xF == ATOMIC & 0xF:
            for node in ends:
                old = self._atomic(self._memory(node), target, code, fields.get("data", 0))
                self._count(node.index, noc, c52=1, **({"c55": 1} if posted else {"c54": 1, "c48": 1}))
                if not posted:
                    mine.put(back, old)
            self._count(own, noc, c4=1, **({"c7": 1} if posted else {"c6": 1, "c15": 1, "c0": answers}))
            return
        flits = -(-(64 if control & MASKED else code) // 64)
        if control & 0xF == READ & 0xF:
            mine.write(back, self._memory(ends[0]).read(target, code))
            self._count(own, noc, c4=p, c14=p, c5=p, c2=p, c3=flits)
            if ends[0].kind is Kind.TENSIX:
                self._count(ends[0].index, noc, c52=p, c53=p, c50=p, c51=flits)
            return
        if control & MASKED:
            content, mask = mine.read(target & -16, 64), code | fields.get("mask_high", 0) << 32
            back &= -16
        else:
            content, mask = mine.read(target, code), (1 << code) - 1
        for node in ends:
            for i, byte in enumerate(content):
                if mask >> i & 1:
                    self._memory(node).write(back + i, [byte])
            if node.kind is Kind.TENSIX:
                served = {"c57": flits, "c59": p, "c61": p} if posted else {"c56": flits, "c58": p, "c60": p, "c49": p}
                self._count(node.index, noc, **served)
        sent = {"c9": flits, "c11": p, "c13": p} if posted else {"c8": flits, "c10": p, "c12": p, "c1": answers}
        self._count(own, noc, c4=p, **sent)

    def _atomic(self, memory: Memory, target: int, code: int, data: int) -> int:
        """The operations that the tests use (N22); returns the word that was there."""
        old, first, operation = memory.word(target), target & -16, code >> 12 & 0xF
        if operation == 3:  # swap of selected halves
            for i in range(8):
                if code >> 2 + i & 1:
                    memory.write(first + 2 * i, list((data >> 16 * (i & 1) & 0xFFFF).to_bytes(2, "little")))
            return old
        if operation == 9:  # accumulate; format 4 adds words
            for i in range(4):
                memory.put(first + 4 * i, memory.word(first + 4 * i) + data)
            return old
        at = first + 4 * ((code >> 2 if operation == 7 else code) & 3)
        word = memory.word(at)
        if operation == 1:
            mask = (2 << (code >> 2 & 31)) - 1
            memory.put(at, (word + data & mask) | word & ~mask)
        elif operation == 4:
            memory.put(at, code >> 6 & 0xF if word == code >> 2 & 0xF else word)
        elif operation == 10:  # Zaamo 0: add
            memory.put(at, word + data)
        else:
            memory.put(at, data)
        return old


def receivers(own: Node, corners: tuple[tuple[int, int], tuple[int, int]], control: int, nodes: dict) -> list[Node]:
    """Tensix tiles of a rectangle that does not run over the edge, in the order of their numbers."""
    (x0, y0), (x1, y1) = corners
    xs, ys = range(min(x0, x1), max(x0, x1) + 1), range(min(y0, y1), max(y0, y1) + 1)
    found = [nodes[x, y] for y in ys for x in xs if nodes[x, y].kind is Kind.TENSIX]
    return [node for node in found if node != own or control & INCLUDE_SOURCE]
