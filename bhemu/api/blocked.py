"""What waits for what, among cores and threads of the coprocessor: the text of a deadlock and of a cycle limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from bhemu.api.waits import explain_thread, pushed_from
from bhemu.isa.assembler import disassemble
from bhemu.isa.memory_map import region
from bhemu.isa.names import Semaphore
from bhemu.isa.tile_registers import address_of, registers_at, tile_register
from bhemu.machine.agents import CORE_NAMES, CORES, T0, B
from bhemu.machine.core_state import (
    ASLEEP,
    BLOCKED,
    HALT_DEBUGGER,
    HALT_EBREAK,
    HALT_ECALL,
    HALTED,
    IN_RESET,
    LOAD,
    PUSH,
    RUNNING,
)
from bhemu.machine.ethernet_state import core_names
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.tensix.coprocessor import THREAD_NAMES

Describe = Callable[[int, int], str]
"""Names a core's pc: `Cores.describe`."""
NameWord = Callable[[int], str]
"""Names a word of memory: its symbol, or nothing."""

_WORDS: Final = 8
"""At most this many polled words are named."""
A7: Final = 17
"""The register with the number of an ecall."""

_TTSYNC: Final = (address_of("sync", "COPROCESSOR_DONE"), address_of("sync", "MOP_DONE"))
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
_MAILBOXES: Final = region("mailbox")
_PUSH_FIRST, _PUSH_END = region("push0").base, region("push2").end
_PUSH_BYTES: Final = region("push0").size
_PCBUFS: Final = region("pcbuf")
_TRACKED: Final = (region("gpr"), region("config"), region("tdma"))
_LOCAL_RAM: Final = (region("local_ram"), region("local_ram_upper"))
_OVERLAY: Final = region("overlay")
_NIUS: Final = (region("niu0"), region("niu1"))

Words = dict[int, int]
"""Values of polled words by their addresses."""
_NOTHING: Final[Mapping[int, Words]] = MappingProxyType({})


def is_idle_for_ever(record: Any, core: int) -> bool:
    """The core spins in a loop that reads nothing, such as `j .`: it counts as done."""
    return bool(record.core_state[core] == ASLEEP and record.watch_count[core] == 0)


def can_move(record: Any) -> bool:
    """Some core or the coprocessor can still proceed."""
    return RUNNING in record.core_state or record.tensix_state == RUNNING


def waiting_threads(record: Any) -> list[int]:
    """Threads of the coprocessor that hold an instruction which cannot be executed."""
    f = record.frontend
    return [t for t in range(THREADS) if f.gate_full[t] or f.fifo_count[t] or f.side_count[t]]


def is_stuck(record: Any, core: int) -> bool:
    """The core waits for another agent, and none can proceed."""
    state = record.core_state[core]
    if state == HALTED:
        return bool(record.core_halt_reason[core] == HALT_ECALL)
    return state == BLOCKED or (state == ASLEEP and not is_idle_for_ever(record, core))


def pc_of(record: Any, core: int) -> int:
    """The pc of the core, read without waking it.

    Of a polling loop the first instruction; of a core that ebreak or ecall has halted that instruction.
    """
    if record.core_state[core] == ASLEEP:
        return int(record.poll_pc[core, 0])
    pc = int(record.core_pc[core])
    if record.core_state[core] == HALTED and record.core_halt_reason[core] in (HALT_EBREAK, HALT_ECALL):
        return pc - 4
    return pc


def explain_core(
    record: Any, core: int, describe: Describe, name_word: NameWord, polled: Mapping[int, Words] = _NOTHING
) -> str:
    """`B at 0x00010 main (kernel.c:3): polls 0x20000 `flag`, which holds 0x0`."""
    state = int(record.core_state[core])
    if state == IN_RESET:
        return f"{core_names(record)[core]}: in reset"
    does = _polls(polled[core], name_word) if core in polled else _doing(record, core, name_word)
    return f"{core_names(record)[core]} at {describe(core, pc_of(record, core))}: {does}"


def _doing(record: Any, core: int, name_word: NameWord) -> str:
    state = int(record.core_state[core])
    if state == ASLEEP:
        return _polling(record, core, name_word)
    if state == BLOCKED:
        return _blocked(record, core)
    if state == HALTED:
        reason = int(record.core_halt_reason[core])
        if reason == HALT_ECALL:
            return f"halted by ecall number {int(record.core_x[core, A7])}"
        reasons = {HALT_EBREAK: "halted by ebreak", HALT_DEBUGGER: "halted by the debugger"}
        return reasons.get(reason, "halted: its instruction was refused")
    return "running"


