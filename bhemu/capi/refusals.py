"""The message of a refusal, as clients of the official simulator know it (tile H20)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import traceback
from typing import Final

from bhemu.capi.settings import ALLOW_OPEN
from bhemu.chip.device import Device
from bhemu.errors import BhemuError, MissingSpecification

_STANDARD_OUTPUT: Final = 1
STANDARD_ERRORS: Final = 2


def write(stream: int, content: bytes) -> None:
    """Write to the process's standard output or errors itself: Python's may lead elsewhere."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
    with contextlib.suppress(OSError):  # its reader has ended
        while content:
            content = content[os.write(stream, content) :]


def say(text: str) -> None:
    """Write to standard output."""
    write(_STANDARD_OUTPUT, text.encode("utf-8", "replace"))


def waiting_text(clock: int, who: str, *, link_fails: bool) -> str:
    """What a client is told that only polls.

    Args:
        clock: that it is.
        who: does or waits for what.
        link_fails: that is why it is told, and not that nothing can proceed.
    """
    what = "no core or thread on the chip can proceed, and the host only polls; what waits"
    if link_fails:
        what = "a link has failed, and the host only polls; what its chip does or waits for"
    return f"[{clock}] bhemu: {what}, by physical coordinates:\n{who}\n"


def polling_text(seconds: int) -> str:
    """What a client is told that polls, where the cores only poll, too; as report_polling of explain.c."""
    return (
        f"the host only polls, and so do the cores, for {seconds} seconds: none has written over a NoC or a link, "
        "or used its coprocessor"
    )


def _category(error: BaseException) -> str:
    from bhemu.capi.machine_text import CATEGORIES

    if isinstance(error, BhemuError):
        return CATEGORIES.get(error.category, "AssertionFailure")
    return "SystemError" if isinstance(error, OSError | MemoryError) else "AssertionFailure"


def refusal_text(function: str, error: BaseException, chip: Device | None, *, clock: int = 0) -> str:
    """The message that clients expect, and further details; the state is written where BHEMU_DUMP says.

    Args:
        chip: at fault; None: there is none, or it is in another process, and the error has notes of where it was.
        clock: that it is, without a chip.
    """
    from bhemu.capi.fault_report import DUMP, fault_place, write_dump

    clock = clock if chip is None else chip.time
    lines = []
    if isinstance(error, BhemuError):
        lines += error.message.splitlines()
        if chip is not None:
            lines += fault_place(chip, error)
        lines += getattr(error, "__notes__", ())
        if error.remedy:
            lines.append(f"  remedy: {error.remedy}")
        if isinstance(error, MissingSpecification) and "open choices" in (error.remedy or ""):
            lines.append(f"  {ALLOW_OPEN}=1 allows open choices")
    else:
        lines += [f"{type(error).__name__}: {error}", *"".join(traceback.format_exception(error)).splitlines()]
    if chip is not None and os.environ.get(DUMP):
        lines.append(f"  {write_dump(chip, error)}")
    return f"[{clock}] ERROR: {_category(error)}: {function}: " + "\n".join(lines) + "\n"
