"""What recording costs a client: its processor and wall time with and without, in turns on the same machine.

    python tools/recording_cost.py [--rounds N] [--short 1] [--long 6] -- COMMAND

`{n}` in the command is how many operations it executes: once few, once many. So the start is told apart from
the cost of a further operation. The environment is the client's, with TT_METAL_SIMULATOR. User seconds are those that
all its processes have spent in user mode, simulator included: other work on the machine counts less than in wall time,
which is that until the client has ended. All are medians.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

VARIANTS: dict[str, dict[str, str]] = {
    "not recorded": {},
    "one tile": {"BHEMU_TILES": "1-2"},
    "counters, all tiles": {"BHEMU_DETAIL": "counters"},
    "profile, all tiles": {"BHEMU_DETAIL": "profile"},
    "all tiles": {},
}
ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): the simulator ends after its client."""


def seconds(command: list[str], variant: str) -> tuple[float, float]:
    """Seconds in user mode of a client and of all that it has started; and wall time until the client has ended."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = {} if variant == "not recorded" else {"BHEMU_RECORD": folder, **VARIANTS[variant]}
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        began = time.perf_counter()
        done = subprocess.run(command, env=os.environ | recorded, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"{' '.join(command)}, {variant}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, wall


def main() -> None:
    """Measure, and print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", type=int, default=1)
    parser.add_argument("--long", type=int, default=6)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(given.rounds):
        for variant in VARIANTS:
            for count in (given.short, given.long):
                command = [part.replace("{n}", str(count)) for part in given.command]
                found.setdefault((variant, count), []).append(seconds(command, variant))
    for which, what in enumerate(("user", "wall")):
        first = 0.0
        for variant in VARIANTS:
            short, long = (
                statistics.median(one[which] for one in found[variant, count]) for count in (given.short, given.long)
            )
            further = (long - short) / (given.long - given.short)
            first = first or further
            times = f"{further / first:4.2f} times" if first > 0 else ""
            print(
                f"{what}: {variant:20} short {short:6.2f} s, long {long:6.2f} s, a further one {further:6.3f} s {times}"
            )
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
