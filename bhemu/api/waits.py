"""What waits for what: the text of a deadlock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bhemu.isa.assembler import disassemble
from bhemu.isa.instructions import BY_OPCODE, decode
from bhemu.isa.names import Semaphore
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.origin import pc_of_line
from bhemu.tensix.coprocessor import THREAD_NAMES, wait_left
from bhemu.tensix.frontend import gate

_OWNERS = ("the unpackers", "the matrix unit")


def _bank(record: Any, file: int, unit: str) -> str:
    bank = int(record[unit]["bank"][file])
    return f"Src{'AB'[file]} bank {bank} is owned by {_OWNERS[int(record['src_owner'][file, bank])]}"


def _latched(record: Any, thread: int, place: Callable[[int], str]) -> str:
    word = int(record["frontend"]["wait_word"][thread])
    decoded = decode(word)
    left = wait_left(record, thread)
    if decoded.mnemonic == "STALLWAIT":
        reasons = [
            _bank(record, file, unit)
            for bit, file, unit in (
                (gate.C5_SRCA_CLEARED, 0, "unpack"),
                (gate.C6_SRCB_CLEARED, 1, "unpack"),
                (gate.C7_SRCA_VALID, 0, "matrix"),
                (gate.C8_SRCB_VALID, 1, "matrix"),
            )
            if left & bit
        ]
        if left & gate.C11_SFPU_IDLE:
            reasons.append("the vector unit has instructions that SFPLOADMACRO has scheduled")
    elif decoded.mnemonic == "SEMWAIT":
        sync = record["sync"]
        reasons = [
            f"semaphore {i} ({Semaphore(i).name}) is {int(sync['semaphore'][i])} of {int(sync['semaphore_max'][i])}"
            for i in range(8)
            if left >> i & 1
        ]
    else:
        reasons = ["its stream has not reached the target"]
    return f"{disassemble(word)}{place(int(record['frontend']['wait_line'][thread]))}: {'; '.join(reasons)}"


def _at(line: int) -> str:
    return f" (line {line})" if line else ""


def pushed_from(
    thread: int, describe: Callable[[int, int], str], pusher: Callable[[int, int], int]
) -> Callable[[int], str]:
    """Text for the line of a thread's word, with a blank in front: the pc from which a core has pushed it.

    Args:
        thread: of the coprocessor.
        describe: names a core's pc.
        pusher: which core has pushed a thread's word from a pc.
    """

    def text(line: int) -> str:
        pc = pc_of_line(line)
        if pc is None:
            return _at(line)
        core = pusher(thread, pc)
        return f" (pushed by {CORE_NAMES[core]} at {describe(core, pc)})"

    return text


def _own_condition(record: Any, word: int) -> str:
    row = BY_OPCODE[word >> 24]
    if row is None:
        return "it is not an instruction"
    if row.unit == "unpack":
        return _bank(
            record,
            decode(word).operands.get("Unpack_block_selection", decode(word).operands.get("Unpacker_Select", 0)),
            "unpack",
        )
    if row.unit == "matrix":
        return "; ".join(_bank(record, file, "matrix") for file in (0, 1))
    if row.mnemonic == "ATGETM":
        owner = int(record["sync"]["mutex_owner"][decode(word).operands["mutex_index"]])
        return f"the mutex is held by thread {owner - 1}"
    return "its unit does not accept it"


def explain_thread(record: Any, thread: int, place: Callable[[int], str] = _at) -> str | None:
    """What holds the word at the thread's gate, or None when the thread has nothing to execute.

    Args:
        record: the tile.
        thread: 0 unpack, 1 math, 2 pack.
        place: text for the line of a word, with a blank in front: by default `_at`, for lines of programs.
    """
    if not record["frontend"]["gate_full"][thread]:
        return None
    word = int(record["frontend"]["gate_word"][thread])
    head = f"{disassemble(word)}{place(int(record['frontend']['gate_line'][thread]))}"
    if record["frontend"]["wait_word"][thread]:
        return f"{head} is held by {_latched(record, thread, place)}"
    return f"{head} waits: {_own_condition(record, word)}"


def explain(record: Any, cores: list[tuple[int, str, int]]) -> str:
    """A line for each thread.

    Args:
        record: the tile.
        cores: (thread, what its function waits for or "" when it has ended, program line).
    """
    lines = []
    for thread, what, line in cores:
        parts = [explain_thread(record, thread)]
        parts.append(f"its function{_at(line)} waits for {what}" if what else "its function has ended")
        lines.append(f"  {THREAD_NAMES[thread]}: " + "; ".join(part for part in parts if part))
    return "\n".join(lines)
