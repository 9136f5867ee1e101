"""Run flows of `noc_microbench_blackhole.csv` on a timed chip, and hold their cycles against the measured ones.

    python tools/timed_flows.py FOLDER [--least 4096] [--exp contention,vc,shared]

Each flow is a core that writes to another tile's L1 again and again, and waits for the answers. The loop is not that
of the measurement, which took 40 cycles for a write; so sizes that the link does not bound are left out by --least.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import bhemu
from bhemu.bench.silicon_programs import ZERO, addi, lw, sw
from bhemu.bench.silicon_rows import Row, read
from bhemu.chip.coordinates import NODES, Place
from bhemu.isa.riscv_words import EBREAK, riscv_word, set_register
from bhemu.isa.tile_registers import address_of

INTERFACE, CLOCK, RESET = 0xFFB20000, address_of("control", "WALL_CLOCK_0"), address_of("control", "SOFT_RESET_0")
COMMAND, OUTSTANDING = 0x40, 0x240
WRITE = 0x2092 | 0x10
"""Control bits of a write to L1 that is answered."""
DATA, COPY, RESULT = 0x20000, 0x40000, 0x1000
B_RUNS = 0x47000
BASE, VALUE, LEFT, TIMER, BEGUN, SPENT = 5, 6, 7, 8, 30, 31


def at(place: Place) -> int:
    """A place as the registers of a network interface have it."""
    return place[1] << 6 | place[0]


def place(text: str) -> Place:
    """Of `1-2`."""
    x, y = text.split("-")
    return int(x), int(y)


def flow(source: Place, target: Place, count: int, size: int) -> list[int]:
    """The program of a core: what its writes and the wait for their answers take goes to L1."""
    fields = {0x00: DATA, 0x08: at(source), 0x0C: COPY, 0x14: at(target), 0x1C: WRITE, 0x20: size}
    words = [*set_register(BASE, INTERFACE), *set_register(TIMER, CLOCK)]
    for offset in (*range(0, 0x2C, 4),):
        words += [*set_register(VALUE, fields.get(offset, 0)), sw(VALUE, BASE, offset)]
    words += [*set_register(LEFT, count), addi(9, ZERO, 1), lw(BEGUN, TIMER, 0)]
    words += [lw(VALUE, BASE, COMMAND), riscv_word("bne", rs1=VALUE, imm=-4), sw(9, BASE, COMMAND)]
    words += [addi(LEFT, LEFT, -1), riscv_word("bne", rs1=LEFT, imm=-16)]
    words += [lw(VALUE, BASE, OUTSTANDING), riscv_word("bne", rs1=VALUE, imm=-4), lw(SPENT, TIMER, 0)]
    words += [riscv_word("sub", SPENT, SPENT, BEGUN), *set_register(VALUE, RESULT), sw(SPENT, VALUE, 0)]
    return [*words, EBREAK]


def run(rows: list[Row]) -> list[int]:
    """Cycles of each of some flows that begin together."""
    chip = bhemu.Chip(timed=True)
    sources = [place(row["src_noc0_xy"]) for row in rows]
    for row, source in zip(rows, sources, strict=True):
        words = flow(source, place(row["dst_noc0_xy"]), row.whole("num_tx", 1), row.whole("tx_bytes", 16))
        chip.device.write_node(NODES[source], 0, b"".join(word.to_bytes(4, "little") for word in words))
    for source in sources:
        chip.device.write_node(NODES[source], RESET, B_RUNS.to_bytes(4, "little"))
    chip.run(max_clocks=1 << 22)
    return [int.from_bytes(chip.device.read_node(NODES[source], RESULT, 4), "little") for source in sources]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least", type=int, default=4096, help="bytes of a write")
    parser.add_argument("--exp", default="contention,vc,shared", help="which experiments")
    options = parser.parse_args()
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in read(options.folder, "noc_microbench_blackhole.csv"):
        if row["exp"] in options.exp.split(",") and row.whole("tx_bytes") >= options.least:
            groups[row["exp"], row["point"], row["tx_bytes"], row["dataset"]].append(row)
    seen: dict[str, list[float]] = defaultdict(list)
    for (exp, point, size, _), rows in groups.items():
        if len(rows) != rows[0].whole("n_flows"):
            continue  # the file does not have all of them
        found = [cycles / row.measured("cycles") for cycles, row in zip(run(rows), rows, strict=True)]
        seen[exp] += found
        if exp != "shared":
            print(f"{exp} {point}, {size} bytes: estimate / measured " + ", ".join(f"{one:.2f}" for one in found))
    for exp, found in seen.items():
        errors = sorted(abs(one - 1) for one in found)
        print(f"{exp}: {len(errors)} flows, median error {errors[len(errors) // 2]:.1%}, largest {errors[-1]:.1%}")


if __name__ == "__main__":
    main()
