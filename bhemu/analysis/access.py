"""What an executed word reads and writes, resolved from the table of roles (`isa/data/behaviour.toml`).

`access(word)` holds what the word alone decides; `analysis/dst.py` adds the rows of Dst, which depend on counters. Only
what the table leaves to code by name is here: `BY`, one function for each name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bhemu.isa.instructions import decode
from bhemu.isa.registers import FIRST_SHARED_WORD, config, thread
from bhemu.isa.roles import ROLES, Role
from bhemu.machine.config_access import UNITS_OF_WORD, UNPACK0_BIT, UNPACK1_BIT
from bhemu.recording import log as column

Operands = Mapping[str, int]
Places = frozenset[int]

STATE_ID: Final = thread("CFG_STATE_ID_StateID")[0]

_SOURCES: Final = ("srca", "srcb")
_WRITABLE_LREGS: Final = 8
"""What is written to LReg 8 and up is dropped; only SFPCONFIG changes constants (V1)."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a word decides by itself. Roles that the table marks `maybe` are left out.

    Attributes:
        mnemonic, unit: of the instruction table.
        operands: decoded fields.
        roles_read, roles_written: the roles that hold for the word.
        gpr_reads, gpr_writes: own GPRs; the writes are done when the unit is.
        gpr_later: GPRs whose value arrives after the instruction (LOADIND and others, I.11).
        gpr_config: GPRs that RDCFG writes, at the end of the configuration unit's pipeline.
        config_reads, config_writes: Config words; reads that only state decides: `consumed_words`.
        lreg_reads: LRegs read in the normal way, where the hardware stalls for a two-cycle result.
        lreg_hidden: LRegs read in a way that the hardware does not see (Y14).
        lreg_writes: LRegs written.
        needs: source files whose bank the instruction waits for (F30, U1).
        touches: source files of the matrix unit's banks that are read or written without that wait (F21, F23, F27).
        hands_over: source files given to the other side.
        memory_request: C0 of STALLWAIT counts it until its data has arrived.
    """

    mnemonic: str
    unit: str
    operands: Operands
    roles_read: tuple[Role, ...]
    roles_written: tuple[Role, ...]
    gpr_reads: Places
    gpr_writes: Places
    gpr_later: Places
    gpr_config: Places
    config_reads: Places
    config_writes: Places
    lreg_reads: Places
    lreg_hidden: Places
    lreg_writes: Places
    needs: Places
    touches: Places
    hands_over: Places
    memory_request: bool

    @property
    def unit_name(self) -> str:
        """The unit as reports name it: `unpacker 0`, `unpacker 1`, `packer`, else as the instruction table does."""
        if self.unit == "unpack":
            return f"unpacker {unpacker_of(self.operands)}"
        return "packer" if self.unit == "pack" else self.unit


def _sources(roles: Iterable[Role]) -> Places:
    return frozenset(_SOURCES.index(role.file) for role in roles if role.file in _SOURCES)


def _places(roles: Iterable[Role], word: int, file: str) -> Places:
    """Places of a file that roles mean, as far as the word says."""
    found: set[int] = set()
    for role in roles:
        if role.file == file and not role.maybe:
            places = BY[role.by](word) if role.by in BY else role.places(word)
            found |= set(places or ())
    return frozenset(found)


@functools.cache
def access(word: int) -> Access:
    """What the word reads and writes, rows of Dst excepted."""
    decoded = decode(word)
    name, unit = decoded.mnemonic, decoded.instruction.unit
    roles = ROLES[name]
    reads, writes, waits, gives = (
        tuple(role for role in some if role.holds(word))
        for some in (roles.reads, roles.writes, roles.waits, roles.gives)
    )
    later = tuple(role for role in writes if role.until)
    sources = _sources((*reads, *writes)) if _uses_matrix_banks(name, word) else frozenset()
    return Access(
        mnemonic=name,
        unit=unit,
        operands=decoded.operands,
        roles_read=reads,
        roles_written=writes,
        gpr_reads=_places(reads, word, "gpr"),
        gpr_writes=_places((role for role in writes if not role.until), word, "gpr"),
        gpr_later=_places((role for role in later if role.until == "THCON"), word, "gpr"),
        gpr_config=_places((role for role in later if role.until == "CFGEXU"), word, "gpr"),
        config_reads=_places(reads, word, "config"),
        config_writes=_places(writes, word, "config"),
        lreg_reads=_places((role for role in reads if not role.unseen), word, "lreg"),
        lreg_hidden=_places((role for role in reads if role.unseen), word, "lreg"),
        lreg_writes=frozenset(r for r in _places(writes, word, "lreg") if r < _WRITABLE_LREGS),
        needs=_sources(waits),
        touches=sources - _sources(waits),
        hands_over=_sources(gives),
        memory_request=any(role.until == "THCON" for role in later),
    )


# --- what the table leaves to code ------------------------------------------------------------------------------------


def _uses_matrix_banks(mnemonic: str, word: int) -> bool:
    """Matrix instructions use the matrix unit's banks; ZEROSRC only with write_mode 1 and bank_mask 0 (F27)."""
    found = decode(word)
    if found.instruction.unit != "matrix":
        return False
    return mnemonic != "ZEROSRC" or (found.operands["write_mode"] == 1 and found.operands["bank_mask"] == 0)


