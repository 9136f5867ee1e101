"""Zones of tt-metal's device profiler: their names, and the CSV files in which its own tools have them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu.checks import checked
from bhemu.chip.coordinates import SIMULATOR, translation
from bhemu.files import files_below
from bhemu.loader.firmware_layout import CORE_ORDER
from bhemu.recording.zones import Marker, ProfiledRun, zone_number
from bhemu.report.operations import TimedOperation, zone_cycles
from bhemu.report.tensors import TensorText

MHZ: Final = 1350.0
"""Clock of a card."""
_MESSAGE: Final = re.compile(r"#pragma message: ([^\n]*,KERNEL_PROFILER)")
_CORES: Final = dict(zip(CORE_ORDER, ("BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2"), strict=True))
_KINDS: Final = {
    "start": "ZONE_START",
    "end": "ZONE_END",
    "total": "ZONE_TOTAL",
    "data": "TS_DATA",
    "event": "TS_EVENT",
    "data 16": "TS_DATA_16B",
}
_LOG_COLUMNS: Final = (
    *("PCIe slot", "core_x", "core_y", "RISC processor type", "timer_id", "time[cycles since reset]", "data"),
    *("run host ID", "trace id", "trace id counter", "zone name", "type", "source line", "source file", "meta data"),
)
_AXES: Final = "WZYX"
_INPUTS: Final = ("INPUT_0", "INPUT_1", "INPUT_2")
_TENSOR_COLUMNS: Final = tuple(
    f"{tensor}_{what}"
    for tensor in (*_INPUTS, "OUTPUT_0")
    for what in (
        *(f"{axis}_PAD[LOGICAL]" for axis in _AXES),
        *("LAYOUT", "DATATYPE", "MEMORY"),
    )
)
_OPERATION_COLUMNS: Final = (
    *("OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "MATH FIDELITY"),
    *("CORE COUNT", "AVAILABLE WORKER CORE COUNT", "PARALLELIZATION STRATEGY", "HOST START TS", "HOST END TS"),
    *("HOST DURATION [ns]", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]"),
    *("DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]", "DEVICE KERNEL DURATION PER CORE MIN [ns]"),
    *("DEVICE KERNEL DURATION PER CORE MAX [ns]", "DEVICE KERNEL DURATION PER CORE AVG [ns]"),
    *("DEVICE KERNEL FIRST TO LAST START [ns]", "DEVICE BRISC KERNEL DURATION [ns]"),
    *("DEVICE NCRISC KERNEL DURATION [ns]", "DEVICE TRISC0 KERNEL DURATION [ns]"),
    *("DEVICE TRISC1 KERNEL DURATION [ns]", "DEVICE TRISC2 KERNEL DURATION [ns]", "DEVICE ERISC KERNEL DURATION [ns]"),
    *("COMPUTE KERNEL SOURCE", *_TENSOR_COLUMNS, "PM IDEAL [ns]", "PM REQ I BW", "PM REQ O BW"),
)
_DURATIONS: Final = {core: f"DEVICE {_CORES[core].replace('_', '')} KERNEL DURATION [ns]" for core in CORE_ORDER}
_WORKERS: Final = 140


@dataclass(frozen=True)
class ZoneName:
    """What a zone is called, and where its text is."""

    name: str
    file: str = ""
    line: str = ""


class ZoneNames:
    """Names of zones by their numbers, from what tt-metal's compiler has said.

    Args:
        about: of the recording: names the directory of compiled kernels, whose logs have the messages.
        more: further directories with such logs.
    """

    @checked
    def __init__(self, about: Sequence[Mapping[str, Any]], more: Sequence[Path] = ()) -> None:
        places = [Path(cache) for told in about if (cache := told.get("environment", {}).get("TT_METAL_CACHE"))]
        self._names: dict[int, ZoneName] = {}
        for place in (*places, *more):
            for path in files_below(place, ".log"):
                self._read(path)

    def _read(self, log: Path) -> None:
        text = ""
        with suppress(FileNotFoundError):  # a client that runs beside has removed it
            text = log.read_text(errors="replace")
        for message in _MESSAGE.findall(text):
            name, file, line, _ = message.rsplit(",", 3)
            self._names[zone_number(message)] = ZoneName(name, file, line)

    @checked
    def of(self, zone: int) -> ZoneName:
        """The name of a zone; its number where no log has it."""
        return self._names.get(zone) or ZoneName(f"zone {zone}")

    @checked
    def is_kernel(self, zone: int) -> bool:
        """It is the zone that encloses a kernel."""
        return self.of(zone).name.endswith("-KERNEL")


@dataclass(frozen=True)
class ZoneCount:
    """How long a zone took on all tiles.

    Attributes:
        name: of the zone.
        core: by name.
        count: visits.
        least, most: cycles.
        total: of all visits.
    """

    name: str
    core: str
    count: int
    least: int
    most: int
    total: int


@checked
def count_zones(runs: Sequence[ProfiledRun], names: ZoneNames) -> list[ZoneCount]:
    """All zones, by name and core, those that took longest first.

    Args:
        runs: what the profiler has written.
        names: of zones.
    """
    times: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        for core, zone, begin, end in zone_cycles(run.markers):
            times.setdefault((names.of(zone).name, core), []).append(end - begin)
        for marker in run.markers:
            if marker.kind == "total":
                times.setdefault((names.of(marker.zone).name, marker.core), []).append(marker.data)
    found = [ZoneCount(*key, len(all_of), min(all_of), max(all_of), sum(all_of)) for key, all_of in times.items()]
    return sorted(found, key=lambda one: (-one.total, one.name, one.core))


def _row(run: ProfiledRun, marker: Marker, names: ZoneNames) -> list[object]:
    x, y = _NODES[run.place]
    name = names.of(marker.zone)
    number = marker.zone | tuple(_KINDS).index(marker.kind) << 16
    trace = [run.trace, run.trace] if run.trace else ["", ""]
    where = [name.name, _KINDS[marker.kind], name.line, name.file, ""]
    return [0, x, y, _CORES[marker.core], number, marker.time, marker.data, run.host_id, *trace, *where]


_NODES: Final = translation(SIMULATOR)
"""NoC coordinates of tiles, which tt-metal's file has, by the translated ones."""


