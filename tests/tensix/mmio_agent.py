"""Loads and stores of memory-mapped registers by a core or by the NoC."""

from __future__ import annotations

from bhemu.errors import BhemuError
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.faults import DONE, FAULTS
from bhemu.machine.state import new_tiles
from bhemu.tensix.mmio import mmio_load_entry, mmio_store_entry

_LOAD = compile_entry("mmio_load", mmio_load_entry)
_STORE = compile_entry("mmio_store", mmio_store_entry, arguments=3)


class Registers:
    """The registers of a new tile; an access that is refused raises what the host would."""

    def __init__(self) -> None:
        self._tiles = new_tiles(1)
        self._target = self._tiles.ctypes.data if JIT else self._tiles[0]
        self.record = self._tiles[0]

    def load(self, agent: int, address: int) -> int:
        value = int(_LOAD.call(self._target, agent, address))
        self._check()
        assert 0 <= value < 1 << 32
        return value

    def store(self, agent: int, address: int, value: int) -> None:
        status = _STORE.call(self._target, agent, address, value)
        self._check()
        assert status == DONE

    def _check(self) -> None:
        code = int(self.record.fault_code)
        if code:
            self.record.fault_code = 0
            known = FAULTS[code]
            error: BhemuError = known.error(known.text.format(*(int(v) for v in self.record.fault_value)))
            raise error
