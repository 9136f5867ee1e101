"""The debugger's commands that let the tile run."""

from __future__ import annotations

from collections.abc import Callable

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.commands.base import CommandBase, repeats
from bhemu.debugger.stops import Stop


class MoveCommands(CommandBase):
    """Running and stepping."""

    @repeats
    def continue_(self, text: str) -> None:
        """continue [TIMES]: run to a breakpoint, watchpoint, halt or refusal; with TIMES, to the TIMES-th of them."""
        times = self._count(text)
        for _ in range(times - 1):
            self.running = True
            try:
                stop = self.session.continue_()
            finally:
                self.running = False
            if stop.reason not in ("breakpoint", "watch"):
                break
        self._go(self.session.continue_)

    def run(self, text: str) -> None:
        """run: the same as continue; the cores are out of reset already."""
        if text:
            raise DebugError("run takes nothing", remedy="programs are named on the command line of bhemu debug")
        self.continue_("")

    @repeats
    def step(self, text: str) -> None:
        """step [TIMES]: run the chosen core to another source line, into functions."""
        self._repeat(self.session.step_line, self._count(text))

    @repeats
    def next(self, text: str) -> None:
        """next [TIMES]: run the chosen core to another source line, over calls."""
        self._repeat(lambda: self.session.step_line(over_calls=True), self._count(text))

    @repeats
    def stepi(self, text: str) -> None:
        """stepi [TIMES]: let the chosen core execute instructions; the others move on as they do anyway."""
        count = self._count(text)
        self._go(lambda: self.session.step(count=count))

    @repeats
    def nexti(self, text: str) -> None:
        """nexti [TIMES]: the same, over calls."""
        self._repeat(self.session.next, self._count(text))

    def _repeat(self, move: Callable[[], Stop], times: int) -> None:
        if times < 1:
            raise DebugError(f"{times} times", remedy="say 1 or more")
        for _ in range(times - 1):
            self.running = True
            try:
                stop = move()
            finally:
                self.running = False
            if stop.reason != "step":
                self._show(stop)
                return
        self._go(move)

    @repeats
    def reverse_step(self, text: str) -> None:
        """reverse-step [TIMES]: go back to the beginning of the source line before; without lines, an instruction."""
        self._repeat(self.session.reverse_line, self._count(text))

    @repeats
    def reverse_stepi(self, text: str) -> None:
        """reverse-stepi [TIMES]: go back to where the chosen core had executed that number of instructions fewer."""
        count = self._count(text)
        self._go(lambda: self.session.reverse_step(count=count))

    @repeats
    def reverse_continue(self, text: str) -> None:
        """reverse-continue: go back to the last place at which a breakpoint or watchpoint stops the run."""
        if text:
            raise DebugError("reverse-continue takes nothing", remedy="repeat it")
        self._go(self.session.reverse_continue)

    def history(self, text: str) -> None:
        """history [on | off | MIB]: what the session can go back to; how much memory its snapshots may take."""
        history = self.session.runner.history
        if text in ("on", "off"):
            history.enabled = text == "on"
            history.forget()
        elif text:
            size = self._number(text, "MiB")
            if size < 1:
                raise DebugError(f"{size} MiB", remedy="say 1 or more, or: history off")
            history.limit = size << 20
        self._print(history.describe())

    def finish(self, text: str) -> None:
        """finish: run until the function has returned; shows a0."""
        core = self.session.core
        stop = self._go(self.session.finish)
        if stop.reason == "step":
            self._print(f"a0 = {int(self.session.runner.state(core).x[10]):#x}")

    @repeats
    def until(self, text: str) -> None:
        """until CLOCKS: let this many clocks of the tile pass."""
        clocks = self._number(self._need(text, "until CLOCKS"), "clocks")
        self._go(lambda: self.session.until(clocks))

    def advance(self, text: str) -> None:
        """advance PLACE: run until the chosen core gets to a place; see break."""
        session = self.session
        item = session.break_at(self._need(text, "advance PLACE"), cores=[session.core], temporary=True)
        try:
            self._go(session.continue_)
        finally:
            if item in session.points():
                session.delete(item.number)

    def resume(self, text: str) -> None:
        """resume [CORE]: let a core that has halted (ebreak, ecall, refusal) go on with the instruction at its pc."""
        core = self.session.number_of_core(text or None)
        self.session.runner.resume(core)

    def jump(self, text: str) -> None:
        """jump PLACE: let the chosen core go on elsewhere, without running it."""
        session = self.session
        session.runner.set_pc(session.core, session.locate(self._need(text, "jump PLACE")))
        self._print(self.where())