@checked
def device_log(runs: Sequence[ProfiledRun], names: ZoneNames, *, mhz: float = MHZ) -> str:
    """The text of `profile_log_device.csv`: a row for each marker.

    Args:
        runs: what the profiler has written.
        names: of zones.
        mhz: the clock that the file names.
    """
    text = io.StringIO()
    text.write(f"ARCH: blackhole, CHIP_FREQ[MHz]: {mhz:.0f}, Max Compute Cores: {_WORKERS}\n")
    text.write(", ".join(_LOG_COLUMNS) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(_row(run, marker, names) for run in runs for marker in run.markers)
    return text.getvalue()


def _kernel_times(operation: TimedOperation, names: ZoneNames) -> dict[str, tuple[list[int], list[int]]]:
    """(begins, ends) of kernels by core; tiles without the profiler have those of the launch, as core ``."""
    found: dict[str, tuple[list[int], list[int]]] = {}
    for run in operation.runs.values():
        for core, zone, begin, end in zone_cycles(run.markers):
            if names.is_kernel(zone):
                begins, ends = found.setdefault(core, ([], []))
                begins.append(begin)
                ends.append(end)
    return found or {"": ([one.begin for one in operation.launches], [one.end for one in operation.launches])}


def _tensor_cells(column: str, tensor: TensorText) -> dict[str, object]:
    """Columns of a tensor; of more than four dimensions the outer ones are one."""
    ones = (1,) * (len(_AXES) - len(tensor.shape))
    shape, padded = (*ones, *tensor.shape), (*ones, *tensor.padded)
    more = len(shape) - len(_AXES) + 1
    sizes = [(math.prod(padded[:more]), math.prod(shape[:more])), *zip(padded[more:], shape[more:], strict=True)]
    cells: dict[str, object] = {
        f"{column}_{axis}_PAD[LOGICAL]": f"{size}[{logical}]"
        for axis, (size, logical) in zip(_AXES, sizes, strict=True)
    }
    memory = f"DEV_0_{tensor.memory}" if tensor.memory else ""
    return cells | {
        f"{column}_LAYOUT": tensor.layout,
        f"{column}_DATATYPE": tensor.dtype,
        f"{column}_MEMORY": memory,
    }


@checked
def operations_csv(operations: Sequence[TimedOperation], names: ZoneNames, *, mhz: float = MHZ) -> str:
    """The text of `ops_perf_results.csv`: a row for each operation, with the columns of tt-metal's.

    What only the host knows is empty: attributes, outputs; inputs, too, where tt-metal's inspector was not asked for
    them. Without the device profiler in the kernels, their times are those between the go signal and the answer.

    Args:
        operations: of a client's run.
        names: of zones.
        mhz: the clock.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, _OPERATION_COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()

    def ns(cycles: float) -> int:
        return round(cycles * 1000 / mhz)

    for number, operation in enumerate(operations, 1):
        times = _kernel_times(operation, names)
        begins = [begin for one, _ in times.values() for begin in one]
        ends = [end for _, one in times.values() for end in one]
        each = [end - begin for one, other in times.values() for begin, end in zip(one, other, strict=True)]
        row: dict[str, object] = {
            "OP CODE": operation.name,
            "OP TYPE": "tt_dnn_device",
            "GLOBAL CALL COUNT": operation.host_id or number,
            "DEVICE ID": 0,
            "DEVICE ARCH": "blackhole",
            "CORE COUNT": operation.tiles,
            "AVAILABLE WORKER CORE COUNT": _WORKERS,
            "HOST START TS": ns(operation.begin),
            "HOST END TS": ns(operation.begin),
            "HOST DURATION [ns]": 0,
            "DEVICE FW START CYCLE": operation.begin,
            "DEVICE FW END CYCLE": operation.end,
            "OP TO OP LATENCY [ns]": ns(operation.gap),
            "DEVICE FW DURATION [ns]": ns(operation.cycles),
            "DEVICE KERNEL DURATION [ns]": ns(max(ends) - min(begins)),
            "DEVICE KERNEL DURATION PER CORE MIN [ns]": ns(min(each)),
            "DEVICE KERNEL DURATION PER CORE MAX [ns]": ns(max(each)),
            "DEVICE KERNEL DURATION PER CORE AVG [ns]": ns(sum(each) / len(each)),
            "DEVICE KERNEL FIRST TO LAST START [ns]": ns(max(begins) - min(begins)),
            "COMPUTE KERNEL SOURCE": "; ".join(operation.kernels),
        }
        for core, (first, last) in times.items():
            if core:
                row[_DURATIONS[core]] = ns(max(last) - min(first))
        for column, tensor in zip(_INPUTS, operation.inputs, strict=False):
            row |= _tensor_cells(column, tensor)
        writer.writerow(row)
    return text.getvalue()
