"""Where a word in a queue comes from: its *line*.

Positive lines are those of a program's source, 0 is unknown. A word that a core pushed has the core's pc in its line.
"""

from __future__ import annotations

from typing import Any, Final

from bhemu.machine.kernel import register_jitable

DEBUG_PORT_LINE: Final = 0x7FFFFFFF
"""Takes the place of the program line for words that a debugger pushed through the debug port (tile K4)."""


@register_jitable
def line_of_pc(pc: Any) -> Any:
    """The line of a word that a core at `pc` pushed; from Python and from compiled code."""
    return -1 - pc


def pc_of_line(line: int) -> int | None:
    """Where the core was that pushed a word; None for words of programs and of the debug port."""
    return -1 - line if line < 0 else None
