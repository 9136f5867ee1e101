"""Runs cases of the sweep, in ttnn's environment: `python -m tests.ttnn.worker RESULTS NAME...`.

Appends a JSON object to RESULTS when a case begins (name) and when it has ended (name, outcome, deviation, digest of
the results' bits, seconds, text). A refusal of the simulator ends the process; the sweep then starts another one.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import time
from typing import Any

from tests.ttnn.case import Bench, Case, torch, ttnn
from tests.ttnn.cases import CASES


def deviation(got: Any, want: Any) -> float:
    """max |got - want| / (|want| + mean |want|); infinite where one is a number and the other is not.

    Raises:
        ValueError: the shapes differ.
    """
    if list(got.shape) != list(want.shape):
        if [n for n in got.shape if n != 1] != [n for n in want.shape if n != 1]:
            raise ValueError(f"the shape is {tuple(got.shape)}, expected {tuple(want.shape)}")
        got = got.reshape(want.shape)
    got, want = got.double(), want.double()
    same = (got == want) | (torch.isnan(got) & torch.isnan(want))
    if bool(same.all()):
        return 0.0
    if not bool(torch.isfinite(got[~same]).all() and torch.isfinite(want[~same]).all()):
        return float("inf")
    scale = want[torch.isfinite(want)].abs().mean()
    return float(((got - want).abs() / (want.abs() + scale))[~same].max())


def run(case: Case, device: Any) -> dict[str, Any]:
    """Run one case."""
    began = time.monotonic()
    row: dict[str, Any] = {"outcome": "failed", "deviation": None, "digest": "", "text": ""}
    try:
        bits, worst = hashlib.sha256(), 0.0
        for got, want in case.body(Bench(device, case.name)):
            values = got if torch.is_tensor(got) else ttnn.to_torch(got)
            bits.update(values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
            worst = max(worst, deviation(values, want))
        row |= {"outcome": "right" if worst <= case.tolerance else "wrong", "deviation": worst}
        row |= {"digest": bits.hexdigest()}
    except Exception as error:
        row["text"] = f"{type(error).__name__}: {error}"[:3000]
    return row | {"seconds": round(time.monotonic() - began, 2)}


def main() -> None:
    """Run the cases that the command line names."""
    results, *names = sys.argv[1:]
    cases = {case.name: case for case in CASES}
    device = ttnn.open_device(device_id=0, l1_small_size=24576)
    for name in names:
        with open(results, "a") as file:
            print(json.dumps({"begins": name}), file=file)
        row = {"name": name} | run(cases[name], device)
        with open(results, "a") as file:
            print(json.dumps(row), file=file)
        gc.collect()
    ttnn.close_device(device)


if __name__ == "__main__":
    main()
