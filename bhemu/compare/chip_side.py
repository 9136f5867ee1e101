"""bhemu's side: a chip in this process, behind the same calls."""

from __future__ import annotations

from typing import Final

from bhemu.capi.machine_text import CATEGORIES
from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.compare import child
from bhemu.compare.calls import (
    CLOCK,
    CONFIG_READ,
    CONFIG_WRITE,
    EXIT,
    INIT,
    PREFIX,
    READ,
    WRITE,
    Call,
    Ended,
    Outcome,
)
from bhemu.errors import BhemuError, ConfigurationError

_BUG: Final = "AssertionFailure"


class ChipSide:
    """A chip that answers calls.

    Args:
        allow_open: use the recommended choice where no source settles what silicon does.

    Attributes:
        error: the refusal, once there is one.
        time: clocks that have passed, also after the chip was discarded.
    """

    def __init__(self, *, allow_open: bool = False) -> None:
        self._allow_open = allow_open
        self._chip: Device | None = None
        self._host = child.HostMemory()
        self._ended: Ended | None = None
        self.error: BhemuError | None = None
        self.time = 0

    @property
    def chip(self) -> Device:
        """The chip.

        Raises:
            ConfigurationError: it is not there before `init` and after `exit`.
        """
        if self._chip is None:
            raise ConfigurationError(
                "the simulator is not running", remedy="begin with libttsim_init, and end with libttsim_exit"
            )
        return self._chip

    def call(self, call: Call) -> Outcome:
        """Make a call; after a refusal all calls have its outcome."""
        if self._ended is not None:
            return self._ended
        for address, content in call.host:
            self._host.put(address, content)
        try:
            return self._make(call)
        except BhemuError as error:
            self.error = error
            clock = self._chip.time if self._chip is not None else 0
            category = CATEGORIES.get(error.category, _BUG)
            self._ended = Ended("refused", category, f"{PREFIX}{call.name}: {error.message}", clock)
            return self._ended
        finally:
            if self._chip is not None:
                self.time = self._chip.time

    def _make(self, call: Call) -> bytes:
        if call.name == INIT:
            if self._chip is not None:
                raise ConfigurationError("the simulator is running already", remedy="call libttsim_exit first")
            memory = HostMemory(self._host.read, self._host.write)
            self._chip = Device(simulator_order=True, allow_open=self._allow_open, host=memory)
            return b""
        chip = self.chip
        if call.name == READ:
            return chip.read(call.a, call.size)
        if call.name == WRITE:
            chip.write(call.a, call.content)
        elif call.name == CLOCK:
            chip.clock(call.a)
        elif call.name == CONFIG_READ:
            return chip.read_config(call.a, call.b).to_bytes(4, "little")
        elif call.name == CONFIG_WRITE:
            chip.write_config(call.a, call.b, int.from_bytes(call.content, "little"))
        elif call.name == EXIT:
            self._chip = None
        return b""

    def host_log(self) -> bytes:
        """What the chip has written to the host's memory."""
        return self._host.packed_log()
