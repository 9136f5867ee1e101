"""What several chips cost: time and memory of chips that are busy and of chips that are idle, in turns on one machine.

    python tools/chips_cost.py [--chips 1,2,4,8,32] [--threads 1,2] [--tiles 140] [--clocks 1200] [--rounds 100]

The chips are those of a Galaxy, or its first ones, with the links between them. Busy: five cores of each Tensix tile
compute in a loop; idle: no core runs. Figures are nanoseconds of a thousand clocks of one chip, the fewest of all
rounds: other work on the machine makes none smaller, and a round is short, so that some have the processors for
themselves. Processor time adds up over threads, and a thread that waits for another one takes it too.
BHEMU_TRANSLATE=0 measures the interpreter.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import defaultdict

import numpy as np

import bhemu
from bhemu.bench.cores import PROGRAMS
from bhemu.cluster.topology import Topology, load_topology
from bhemu.loader.boot import ALL_HELD, SOFT_RESET
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC

IDLE_CLOCKS = 10_000_000


def system(chips: int) -> Topology:
    """The first chips of a Galaxy."""
    galaxy = load_topology("galaxy")
    return galaxy.without(*range(chips, len(galaxy.chips)))


def start(cluster: bhemu.Cluster, program: str, tiles: int) -> None:
    """Let five cores of the first tiles of all chips run a program in a loop."""
    words = np.array(PROGRAMS[program], np.uint32).tobytes()
    held = ALL_HELD & ~sum(1 << int(bit) for bit in CORE_BIT)
    for chip in cluster.chips:
        for tile in list(chip.tensix)[:tiles]:
            for first in DEFAULT_PC:
                tile.write(int(first), words)
            tile.write_word(SOFT_RESET, held)
    cluster.clock(20_000)


def pass_clocks(cluster: bhemu.Cluster, clocks: int) -> tuple[float, float]:
    """(wall, processor) nanoseconds of a thousand clocks of one chip."""
    wall, processor = time.perf_counter_ns(), time.process_time_ns()
    cluster.clock(clocks)
    each = clocks / 1000 * len(cluster)
    return (time.perf_counter_ns() - wall) / each, (time.process_time_ns() - processor) / each


def main() -> None:
    """Measure, and print a row for each system and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chips", default="1,2,4,8,32")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--tiles", type=int, default=140)
    parser.add_argument("--clocks", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--program", default="alu", choices=sorted(PROGRAMS))
    given = parser.parse_args()
    systems: dict[tuple[int, int], bhemu.Cluster] = {}
    idle: dict[int, float] = {}
    found: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for chips in map(int, given.chips.split(",")):
        for threads in map(int, given.threads.split(",")):
            if threads <= chips:
                cluster = systems[chips, threads] = bhemu.Cluster(system(chips), threads=threads)
                cluster.clock(1)
                idle.setdefault(chips, pass_clocks(cluster, IDLE_CLOCKS)[0] * chips)
                start(cluster, given.program, given.tiles)
    for _ in range(given.rounds):
        for key, cluster in systems.items():
            found[key].append(pass_clocks(cluster, given.clocks))
    base = None
    print("chips  threads  wall, ns  processor, ns  of one chip, wall  processor  times one chip's rate  all idle, ns")
    for (chips, threads), figures in found.items():
        wall, processor = (min(one[n] for one in figures) for n in (0, 1))
        base = base or (wall, processor)
        print(
            f"{chips:>5}{threads:>9}{wall:>10,.0f}{processor:>15,.0f}{wall / base[0]:>20.3f}"
            f"{processor / base[1]:>11.3f}{base[0] / wall:>23.2f}{idle[chips]:>14,.0f}"
        )
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB")


if __name__ == "__main__":
    main()