def _polling(record: Any, core: int, name_word: NameWord) -> str:
    count = int(record.watch_count[core])
    words = {int(record.watch_address[core, i]): int(record.watch_value[core, i]) for i in range(count)}
    return _polls(words, name_word)


def _polls(words: Words, name_word: NameWord) -> str:
    if not words:
        return "idle in an endless loop"
    told = [f"{_word(address, name_word)}, which holds {value:#x}" for address, value in words.items()]
    more = f" and {len(told) - _WORDS} more words" if len(told) > _WORDS else ""
    return "polls " + ", ".join(told[:_WORDS]) + more


def _word(address: int, name_word: NameWord) -> str:
    if address in _SEMAPHORES:
        number = (address - _SEMAPHORES.start) // 4
        return f"semaphore {number} ({Semaphore(number).name})"
    if address in _OVERLAY:
        stream, place = divmod(address - _OVERLAY.base, _OVERLAY.step)
        return f"register {place // 4} of stream {stream}"
    for number, niu in enumerate(_NIUS):
        if address in niu:
            names = [register.name for register, _ in registers_at(address)]
            return f"{address:#x} {' '.join(names)} of NoC {number}"
    name = name_word(address)
    is_local = any(address in ram for ram in _LOCAL_RAM)
    if address >= L1_SIZE and not is_local:
        name = " ".join(register.name for register, _ in registers_at(address))
    return f"{address:#x} {name}".rstrip() + " in its local RAM" * is_local


def _blocked(record: Any, core: int) -> str:
    kind, address = int(record.access_kind[core]), int(record.access_address[core])
    if kind == PUSH:
        thread = 0 if core == B else core - T0
        return f"waits to push {disassemble(int(record.access_value[core]))}: {_queue_of(thread)} is full"
    loads = kind == LOAD
    if _PUSH_FIRST <= address < _PUSH_END:
        thread = (address - _PUSH_FIRST) // _PUSH_BYTES if core == B else core - T0
        return f"waits to push {disassemble(int(record.access_value[core]))}: {_queue_of(thread)} is full"
    if address in _MAILBOXES:
        other = CORE_NAMES[(address - _MAILBOXES.base) // _MAILBOXES.step]
        if loads:
            return f"waits for a word in the mailbox from {other} (load of {address:#x})"
        return f"waits for room in its mailbox to {other} (store to {address:#x})"
    if core != B and address in _TTSYNC:
        what = "an instruction in flight" if address == _TTSYNC[0] else "a MOP in flight"
        return f"waits until thread {core - T0} no longer has {what} (load of {address:#x})"
    if address in _PCBUFS:
        thread = (address - _PCBUFS.base) // _PCBUFS.step if core == B else core - T0
        if core != B:
            return f"waits for a word from B in PCBuf {thread} (load of {address:#x})"
        what = f"until T{thread} has taken all words and waits for more" if loads else "for room"
        return f"waits {what} in PCBuf {thread} ({'load of' if loads else 'store to'} {address:#x})"
    if core != B and any(address in tracked for tracked in _TRACKED):
        return f"auto TTSync holds its access to {address:#x} until thread {core - T0} has passed the wait gate"
    return f"waits in its {'load of' if loads else 'store to'} {address:#x}"


def _queue_of(thread: int) -> str:
    return f"the FIFO of thread {thread} ({THREAD_NAMES[thread]})"


def explain_all(
    record: Any,
    describe: Describe,
    name_word: NameWord,
    pusher: Callable[[int, int], int],
    polled: Mapping[int, Words] = _NOTHING,
) -> str:
    """A line for each core out of reset, and for each thread of the coprocessor that holds an instruction.

    Args:
        record: the tile.
        describe: names a core's pc.
        name_word: names a word of memory.
        pusher: which core pushed a thread's word from a pc.
        polled: words that cores which run poll, by core; see `bhemu.api.polling`.
    """
    lines = [
        f"  core {explain_core(record, core, describe, name_word, polled)}"
        for core in range(CORES)
        if record.core_state[core] != IN_RESET
    ]
    for thread in waiting_threads(record):
        held = explain_thread(record, thread, pushed_from(thread, describe, pusher)) or "instructions wait in its queue"
        lines.append(f"  thread {thread} ({THREAD_NAMES[thread]}): {held}")
    return "\n".join(lines)
