"""Zicsr and the control and status registers of the cores (tile T12, T13, E5)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.riscv import NUMBER
from bhemu.machine.agents import T2, is_t_core
from bhemu.machine.faults import DONE, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.arithmetic import WORD
from bhemu.tensix.frontend.status_types import BUSY, QUEUED, tensix_status

CSRRW, CSRRS = NUMBER["csrrw"], NUMBER["csrrs"]
CSRRWI, CSRRSI, CSRRCI = NUMBER["csrrwi"], NUMBER["csrrsi"], NUMBER["csrrci"]

FCSR: Final = 0x003
VSTART: Final = 0x008
VXSAT: Final = 0x009
VXRM: Final = 0x00A
MSTATUS: Final = 0x300
MISA: Final = 0x301
CFG0: Final = 0x7C0
PMACFG0: Final = 0x7C1
PMACFG1: Final = 0x7C2
SCRATCH_FIRST: Final = 0x7C3
SCRATCH_LAST: Final = 0x7C6
# mcycle and minstret, and their aliases, which can be written here
MCYCLE: Final = 0xB00
MINSTRET: Final = 0xB02
HIGH: Final = 0x80
"""From the number of a counter's low half to that of its high half."""
ALIAS: Final = 0x100
"""From the number of a counter to that of its alias."""
QSTATUS: Final = 0xBC0
BSTATUS: Final = 0xBC1
STREAM_FIRST: Final = 0xBC2
STREAM_LAST: Final = 0xBC9
INTERRUPTED_PC: Final = 0xBCA
VL: Final = 0xC20
VTYPE: Final = 0xC21
VLENB: Final = 0xC22
MHARTID: Final = 0xF14

MSTATUS_VALUE: Final = 0x80006600
MISA_VALUE: Final = 0x40201123
FREEZES_STATUS: Final = 1 << 29
"""DisTTStatusReg of cfg0: qstatus and bstatus keep their values, and software may change them."""
FCSR_BITS: Final = 0xFF
FLAGS_UNKNOWN: Final = 1 << 31
"""In `core_fcsr`: arithmetic has happened since fcsr was written, which may have raised flags."""

UNKNOWN: Final = fault(
    "riscv.csr",
    UndefinedBehavior,
    "CSR {0:#x} does not exist",
    remedy="the cores have cfg0 (0x7c0), pmacfg, scratch registers, mcycle, minstret, mstatus, misa, mhartid, fcsr, "
    "qstatus and bstatus",
    rule="tile T12",
)
READ_ONLY: Final = fault(
    "riscv.csr-read-only",
    UndefinedBehavior,
    "CSR {0:#x} can only be read",
    remedy="read it with csrr; csrrs and csrrc with x0 or 0 as their operand do not write",
    rule="tile T12",
)
VECTOR: Final = fault(
    "riscv.csr-vector",
    UndefinedBehavior,
    "CSR {0:#x} belongs to the vector extension (V), which core T2 alone has",
    remedy="compile without V, or run the code on core T2",
    rule="tile T7",
)
PERFORMANCE: Final = fault(
    "riscv.csr-performance",
    Unimplemented,
    "CSR {0:#x} belongs to the performance counters, which bhemu does not have",
    remedy="mcycle (0xb00) and minstret (0xb02) count",
    rule="tile T12",
)
STREAM: Final = fault(
    "riscv.csr-stream",
    Unimplemented,
    "on a T core CSR {0:#x} shows the phase or message counter of an overlay stream, which bhemu does not have",
    remedy=f"load the stream's register at {region('overlay').base:#x}",
    rule="tile T12",
)
HANDLER_WRITES: Final = fault(
    "riscv.csr-in-handler",
    NonContractualBehavior,
    "an interrupt handler writes CSR {0:#x}: silicon loses the write",
    remedy="write it outside of handlers",
    rule="tile K24",
)
COPY_OF_PC: Final = fault(
    "riscv.csr-interrupted-pc",
    NonContractualBehavior,
    "CSR {0:#x} is a copy of the interrupted pc: writing it does not change where mret goes",
    remedy="do not write it",
    rule="tile T12",
)
FLAGS: Final = fault(
    "riscv.csr-flags",
    MissingSpecification,
    "no source says which exception flags of fcsr floating-point arithmetic raises",
    remedy="do not read fcsr after arithmetic; a program that accepts open choices sees what was written last",
    rule="tile T6",
)


