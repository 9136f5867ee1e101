"""Timed mode: the schedule of a tile in which a clock is an estimate of a cycle of silicon.

What is computed is the same; when it happens is decided by models of the cores' pipelines (cores.py) and of the
coprocessor's front end and units (words.py), with the figures of isa/silicon.py. `SiliconTime` puts it on a
tile, `ChipTime` on a chip, whose NoC takes time then (network.py, routes.py), `timed_cluster` on several chips.
"""

from bhemu.timed.chip import ChipTime, ChipTimeReport, ensure_no_quantum
from bhemu.timed.cluster_clock import timed_cluster
from bhemu.timed.observer import SiliconTime, TimedReport

__all__ = ["ChipTime", "ChipTimeReport", "SiliconTime", "TimedReport", "ensure_no_quantum", "timed_cluster"]
