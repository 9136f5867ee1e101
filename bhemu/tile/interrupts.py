"""The interrupt controller, and how cores B and NC enter handlers (tile K22 to K24).

Software IRQs are words: a store raises or clears one, a load shows and clears it. Of the hardware IRQs, 1 and 2 are the
network interfaces' and stay raised as long as an enabled return-to-zero bit is set (N24).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import UndefinedBehavior
from bhemu.isa.memory_map import region
from bhemu.isa.niu import RTZ_ENABLES
from bhemu.isa.tile_registers import bits_of, offset_of, tile_register
from bhemu.machine.agents import NC, B
from bhemu.machine.core_state import ASLEEP, BLOCKED, RUNNING
from bhemu.machine.device_state import RTZ_CONFIG
from bhemu.machine.faults import DONE, fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.poll import wake
from bhemu.riscv.teams import NO_ATTEMPT
from bhemu.tile.reset import agent_round

SOFTWARE: Final = len(tile_register("pic", "SOFTWARE_IRQ").offsets)
HARDWARE: Final = len(tile_register("pic", "HARDWARE_IRQ").offsets)
IRQS: Final = SOFTWARE + HARDWARE
_OF_NIU_0: Final = 1
_OF_NIU_1: Final = 2

_CORE_BYTES: Final = offset_of("pic", "NC_SOFTWARE_ENABLES")
_ENABLES_END: Final = 2 * _CORE_BYTES
_HANDLING: Final = offset_of("pic", "B_HANDLING") // 4
"""Third word of each core: the number of the IRQ being handled."""
_RAISED_FIRST: Final = offset_of("pic", "SOFTWARE_IRQ")
_HARDWARE_FIRST: Final = offset_of("pic", "HARDWARE_IRQ")
_HANDLERS_FIRST: Final = offset_of("pic", "SOFTWARE_HANDLER")
_HANDLERS_END: Final = tile_register("pic", "HARDWARE_HANDLER").offsets[-1] + 4
_HARDWARE_BITS: Final = bits_of("pic", "B_HARDWARE_ENABLES", "ENABLES")[1]

NO_CORE: Final = -1

NO_REGISTER: Final = fault(
    "interrupts.register",
    UndefinedBehavior,
    "the interrupt controller has no register at offset {0:#x}",
    remedy=f"its registers are from {region('pic').base:#x} to {region('pic').end - 1:#x}",
    rule="tile K22",
)


@kernel
def _place(core: Int) -> Int:
    """Which of the two that take interrupts a core is; NO_CORE for the others (K24)."""
    if core == B:
        return 0
    return 1 if core == NC else NO_CORE


@kernel
def _is_raised(t: TileRecord, irq: Int) -> Bool:
    """True when software IRQ 0 to 31 or hardware IRQ 32 to 35 is raised."""
    if irq < SOFTWARE:
        return t.pic_software[irq] != 0
    source = irq - SOFTWARE
    if source in (_OF_NIU_0, _OF_NIU_1):
        noc = source - _OF_NIU_0
        if np.int64(t.niu_rtz[noc]) & np.int64(t.niu_config[noc, RTZ_CONFIG]) & RTZ_ENABLES:
            return True
    return t.pic_hardware[source] != 0


@kernel
def _is_enabled(t: TileRecord, place: Int, irq: Int) -> Int:
    if irq < SOFTWARE:
        return (np.int64(t.pic_enable[place, 0]) >> irq) & 1
    return (np.int64(t.pic_enable[place, 1]) >> (irq - SOFTWARE)) & 1


@kernel
def _next(t: TileRecord, place: Int) -> Any:
    """The IRQ whose turn it is among those raised and enabled (round robin), or -1."""
    first = np.int64(t.pic_next[place])
    for i in range(IRQS):
        irq = (first + i) % IRQS
        if _is_enabled(t, place, irq) and _is_raised(t, irq):
            return irq
    return np.int64(-1)


@kernel
def notice(t: TileRecord) -> None:
    """To be called when an IRQ may have been raised, or enabled: the core that it interrupts does not sleep on."""
    t.interrupts = 0
    for place in range(2):
        core = B if place == 0 else NC
        if t.pic_enable[place, 0] == 0 and t.pic_enable[place, 1] == 0:
            continue
        t.interrupts = 1
        if t.core_in_handler[core] != 0 or _next(t, place) < 0:
            continue
        if t.core_state[core] == ASLEEP:
            wake(t, core, agent_round(t, core))
        elif t.core_state[core] == BLOCKED:
            t.core_state[core] = RUNNING
            t.core_round[core] = max(np.int64(t.core_round[core]), agent_round(t, core))


@kernel
def take_interrupt(t: TileRecord, core: Int) -> None:
    """Enter the handler of an interrupt that is raised and enabled, if there is one (K24).

    Its pc is kept in `core_interrupted_pc`, which `mret` takes back; handlers do not nest.
    """
    place = _place(core)
    if place == NO_CORE or t.core_in_handler[core] != 0:
        return
    irq = _next(t, place)
    if irq < 0:
        return
    t.pic_next[place] = (irq + 1) % IRQS
    t.pic_handling[place] = np.uint32(irq)
    t.core_interrupted_pc[core] = t.core_pc[core]
    t.core_pc[core] = t.pic_handler[irq]
    t.core_in_handler[core] = 1
    t.poll_steps[core] = NO_ATTEMPT


@kernel
def pic_load(t: TileRecord, agent: Int, offset: Int) -> tuple[Int, Int]:
    """(status, value) of a load, 0 <= offset < 0x138."""
    if offset < _ENABLES_END:
        place, word = offset // _CORE_BYTES, (offset % _CORE_BYTES) // 4
        if word == _HANDLING:
            return DONE, np.int64(t.pic_handling[place])
        return DONE, np.int64(t.pic_enable[place, word])
    if offset < _HARDWARE_FIRST:
        irq = (offset - _RAISED_FIRST) // 4
        value = np.int64(t.pic_software[irq])
        t.pic_software[irq] = np.uint32(0)
        return DONE, value
    if offset < _HANDLERS_FIRST:
        source = (offset - _HARDWARE_FIRST) // 4
        value = np.int64(1 if _is_raised(t, SOFTWARE + source) else 0)
        t.pic_hardware[source] = np.uint32(0)
        return DONE, value
    if offset < _HANDLERS_END:
        return DONE, np.int64(t.pic_handler[(offset - _HANDLERS_FIRST) // 4])
    return refuse(t, NO_REGISTER, offset), np.int64(0)


@kernel
def pic_store(t: TileRecord, agent: Int, offset: Int, value: Int) -> Int:
    """Status of a store of 32 bits; see `pic_load`."""
    if offset < _ENABLES_END:
        place, word = offset // _CORE_BYTES, (offset % _CORE_BYTES) // 4
        if word != _HANDLING:  # a store there is discarded
            t.pic_enable[place, word] = np.uint32(value if word == 0 else value & _HARDWARE_BITS)
    elif offset < _HARDWARE_FIRST:
        t.pic_software[(offset - _RAISED_FIRST) // 4] = np.uint32(value)
    elif offset < _HANDLERS_FIRST:
        return DONE  # no effect
    elif offset < _HANDLERS_END:
        t.pic_handler[(offset - _HANDLERS_FIRST) // 4] = np.uint32(value)
    else:
        return refuse(t, NO_REGISTER, offset)
    notice(t)
    return DONE
