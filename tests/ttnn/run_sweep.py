"""Run ttnn's operations on bhemu and compare with torch (`make test-ttnn-all`; `make test-ttnn`: one in ten).

Cases run in processes of ttnn's own Python, each with a device of its own; one that a refusal has ended, or that takes
too long, is followed by another with the cases that are left. The status is 1 when a case is not right. Where something
that ttnn needs cannot be had, that is said and the status is 0. With `--library` the cases run on another simulator
too, and a case is wrong whose result has other bits there; what the other one refuses or ends on is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.ttnn.case import Case
from tests.ttnn.cases import CASES
from tests.ttnn.environment import ROOT, CannotRun, Parts, prepare

DISPATCH = ("slow", "fast")
RESULTS = "results.jsonl"
_REFUSAL = re.compile(r"^\[\d+\] ERROR: .*", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        name: of the case.
        outcome: right, wrong, failed (ttnn raised an error), refused (the simulator ended the process), crashed (the
            process ended otherwise), late.
        deviation: see `tests.ttnn.case.Case`; None where there is no result.
        digest: of the result's bits.
        seconds: that it took.
        text: why it is not right.
    """

    name: str
    outcome: str
    deviation: float | None = None
    digest: str = ""
    seconds: float = 0.0
    text: str = ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="cases by regular expressions on their names; default: all")
    parser.add_argument("--tenth", action="store_true", help="one case in ten, drawn by --seed")
    parser.add_argument("--seed", type=int, help="which tenth; default: the number of commits of the repository")
    parser.add_argument("--dispatch", choices=[*DISPATCH, "both"], default="both", help="who dispatches programs")
    parser.add_argument("--library", type=Path, help="another simulator's libttsim_bh.so: results must have its bits")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one case may take")
    parser.add_argument("--minutes", type=float, default=600, help="minutes that all cases together may take")
    parser.add_argument("--may-end-early", action="store_true", help="cases that --minutes left out are no failure")
    parser.add_argument("--out", type=Path, help="directory for results and output; kept")
    parser.add_argument("--resume", action="store_true", help="keep the results in --out, and run what is not there")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and end")
    return parser.parse_args()


