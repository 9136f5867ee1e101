"""Reading conformance vectors (format version 1): cases of initial state + program -> expected state.

A file holds a pool of initial states and, for each case, run-length coded cells that the case sets on top of its pool
state and
cells that must differ afterwards; a cell that is not listed must keep its value. Every state is a set of flat arrays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.errors import FormatError
from bhemu.machine.state import L1_SIZE

Array = np.ndarray[Any, Any]
State = dict[str, Array]

# Name -> (dtype, number of elements); L1 is a window of `meta.l1_size` bytes.
SHAPES: Final[dict[str, tuple[str, int]]] = {
    "dst": ("u2", 1024 * 16),
    "dst_valid": ("u1", 1024),
    "srca": ("u4", 2 * 64 * 16),
    "srcb": ("u4", 2 * 64 * 16),
    "lregs": ("u4", 16 * 32),
    "prng": ("u4", 32),
    "gpr": ("u4", 3 * 64),
    "cfg": ("u4", 2 * 224),
    "tcfg": ("u2", 3 * 68),
    "adc": ("u4", 3 * 3 * 16),
    "rwc": ("u4", 3 * 8),
    "src": ("u4", 12),
    "sfpu": ("u4", 20),
    "macro": ("u4", 9),
    "packer": ("u4", 6),
    "sync": ("u4", 21),
    "replay": ("u4", 3 * 32),
    "mop": ("u4", 30),
    "l1": ("u1", 0),
}
INFORMATIVE: Final = frozenset({"packer", "macro", "replay", "mop"})
"""Arrays that describe the internals of the generator's machine; their effect shows in later instructions."""

_LREG_DEFAULTS: Final = {8: 0x3F56594B, 10: 0x3F800000, 11: 0xBF800000, 12: 0x3B000000, 13: 0xBF2CC4C7, 14: 0xBEB08FF9}


def _require(condition: bool, array: str) -> None:
    if not condition:
        raise ValueError(f"{array} does not fit the other arrays")


def _runs(pointers: Array, count: int, total: int, group: str) -> None:
    """`pointers` cut `total` entries into `count` runs."""
    ordered = len(pointers) == count + 1 and bool((np.diff(pointers.astype(np.int64)) >= 0).all())
    _require(ordered and int(pointers[0]) == 0 and int(pointers[-1]) == total, group + "_ptr")


@dataclass(frozen=True)
class Case:
    """One conformance case.

    Attributes:
        index: its place in the file.
        name: unique within the file.
        labels: what it covers.
        program: (thread, instruction word) in the order of execution.
    """

    index: int
    name: str
    labels: tuple[str, ...]
    program: tuple[tuple[int, int], ...]


