"""What is going on, on standard error: compilations of a first run, then how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bhemu.cli.report import messages

REDRAW_SECONDS = 0.1
REPEAT_SECONDS = 10.0
"""Between two lines about how far it is, where there is no terminal."""


@contextmanager
def parts_compiled() -> Iterator[Callable[[str, int], None]]:
    """A bar while all machine code is compiled: to be called with the name of each part, and how many there are."""
    from rich.progress import Progress as Bar

    if not messages().is_terminal:
        yield lambda name, total: None
        return
    with Bar(console=messages(), transient=True) as progress:
        bar = progress.add_task("compiling", total=None)

        def told(name: str, total: int) -> None:
            progress.update(bar, total=total, advance=1, description=f"compiled {name}")

        yield told


class Progress:
    """A status line while something runs; on no terminal, a line every two seconds while something has to be compiled.

    Args:
        silent: show nothing.

    Attributes:
        compiled: names of what was compiled, for the cache did not have it.
    """

    def __init__(self, *, silent: bool) -> None:
        self.compiled: list[str] = []
        self._console = messages()
        self._silent = silent
        self._status: Any = None
        self._drawn = 0.0
        self._told = -REPEAT_SECONDS

    def __enter__(self) -> Progress:
        from bhemu.machine.compiler import on_compile

        on_compile(self._compiling)
        if not self._silent and self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        from bhemu.compiling.progress import tell
        from bhemu.machine.compiler import on_compile

        on_compile(tell)
        if self._status is not None:
            self._status.stop()

    def _compiling(self, name: str) -> None:
        from bhemu.compiling.progress import counted, describe, tell

        self.compiled.append(name)
        if self._silent or self._status is not None:
            counted(name)
            self.show(describe(name))
        else:
            if len(self.compiled) == 1:
                self._console.print("compiling (first run only) ...")
            tell(name)

    @property
    def is_due(self) -> bool:
        """The status line is shown, and old enough to be drawn again."""
        now = time.monotonic()
        if self._status is None or now - self._drawn < REDRAW_SECONDS:
            return False
        self._drawn = now
        return True

    def show(self, text: str) -> None:
        """Replace the status line."""
        if self._status is not None:
            self._status.update(text)

    def state(self, text: str) -> None:
        """Replace the status line; on no terminal, print a line now and then."""
        now = time.monotonic()
        if self._status is not None:
            self._status.update(text)
        elif not self._silent and now - self._told > REPEAT_SECONDS:
            self._told = now
            self._console.print(text, highlight=False)

    def clocks(self, clocks: int) -> None:
        """Called often while a tile runs."""
        if self.is_due:
            self.show(f"{clocks:,} clocks")