@kernel
def _is_vector(csr: Int) -> Bool:
    return (csr >= VSTART and csr <= VXRM) or (csr >= VL and csr <= VLENB)


@kernel
def _is_performance(csr: Int) -> bool:
    return csr in (0x320, 0x323, 0x324, 0xB03, 0xB04, 0xB83, 0xB84)


@kernel
def _refuse_other(t: TileRecord, csr: Int) -> Int:
    if _is_vector(csr):
        return refuse(t, VECTOR, csr)
    if _is_performance(csr):
        return refuse(t, PERFORMANCE, csr)
    return refuse(t, UNKNOWN, csr)


@kernel
def _counter(csr: Int) -> Any:
    """MCYCLE or MINSTRET for each of a counter's four numbers, else 0."""
    number = csr & ~HIGH
    if number in (MCYCLE, MCYCLE + ALIAS):
        return MCYCLE
    return MINSTRET if number in (MINSTRET, MINSTRET + ALIAS) else 0


@kernel
def _count(t: TileRecord, core: Int, counter: Int) -> Int:
    """64 bits of mcycle, the tile's clock, or of minstret, the instructions that have retired before this one."""
    if counter == MCYCLE:
        return np.int64(t.now_round) - np.int64(t.free_rounds) + np.int64(t.core_cycle_offset[core])
    return np.int64(t.core_retired[core]) + np.int64(t.core_instret_offset[core])


@kernel
def _set_count(t: TileRecord, core: Int, counter: Int, value: Int) -> None:
    """The next instruction finds `value` in minstret, as the privileged architecture has it, or counts on in mcycle."""
    if counter == MCYCLE:
        t.core_cycle_offset[core] += value - _count(t, core, counter)
    else:
        t.core_instret_offset[core] += value - _count(t, core, counter) - 1


@kernel
def _status(t: TileRecord, core: Int, csr: Int) -> Int:
    which = QUEUED if csr == QSTATUS else BUSY
    if np.int64(t.core_cfg0[core]) & FREEZES_STATUS:
        return np.int64(t.core_status[core, which])
    return tensix_status(t, core, which)


@kernel
def _read_vector(t: TileRecord, csr: Int) -> Int:
    """A CSR of core T2's vector extension; vstart is always 0."""
    if csr == VXSAT:
        return np.int64(t.vector_core.vxsat)
    if csr == VXRM:
        return np.int64(t.vector_core.vxrm)
    if csr == VL:
        return np.int64(t.vector_core.vl)
    if csr == VTYPE:
        return np.int64(t.vector_core.vtype)
    return np.int64(t.vector_core.vlenb) if csr == VLENB else np.int64(0)


@kernel
def _write_vector(t: TileRecord, csr: Int, value: Int) -> Int:
    """Status of a write; vlenb keeps the value, which nothing but a read depends on (T7)."""
    if csr == VSTART:
        return refuse(t, READ_ONLY, csr)
    if csr == VXSAT:
        t.vector_core.vxsat = np.uint32(value & 1)
    elif csr == VXRM:
        t.vector_core.vxrm = np.uint32(value & 3)
    elif csr == VL:
        t.vector_core.vl = np.uint32(value)
    elif csr == VTYPE:
        t.vector_core.vtype = np.uint32(value)
    else:
        t.vector_core.vlenb = np.uint32(value)
    return DONE