@checked
class VectorFile:
    """One .npz of conformance cases.

    Args:
        path: the file.

    Raises:
        FormatError: the file is not a vector file, is truncated, or has another version.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            with np.load(self.path, allow_pickle=False) as content:
                self._data: State = {key: content[key] for key in content.files}
            meta = json.loads(str(self._data["meta"]))
            self.family = str(meta["family"])
            self.count = int(meta["cases"])
            self.l1_base = int(meta["l1_base"])
            self.l1_size = int(meta["l1_size"])
            self.labels = tuple(label.decode() for label in self._data["label_names"])
            version = int(meta.get("version", 1))
            if version == 1:
                self._check()
        except Exception as error:  # readers of .npz and JSON fail in many ways on a damaged file
            reason = " ".join(str(error).split()) or type(error).__name__
            raise FormatError(
                f"{self.path}: cannot read conformance vectors ({reason})", remedy="give a .npz of format version 1"
            ) from None
        if version != 1:
            raise FormatError(f"{self.path}: vector format version {version}", remedy="version 1 is understood")
        self._value_at = {
            key: np.concatenate([[0], np.cumsum(self._data[key].astype(np.int64))])
            for key in self._data
            if key.endswith("_len")
        }

    def _check(self) -> None:
        """Raise ValueError or KeyError unless the arrays fit together, so that no case fails to read later."""
        data = self._data
        _require(self.count >= 0 and self.l1_base >= 0 and 0 <= self.l1_size <= L1_SIZE - self.l1_base, "meta")
        for name, values in data.items():
            if name == "name":
                for text in values:
                    text.decode()
            elif name not in ("meta", "label_names"):
                whole = values.dtype.kind in "iu" and (
                    values.ndim > 1 if name.startswith("state_") else values.ndim == 1
                )
                _require(whole and not (values.dtype.kind == "i" and (values < 0).any()), name)
        _require(int(data["prog_word"].max(initial=0)) < 1 << 32, "prog_word")
        for name in ("state", "name"):
            _require(len(data[name]) == self.count, name)
        _runs(data["label_ptr"], self.count, len(data["label_id"]), "label")
        _require(data["label_id"].max(initial=0) < max(1, len(self.labels)), "label_id")
        _runs(data["prog_ptr"], self.count, len(data["prog_word"]), "prog")
        _require(len(data["prog_thread"]) == len(data["prog_word"]), "prog_thread")
        _require(data["prog_thread"].max(initial=0) < 3, "prog_thread")
        sizes = {name: count for name, (_, count) in SHAPES.items()} | {"l1": self.l1_size}
        for name, size in sizes.items():
            pool = data.get("state_" + name)
            if pool is not None:
                _require(int(data["state"].max(initial=0)) < len(pool) and pool[0].size == size, "state_" + name)
            for group in (f"init_{name}", f"exp_{name}"):
                if group + "_ptr" in data:
                    starts, lengths, values = (
                        data[group + part].astype(np.int64) for part in ("_start", "_len", "_val")
                    )
                    _runs(data[group + "_ptr"], self.count, len(starts), group)
                    _require(len(lengths) == len(starts) and int(lengths.sum()) == len(values), group)
                    _require(int((starts + lengths).max(initial=0)) <= size, group)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Case]:
        return (self.case(index) for index in range(self.count))

    def case(self, index: int) -> Case:
        """Name, labels and program of a case."""
        data = self._data
        first, last = data["label_ptr"][index : index + 2]
        start, end = data["prog_ptr"][index : index + 2]
        return Case(
            index,
            data["name"][index].decode(),
            tuple(self.labels[k] for k in data["label_id"][first:last]),
            tuple(
                zip(
                    (int(t) for t in data["prog_thread"][start:end]),
                    (int(w) for w in data["prog_word"][start:end]),
                    strict=True,
                )
            ),
        )

    def defaults(self) -> State:
        """The state of everything that neither the pool nor a case mentions."""
        state = {name: np.zeros(count, kind) for name, (kind, count) in SHAPES.items()}
        state["l1"] = np.zeros(self.l1_size, "u1")
        state["dst_valid"][:] = 1
        lregs = state["lregs"].reshape(16, 32)
        for register, bits in _LREG_DEFAULTS.items():
            lregs[register] = bits
        lregs[15] = 2 * np.arange(32)
        state["sfpu"][:2] = 0xFFFFFFFF, 1
        return state

    def initial(self, index: int) -> State:
        """Full state before the program of case `index`."""
        state = self.defaults()
        pool = int(self._data["state"][index])
        for name in state:
            stored = self._data.get("state_" + name)
            if stored is not None:
                state[name] = stored[pool].reshape(-1).astype(state[name].dtype)
        self._apply("init", index, state)
        return state

    def expected(self, index: int, initial: State) -> State:
        """Full state that the program must leave behind, given `initial(index)`."""
        state = {name: values.copy() for name, values in initial.items()}
        self._apply("exp", index, state)
        return state

    def _apply(self, kind: str, index: int, state: State) -> None:
        for name in SHAPES:
            key = f"{kind}_{name}"
            pointers = self._data.get(key + "_ptr")
            if pointers is None:
                continue
            first, last = int(pointers[index]), int(pointers[index + 1])
            value_at = self._value_at[key + "_len"]
            starts, lengths, values = (self._data[key + part] for part in ("_start", "_len", "_val"))
            for run in range(first, last):
                start, length, at = int(starts[run]), int(lengths[run]), int(value_at[run])
                state[name][start : start + length] = values[at : at + length]
