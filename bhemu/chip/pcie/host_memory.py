"""Memory of the host, as the chip reaches it: through functions that the client gives (tile H6, N27)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.chip.faults import refuse
from bhemu.errors import ConfigurationError
from bhemu.machine.faults import DONE, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import HOST_CALL, call_host
from bhemu.machine.types import ChipRecord, Int

_GIVE: Final = "give it one: libttsim_set_pci_dma_mem_callbacks before libttsim_init, in Python bhemu.Chip(host=...)"
NO_READ: Final = fault(
    "host.read",
    ConfigurationError,
    "the chip wants to read {0} bytes of host memory at {1:#x}, and the client has no callback for it",
    remedy=_GIVE,
    rule="tile H6",
)
NO_WRITE: Final = fault(
    "host.write",
    ConfigurationError,
    "the chip wants to write {0} bytes of host memory at {1:#x}, and the client has no callback for it",
    remedy=_GIVE,
    rule="tile H6",
)

ReadHost = Callable[[int, int], bytes]
WriteHost = Callable[[int, bytes], None]


@kernel
def access_host(chip: ChipRecord, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of bytes from host memory to an address in this process, or the other way round."""
    function = chip.host_write if writes else chip.host_read
    if function == 0 or call_host(function, address, pointer, size) != 0:
        return refuse(chip, NO_WRITE if writes else NO_READ, size, address)
    return DONE


class HostMemory:
    """Memory of the host as the chip reaches it: through functions of the client.

    Args:
        read: (address, size) -> bytes; None when the client has given none.
        write: (address, bytes) -> None.
    """

    def __init__(self, read: ReadHost | None = None, write: WriteHost | None = None) -> None:
        for name, called in (("read", read), ("write", write)):
            checks.optional(called, checks.function, name)
        self._read = read
        self._write = write

    @checked
    def read(self, address: int, size: int) -> bytes:
        """Bytes of host memory."""
        if self._read is None:
            raise ConfigurationError(f"there is no function that reads {size} bytes at {address:#x}", remedy=_GIVE)
        return self._read(address, size)

    @checked
    def write(self, address: int, content: bytes) -> None:
        """Bytes to host memory."""
        if self._write is None:
            raise ConfigurationError(f"there is no function that writes at {address:#x}", remedy=_GIVE)
        self._write(address, content)

    @property
    def reads(self) -> bool:
        """There is a function that reads."""
        return self._read is not None

    @property
    def writes(self) -> bool:
        """There is a function that writes."""
        return self._write is not None


class HostCalls:
    """The functions of a `HostMemory` for compiled code.

    Compiled code cannot raise what they raise: it is kept, and the access is refused.

    Args:
        host: memory of the host.

    Attributes:
        error: what a function has raised.
    """

    def __init__(self, host: HostMemory) -> None:
        self.error: BaseException | None = None
        self._host = host
        self._functions = HOST_CALL(self._fetch), HOST_CALL(self._give)

    def addresses(self) -> tuple[int, int]:
        """Of the functions that read and write; 0: there is none."""
        used = (self._host.reads, self._host.writes)
        found = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions]
        return found[0] if used[0] else 0, found[1] if used[1] else 0

    def take_error(self) -> BaseException | None:
        """What a function has raised since the last time."""
        error, self.error = self.error, None
        return error

    def _fetch(self, address: int, pointer: int, size: int) -> int:
        return self._guarded(lambda: ctypes.memmove(pointer, self._exactly(address, size), size))

    def _give(self, address: int, pointer: int, size: int) -> int:
        return self._guarded(lambda: self._host.write(address, ctypes.string_at(pointer, size)))

    def _exactly(self, address: int, size: int) -> bytes:
        content = bytes(self._host.read(address, size))
        if len(content) != size:
            raise ConfigurationError(
                f"the client's function has read {len(content)} bytes of host memory at {address:#x}, not {size}",
                remedy="let it return as many bytes as it is asked for",
            )
        return content

    def _guarded(self, access: Callable[[], Any]) -> int:
        try:
            access()
        except BaseException as error:  # goes on where compiled code was called
            self.error = error
            return 1
        return 0