@kernel
def read_csr(t: TileRecord, core: Int, csr: Int) -> Any:
    """(status, value) of a read."""
    value: Int = np.int64(0)
    counter = _counter(csr)
    if counter != 0:
        value = _count(t, core, counter)
        value = (value >> 32) & WORD if csr & HIGH else value & WORD
    elif csr == CFG0:
        value = np.int64(t.core_cfg0[core])
    elif csr in (PMACFG0, PMACFG1):
        value = np.int64(t.core_pmacfg[core, csr - PMACFG0])
    elif csr >= SCRATCH_FIRST and csr <= SCRATCH_LAST:
        value = np.int64(t.core_scratch[core, csr - SCRATCH_FIRST])
    elif csr in (QSTATUS, BSTATUS):
        value = _status(t, core, csr)
    elif csr >= STREAM_FIRST and csr <= STREAM_LAST:
        if is_t_core(core):
            return refuse(t, STREAM, csr), value
        value = np.int64(t.core_stream_scratch[core, csr - STREAM_FIRST])
    elif csr == INTERRUPTED_PC:
        value = np.int64(t.core_interrupted_pc[core])
    elif csr == MSTATUS:
        value = np.int64(MSTATUS_VALUE)
    elif csr == MISA:
        value = np.int64(MISA_VALUE)
    elif csr == FCSR:
        value = np.int64(t.core_fcsr[core])
        if value & FLAGS_UNKNOWN and not open_choice(t, FLAGS):
            return refuse(t, FLAGS), value
        value &= FCSR_BITS
    elif core == T2 and _is_vector(csr):
        value = _read_vector(t, csr)
    elif csr != MHARTID:
        return _refuse_other(t, csr), value
    return DONE, value


@kernel
def _write_cfg0(t: TileRecord, core: Int, value: Int) -> None:
    if value & FREEZES_STATUS and not np.int64(t.core_cfg0[core]) & FREEZES_STATUS:
        for which in (QUEUED, BUSY):
            t.core_status[core, which] = np.uint32(tensix_status(t, core, which))
    t.core_cfg0[core] = np.uint32(value)


@kernel
def write_csr(t: TileRecord, core: Int, csr: Int, value: Int) -> Any:
    """Status of a write of 32 bits."""
    if t.core_in_handler[core] != 0:
        return refuse(t, HANDLER_WRITES, csr)
    counter = _counter(csr)
    if counter != 0:
        count = _count(t, core, counter)
        if csr & HIGH:
            _set_count(t, core, counter, (value << 32) | (count & WORD))
        else:
            _set_count(t, core, counter, ((count >> 32) << 32) | value)
    elif csr == CFG0:
        _write_cfg0(t, core, value)
    elif csr in (PMACFG0, PMACFG1):
        t.core_pmacfg[core, csr - PMACFG0] = np.uint32(value)
    elif csr >= SCRATCH_FIRST and csr <= SCRATCH_LAST:
        t.core_scratch[core, csr - SCRATCH_FIRST] = np.uint32(value)
    elif csr in (QSTATUS, BSTATUS):
        t.core_status[core, csr - QSTATUS] = np.uint32(value)  # seen only while cfg0 freezes them
    elif csr >= STREAM_FIRST and csr <= STREAM_LAST:
        if is_t_core(core):
            return refuse(t, STREAM, csr)
        t.core_stream_scratch[core, csr - STREAM_FIRST] = np.uint32(value)
    elif csr == FCSR:
        t.core_fcsr[core] = np.uint32(value & FCSR_BITS)
    elif csr == INTERRUPTED_PC:
        return refuse(t, COPY_OF_PC, csr)
    elif csr in (MSTATUS, MISA, MHARTID):
        return refuse(t, READ_ONLY, csr)
    elif core == T2 and _is_vector(csr):
        return _write_vector(t, csr, value)
    else:
        return _refuse_other(t, csr)
    return DONE


@kernel
def execute_csr(t: TileRecord, core: Int, n: Int, csr: Int, field: Int, rd: Int, destination: Int) -> Any:
    """Execute csrrw, csrrs, csrrc or their immediate forms.

    Args:
        csr: its number.
        field: rs1's number, which is the operand itself in an immediate form.
        rd: the destination's number; csrrw to x0 does not read.
        destination: its place among the registers.
    """
    operand = field if n in (CSRRWI, CSRRSI, CSRRCI) else np.int64(t.core_x[core, field])
    writes_all = n in (CSRRW, CSRRWI)
    old = np.int64(0)
    if not writes_all or rd != 0:
        status, old = read_csr(t, core, csr)
        if status != DONE:
            return status
    if writes_all or field != 0:
        value = operand
        if n in (CSRRS, CSRRSI):
            value = old | operand
        elif not writes_all:
            value = old & ~operand
        status = write_csr(t, core, csr, value & WORD)
        if status != DONE:
            return status
    t.core_x[core, destination] = np.uint32(old)
    return DONE