def macro_register(word: int) -> Places:
    """LReg that SFPLOADMACRO loads: bit 0 of the address is bit 2 of its number (V.7)."""
    o = decode(word).operands
    return frozenset((o["lreg_ind"] & 3 | (o["dest_reg_addr"] & 1) << 2,))


_BASES: Final = ((76, 124), (92, 140))
"""First word of the base addresses and of the offsets, by unpacker; context c is c words further (U3)."""


def _words_of_unpacker(unpacker: int) -> Places:
    bit = UNPACK1_BIT if unpacker else UNPACK0_BIT
    words = {word for word in range(FIRST_SHARED_WORD) if UNITS_OF_WORD[word] & bit}
    for first in _BASES:
        words -= set(range(first[unpacker], first[unpacker] + 8))
    return frozenset(words | {0, 1})


_UNPACKER_WORDS: Final = (_words_of_unpacker(0), _words_of_unpacker(1))
PACKER_WORDS: Final = frozenset(
    {*range(3), *range(12, 40), *range(68, 72), *range(96, 104), *range(116, 120), *range(144, 152)}
    | {*range(180, 184), config("DEST_ACCESS_CFG_remap_addrs")[0]}
)
"""Config words that a PACR reads (rules I.9); some belong to another context of the packer."""


def unpacker_of(operands: Operands) -> int:
    """Which unpacker an UNPACR or UNPACR_NOP is for; 0 for other instructions."""
    return operands.get("Unpack_block_selection", operands.get("Unpacker_Select", 0))


def unpacker_words(word: int) -> Places:
    """Config words that an unpacker looks at for every context."""
    return _UNPACKER_WORDS[unpacker_of(decode(word).operands)]


def packer_words(word: int) -> Places:
    """Config words that the packer looks at."""
    return PACKER_WORDS


BY: Final[Mapping[str, Callable[[int], Places]]] = {
    function.__name__: function for function in (macro_register, unpacker_words, packer_words)
}
"""Functions that roles name, by name; those of rows of Dst are in `analysis/dst.py`."""


def consumed_words(found: Access, row: Any) -> Places:
    """Config words that an instruction outside of the configuration unit looks at.

    Args:
        found: of the word.
        row: its row of the log, for the context of an UNPACR.
    """
    if found.unit == "config":
        return frozenset()
    if found.mnemonic == "UNPACR":
        unpacker = unpacker_of(found.operands)
        context = int(row[column.UNPACK_DEST]) >> 32
        own = {first[unpacker] + (context & 3) for first in _BASES}
        if context > 3:
            own.add(_BASES[0][unpacker] + context)
        return found.config_reads | own
    return found.config_reads
