"""How long fast dispatch takes from one program of a trace to the next."""

from __future__ import annotations

from dataclasses import dataclass

from bhemu.isa.silicon import figure
from bhemu.predict.operations import MHZ


@dataclass(frozen=True, slots=True)
class Program:
    """What a program needs of the dispatch cores.

    Attributes:
        kernel_bytes: of the kernel of each processor.
        processors: of a core that have a kernel, 1 to 5.
        all_cores: all cores run it; otherwise one.
        configured: it has circular buffers or common arguments.
        unique_bytes: of arguments that differ by core, on each core; 0 none.
        groups: of cores with different kernels or configuration.
        slow_cycles: that its kernels run.
    """

    kernel_bytes: int
    processors: int = 1
    all_cores: bool = False
    configured: bool = False
    unique_bytes: int = 0
    groups: int = 1
    slow_cycles: int = 0


def _f(name: str) -> float:
    return figure(name).value


def dispatch(program: Program) -> float:
    """Microseconds from the begin of one such program to the begin of the next."""
    size = program.kernel_bytes * program.processors
    least = _f("dispatch.fixed") + _f("dispatch.processor") * program.processors
    least += _f("dispatch.all_cores") if program.all_cores else 0.0
    send = _f("dispatch.send") + _f("dispatch.send.processor") * program.processors + size / _f("dispatch.rate")
    if program.configured:
        more = _f("dispatch.configuration")
        least, send = least + more, send + more
    if program.unique_bytes:
        least += _f("dispatch.unique") + program.unique_bytes * _f("dispatch.unique.byte")
        send = least + max(0.0, size - _f("dispatch.hidden")) / _f("dispatch.rate")
    further = (program.groups - 1) * _f("dispatch.group")
    time = max(least + further, send)
    if program.slow_cycles:
        slow = program.slow_cycles + _f("dispatch.between")
        # The next program's kernels are sent while this one runs, if both fit into the cores' ring of kernels.
        time = max(time, slow) if 2 * size <= _f("dispatch.ring") else slow + time
    return time / MHZ