def default_seed() -> int:
    """The number of commits: ten commits in a row run all cases."""
    command = ["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else 0


def choose(cases: Iterable[Case], names: Sequence[str], tenth: int | None) -> list[Case]:
    """The cases to run: those that a name fits, of one tenth.

    First one of each operation, then a second one, and so on: a run whose time is up has covered what it could.
    """
    chosen = [
        case
        for case in cases
        if (not names or any(re.search(name, case.name) for name in names))
        and (tenth is None or case.tenth == tenth % 10)
    ]
    seen: Counter[str] = Counter()
    turns = []
    for case in chosen:
        turns.append(seen[case.operation])
        seen[case.operation] += 1
    return [case for _, case in sorted(zip(turns, chosen, strict=True), key=lambda pair: pair[0])]


class Runner:
    """Runs cases with one kind of dispatch on one library.

    Args:
        parts: the environment.
        out: directory for results and output.
        slow: whether the host dispatches.
        library: another simulator, or None.
        timeout: seconds that a case may take.
        until: time (of `time.monotonic`) at which to end.
        resume: keep results of an earlier run, and run the other cases.
    """

    def __init__(
        self,
        parts: Parts,
        out: Path,
        *,
        slow: bool,
        library: Path | None,
        timeout: float,
        until: float,
        resume: bool = False,
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._command = [str(parts.python), "-m", "tests.ttnn.worker", str(out / RESULTS)]
        self._environment = parts.environment(slow=slow, library=library) | {"PYTHONPATH": str(ROOT)}
        self._out, self._results, self._log = out, out / RESULTS, out / "output.txt"
        self._timeout, self._until, self._resume = timeout, until, resume

    def run(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Run cases; one whose turn did not come is not in the answer."""
        if not self._resume:
            self._results.unlink(missing_ok=True)
            self._log.unlink(missing_ok=True)
        ended = {name: outcome for name, outcome in self._read()[1].items() if name in names}
        left = [name for name in names if name not in ended]
        while left and time.monotonic() < self._until:
            place = self._log.stat().st_size if self._log.exists() else 0
            status = self._process(left)
            begun, ended_now = self._read()
            ended |= ended_now
            if status is None and time.monotonic() >= self._until:
                break
            if begun is not None and begun not in ended:
                ended[begun] = self._lost(begun, status, place)
                with self._results.open("a") as results:
                    print(json.dumps(asdict(ended[begun])), file=results)
            elif status != 0 and not any(name in ended for name in left):
                # It ended before its first case: that is no fault of a case, and would happen again.
                raise CannotRun(f"no device could be opened:\n{self._said(place)[-2000:]}")
            left = [name for name in left if name not in ended]
        return ended

    def _process(self, names: Sequence[str]) -> int | None:
        """Run one process until it ends; None when it was ended because a case took too long or the time is up."""
        with self._log.open("a") as log:
            process = subprocess.Popen(
                [*self._command, *names],
                cwd=self._out,  # tt-metal writes a folder `generated` there
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                seen, since = 0, time.monotonic()
                while process.poll() is None:
                    time.sleep(0.2)
                    size = self._results.stat().st_size if self._results.exists() else 0
                    if size != seen:
                        seen, since = size, time.monotonic()
                    if time.monotonic() - since > self._timeout or time.monotonic() > self._until:
                        return None
                return process.returncode
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _read(self) -> tuple[str | None, dict[str, Outcome]]:
        """The case that began last, and all that have ended."""
        begun, ended = None, {}
        if self._results.exists():
            for line in self._results.read_text().splitlines():
                row = json.loads(line)
                if "begins" in row:
                    begun = row["begins"]
                else:
                    ended[row["name"]] = Outcome(**row)
        return begun, ended

    def _said(self, place: int) -> str:
        with self._log.open(errors="replace") as log:
            log.seek(place)
            return log.read()

    def _lost(self, name: str, status: int | None, place: int) -> Outcome:
        """The outcome of a case in which the process ended."""
        if status is None:
            return Outcome(name, "late", text="it took too long")
        said = self._said(place)
        refusals = _REFUSAL.findall(said)
        if refusals:
            return Outcome(name, "refused", text=refusals[-1])
        return Outcome(name, "crashed", text=f"status {status}: {' '.join(said.split()[-40:])}")


def table(outcomes: dict[str, Outcome]) -> str:
    """Counts by group."""
    kinds = ("right", "wrong", "failed", "refused", "crashed", "late")
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes.values():
        for group in (outcome.name.partition("/")[0], "total"):
            counts.setdefault(group, Counter())[outcome.outcome] += 1
    groups = [*sorted(group for group in counts if group != "total"), *(["total"] if counts else [])]
    lines = [f"{'group':<12}" + "".join(f"{kind:>9}" for kind in kinds)]
    lines += [f"{group:<12}" + "".join(f"{counts[group][kind]:>9}" for kind in kinds) for group in groups]
    return "\n".join(lines)


def differences(ours: dict[str, Outcome], theirs: dict[str, Outcome]) -> tuple[int, list[str]]:
    """How many results have the same bits on both, and the names of those that have not."""
    both = [name for name in ours if ours[name].digest and name in theirs and theirs[name].digest]
    # Random numbers depend on how far the generator has run, which is a matter of time.
    other = [n for n in both if ours[n].digest != theirs[n].digest and not n.startswith("random/")]
    return len(both) - len(other), other


def main() -> int:
    """Prepare, run, compare, report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # processes end too
    options = _arguments()
    seed = default_seed() if options.seed is None else options.seed
    chosen = choose(CASES, options.names, seed if options.tenth else None)
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        print("no case has such a name")
        return 2
    try:
        parts = prepare()
    except CannotRun as reason:
        print(f"THE TTNN SWEEP DID NOT RUN: {reason}", flush=True)
        return 0
    began = time.monotonic()
    out: Path = (options.out or Path(tempfile.mkdtemp(prefix="bhemu-ttnn-"))).resolve()
    which = f"one in ten by seed {seed} (tenth {seed % 10})" if options.tenth else "all that were chosen"
    print(f"{len(chosen)} of {len(CASES)} cases, {which}; results in {out}", flush=True)
    wrong = 0
    dispatches = DISPATCH if options.dispatch == "both" else (options.dispatch,)
    for turn, dispatch in enumerate(dispatches, 1):
        until = began + 60 * options.minutes * turn / len(dispatches)
        names = [case.name for case in chosen]

        def run(
            library: Path | None,
            name: str,
            dispatch: str = dispatch,
            names: list[str] = names,
            until: float = until,
        ) -> dict[str, Outcome]:
            limits = {"timeout": options.timeout, "until": until, "resume": options.resume}
            return Runner(parts, out / f"{dispatch}{name}", slow=dispatch == "slow", library=library, **limits).run(
                names
            )

        try:
            outcomes = run(None, "")
        except CannotRun as reason:
            print(f"{dispatch} dispatch: {reason}")
            return 1
        print(f"\n{dispatch} dispatch\n{table(outcomes)}", flush=True)
        for outcome in outcomes.values():
            if outcome.outcome != "right":
                wrong += 1
                print(f"{outcome.outcome}: {outcome.name}: deviation {outcome.deviation} {outcome.text}")
        missing = [name for name in names if name not in outcomes]
        if missing:
            wrong += not (options.may_end_early and outcomes)
            print(f"the time was up before {len(missing)} cases, such as {missing[0]}")
        if options.library is not None:
            theirs = run(options.library.resolve(), "-other")
            same, other = differences(outcomes, theirs)
            print(f"{options.library}: {same} results have the same bits\n{table(theirs)}", flush=True)
            for name in other:
                print(f"other bits: {name}")
            wrong += len(other)
    print(f"{time.monotonic() - began:.0f} seconds")
    print("all right" if not wrong else f"{wrong} not right; details in {out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
