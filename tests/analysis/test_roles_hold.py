"""Handlers keep to the table of roles: what an instruction's roles leave out neither changes nor influences it.

Each instruction runs with random operands on a tile in a random state, and again with everything random that its roles
do not name. Both runs must leave what the roles let it write, and no more, and the same results.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu.analysis.access import BY, access
from bhemu.analysis.dst import BLOCK_ROWS, dst_blocks, packer_rows
from bhemu.errors import BhemuError
from bhemu.isa import INSTRUCTIONS, decode, field
from bhemu.isa.registers import FIRST_SHARED_WORD, config
from bhemu.isa.roles import FILES, ROLES, Role
from bhemu.machine.packer_state import PACKER
from bhemu.machine.state import TILE, state_field
from bhemu.machine.vector_state import MACRO
from bhemu.recording import Recorder
from bhemu.recording import log as column
from bhemu.recording.log import COLUMNS

pytestmark = pytest.mark.plain

RUNS = 8
"""Executions of each instruction."""
TRIES = 400
"""Words that are tried until so many were executed: operands are random, and many combinations are refused."""

NEVER_EXECUTED = {
    **dict.fromkeys(("MOP", "REPLAY"), "other words follow from it"),
    "RESOURCEDECL": "consumed by the tracking of accesses",
    "RSTDMA": "no source says what it does",
    "TBUFCMD": "reserved",
    **dict.fromkeys(
        ("TRNSPSRCA", "RAREB", "SETASHRMH", "SETASHRMH0", "SETASHRMH1", "SETASHRMV", "SETPKEDGOF", "SETIBRWC"),
        "not defined",
    ),
}

Rng = np.random.Generator

MACRO_SETTINGS = ("template", "sequence", "misc")

# Fields of the record by register file. What is listed nowhere must not change at all.
FIELDS: dict[str, tuple[str, ...]] = {
    "gpr": ("gpr",),
    "config": ("config",),
    "thread_config": ("thread_config",),
    "srca": ("srca",),
    "srcb": ("srcb",),
    "banks": ("src_owner", "src_format", "unpack.bank", "matrix.bank"),
    "srca_row": ("matrix.srca_row",),
    "src_row": ("unpack.src_row",),
    "context_counter": ("unpack.context_counter",),
    "dst": ("dst", "dst_valid"),
    "dst_valid": ("dst_valid",),
    "rwc": ("rwc",),
    "adc": ("adc",),
    "lreg": ("lregs",),
    "lane_flags": ("vector.lane_flags", "vector.use_flags"),
    "flag_stack": ("vector.flag_stack_held", "vector.flag_stack", "vector.use_stack"),
    "vector_config": (
        *("vector.lane_config", "vector.settings_mixed", "macro.settings"),
        *(f"macro.{name}" for name in MACRO_SETTINGS),
    ),
    "macro_queue": tuple(f"macro.{name}" for name in MACRO.names or () if name not in MACRO_SETTINGS),
    "dst_stack": ("vector.dst_stack_pointer",),
    "prng": ("prng",),
    "l1": ("l1",),
    "semaphore": ("sync.semaphore", "sync.semaphore_max"),
    "mutex": ("sync.mutex_owner", "sync.mutex_last"),
    "latch": ("frontend.wait_word", "frontend.wait_line"),
    "packer": ("pack",),
    "stream": ("stream_messages", "stream_phase"),
    "mmio": (
        *(name for name in TILE.names or () if name.startswith("stream_")),
        *("tdma_parameters", "tdma_base", "tdma_clock_gates", "tdma_hysteresis", "pack", "adc"),
    ),
    "unpack_accumulator": ("unpack.accumulator",),
    "expander": ("frontend.mop_zmask_hi",),
    "busy": (),
}
OF_A_THREAD = frozenset({"gpr", "thread_config", "src_row", "context_counter", "rwc", "adc", "dst_stack", "latch"})
"""Files whose fields have the thread as first index."""

DECODED_BY_PACKER = frozenset(PACKER.names[: PACKER.names.index("open")]) | {"edge_mask", "row"}
"""Decoded configuration and scratch in the packer's section."""

BOOKKEEPING = (
    *("clock", "cycle_", "issued", "fault_", "open_used", "handlers", "device_", "needs_place", "now_", "config_dirty"),
    *("unpack.decoded", "unpack.walk", "unpack.bits", "unpack.exponents", "unpack.zeros", "unpack.cells"),
    *("matrix.decoded", "matrix.scratch", "prepared", "frontend.gate_", "frontend.fifo_", "frontend.ready_"),
)
"""Beginnings of fields that hold no state of the machine."""
SECTIONS = ("unpack", "matrix", "vector", "macro", "sync", "frontend")
"""Sections of the record whose fields are compared one by one."""
VIEWS = frozenset({"l1_u16", "l1_u32", "dst_u32", "dst_valid_u16", "dst_valid_u32", "core_ram_u16", "core_ram_u32"})


# --- a tile in a random state -----------------------------------------------------------------------------------------


def _small(rng: Rng, shape: Any, top: int) -> Any:
    return rng.integers(0, top, shape)


RANDOM: dict[str, Callable[[Rng, Any], Any]] = {
    "gpr": lambda rng, shape: np.where(rng.random(shape) < 0.7, _small(rng, shape, 0x800), _small(rng, shape, 1 << 32)),
    "config": lambda rng, shape: _small(rng, shape, 1 << 32),
    "thread_config": lambda rng, shape: _small(rng, shape, 1 << 16),
    "srca": lambda rng, shape: _small(rng, shape, 1 << 19),
    "srcb": lambda rng, shape: _small(rng, shape, 1 << 19),
    "src_owner": lambda rng, shape: _small(rng, shape, 2),
    "src_format": lambda rng, shape: rng.choice([5, 6, 7], shape),
    "unpack.bank": lambda rng, shape: _small(rng, shape, 2),
    "matrix.bank": lambda rng, shape: _small(rng, shape, 2),
    "matrix.srca_row": lambda rng, shape: 1 + 16 * _small(rng, shape, 4),
    "unpack.src_row": lambda rng, shape: 4 * _small(rng, shape, 4),
    "unpack.context_counter": lambda rng, shape: _small(rng, shape, 2),
    "dst": lambda rng, shape: _small(rng, shape, 1 << 16),
    "dst_valid": lambda rng, shape: _small(rng, shape, 2),
    "adc": lambda rng, shape: _small(rng, shape, 4),
    "lregs": lambda rng, shape: _small(rng, shape, 1 << 32),
    "vector.lane_flags": lambda rng, shape: _small(rng, shape, 1 << 32),
    "vector.use_flags": lambda rng, shape: _small(rng, shape, 1 << 32),
    "vector.flag_stack_held": lambda rng, shape: np.where(np.arange(8) < 1 + rng.integers(4), 0xFFFFFFFF, 0),
    "vector.flag_stack": lambda rng, shape: _small(rng, shape, 1 << 32),
    "vector.use_stack": lambda rng, shape: _small(rng, shape, 1 << 32),
    "macro.template": lambda rng, shape: _small(rng, shape, 1 << 24) | 0x7C << 24,
    "macro.sequence": lambda rng, shape: _small(rng, shape, 1) | 0x04,
    "vector.dst_stack_pointer": lambda rng, shape: 8 * _small(rng, shape, 4),
    "prng": lambda rng, shape: _small(rng, shape, 1 << 32),
    "sync.semaphore": lambda rng, shape: 1 + _small(rng, shape, 5),
    "sync.semaphore_max": lambda rng, shape: 7 + _small(rng, shape, 8),
    "stream_messages": lambda rng, shape: 3000 + _small(rng, shape, 100),
    "stream_phase": lambda rng, shape: _small(rng, shape, 1 << 10),
    "unpack.accumulator": lambda rng, shape: _small(rng, shape, 100),
    "frontend.mop_zmask_hi": lambda rng, shape: _small(rng, shape, 1 << 16),
    "l1": lambda rng, shape: _small(rng, shape, 256),
    "tdma_parameters": lambda rng, shape: _small(rng, shape, 1 << 16),
}
"""Legal random values by field."""
START_ONLY = frozenset(
    {"config", "thread_config", "src_owner", "unpack.bank", "matrix.bank", "src_format", "l1", "adc"}
)
"""Fields whose start state is a configuration that works, not random."""


def _set(record: Any, name: str, value: int, thread: int | None = None) -> None:
    place = field(name)
    words = record.config[0] if place.space == "config" else record.thread_config[thread]
    words[place.word] = int(words[place.word]) & ~place.mask | value << place.lsb


def _configure(record: Any) -> None:
    """Unpackers and packer that move BF16 rows, and a mover's transfer."""
    for which in range(2):
        section = f"THCON_SEC{which}_"
        for name, value in (
            ("REG0_TileDescriptor_uncompressed", 1),
            ("REG0_TileDescriptor_in_data_format", 5),
            ("REG0_TileDescriptor_x_dim", 256),
            ("REG0_TileDescriptor_y_dim", 1),
            ("REG0_TileDescriptor_z_dim", 4),
            ("REG2_Out_data_format", 5),
            *((f"REG2_Disable_zero_compress_cntx{context}", 1) for context in range(8)),
            *((f"REG5_Tile_x_dim_cntx{context}", 256) for context in range(4)),
            *((f"REG5_Dest_cntx{context}_address", 64) for context in range(4)),
            *((f"REG3_Base_cntx{context}_address", 0x40) for context in range(1, 4)),
            ("REG3_Base_address", 0x40),
        ):
            _set(record, section + name, value)
    for thread in range(3):
        _set(record, "SRCA_SET_SetOvrdWithAddr", 1, thread)
        for modifier in range(8):
            _set(record, f"ADDR_MOD_AB_SEC{modifier}_SrcAIncr", 16 * (modifier & 1), thread)
            _set(record, f"ADDR_MOD_AB_SEC{modifier}_SrcBIncr", 8 * (modifier & 1), thread)
            _set(record, f"ADDR_MOD_DST_SEC{modifier}_DestIncr", 8 * modifier, thread)
        _set(record, "NOC_OVERLAY_MSG_CLEAR_MsgNum_0", 3, thread)
    for name, value in (
        ("ALU_FORMAT_SPEC_REG0_SrcA", 5),
        ("ALU_FORMAT_SPEC_REG1_SrcB", 5),
        ("ALU_FORMAT_SPEC_REG2_Dstacc", 5),
        ("PCK0_ADDR_CTRL_XY_REG_0_Ystride", 32),
        ("PACK_COUNTERS_SEC0_pack_reads_per_xy_plane", 16),
        ("THCON_SEC0_REG1_In_data_format", 5),
        ("THCON_SEC0_REG1_Out_data_format", 5),
        ("THCON_SEC0_REG1_Disable_zero_compress", 1),
        ("THCON_SEC0_REG1_L1_Dest_addr", 0xFFF),
        *((f"PCK_EDGE_OFFSET_SEC{i}_mask", 0xFFFF) for i in range(4)),
        ("THCON_SEC0_REG6_Source_address", 0x100),
        ("THCON_SEC0_REG6_Destination_address", 0x200),
        ("THCON_SEC0_REG6_Buffer_size", 4),
        ("THCON_SEC0_REG6_Transfer_direction", 3),
    ):
        _set(record, name, value)


def _start(tile: bhemu.Tile, rng: Rng, mnemonic: str) -> None:
    record = tile.record
    tile.reset()
    _configure(record)
    for name, values in RANDOM.items():
        if name not in START_ONLY:
            array = state_field(record, name)
            _put(record, name, np.asarray(values(rng, np.shape(array))).astype(np.asarray(array).dtype))
    record.l1[:0x8000] = _small(rng, 0x8000, 256) if rng.random() < 0.6 else 0
    record.adc[:] = 0
    record.adc[:, :, 4] = 15  # channel-1 X: rows of sixteen datums
    record.rwc[:, 0] = 16 * _small(rng, 3, 4)
    record.src_format[:] = 5
    record.matrix.bank[:] = _small(rng, 2, 2)
    record.unpack.bank[:] = _small(rng, 2, 2)
    for file in range(2):
        record.src_owner[file, record.matrix.bank[file]] = 1
        if record.matrix.bank[file] == record.unpack.bank[file] and not _is_for_matrix(mnemonic):
            record.src_owner[file] = 0
    record.config_dirty[:] = 0xFFFFFFFF


def _is_for_matrix(mnemonic: str) -> bool:
    return INSTRUCTIONS[mnemonic].unit == "matrix"


_CHOSEN: dict[tuple[str, str], tuple[int, ...]] = {
    # The TDMA's registers, the overlay's, and addresses without any.
    ("STOREREG", "RegAddr"): (0x4400, 0x4401, 0x4404, 0x10002, 0x10000 + 0x400 * 3 + 0x4C),
    ("LOADREG", "RegAddr"): (0x4400, 0x4401, 0x4404, 0x4405, 0x10000 + 0x400 * 3 + 0xC),
    ("ATGETM", "mutex_index"): (0, 2, 3, 4),
    ("ATRELM", "mutex_index"): (0, 2, 3, 4),
    ("MOVB2D", "src"): (0, 8, 16),
    ("SEMWAIT", "wait_sem_cond"): (1,),
}


def _word(rng: Rng, mnemonic: str) -> int:
    """An instruction word with random operands, of which many are zero."""
    row = INSTRUCTIONS[mnemonic]
    layout = row.forms[rng.integers(len(row.forms))] if row.forms else row
    word = row.base
    for operand in layout.fields:
        value = int(rng.integers(operand.max + 1)) if rng.random() < 0.6 else 0
        if rng.random() < 0.5:
            value &= ~7 if operand.width > 5 else 3
        if operand.width > 9 and rng.random() < 0.7:
            value &= 0x3F8
        if row.forms and operand.name in layout.selectors:  # type: ignore[union-attr]  # of a form
            value = layout.selectors[operand.name]  # type: ignore[union-attr]
        if chosen := _CHOSEN.get((mnemonic, operand.name)):
            value = int(rng.choice(chosen))
        word |= value << operand.lsb
    return word


# --- what the roles allow ---------------------------------------------------------------------------------------------


class Marks:
    """For each field of the record, which elements a list of roles means."""

    def __init__(self, before: dict[str, Any], thread: int, word: int) -> None:
        self._thread, self._word, self._before = thread, word, before
        self.of = {name: np.zeros(np.shape(before[name]), bool) for names in FIELDS.values() for name in names}

    def all_of(self, file: str) -> None:
        for name in FIELDS[file]:
            self.of[name][...] = True

    def add(self, roles: Iterable[Role], blocks: frozenset[int]) -> None:
        for role in roles:
            if role.holds(self._word):
                self._role(role, blocks)

    def _role(self, role: Role, blocks: frozenset[int]) -> None:
        file, names = role.file, FIELDS[role.file]
        places = access_places(role, self._word)
        if file in ("dst", "dst_valid"):
            for block in blocks:
                for name in names:
                    self.of[name][BLOCK_ROWS * block : BLOCK_ROWS * (block + 1)] = True
            return
        if file in ("srca", "srcb"):
            self._source(file)
        elif file == "config" and places is not None:
            bank = int(self._before["thread_config"][self._thread, 0]) & 1
            for word in places:
                self.of["config"][0 if word >= FIRST_SHARED_WORD else bank, word] = True
        elif file == "adc" and places is not None:
            threads = slice(None) if role.any_thread else self._thread
            for unit in places:
                if unit < 3:
                    self.of["adc"][threads, unit] = True
        elif file in OF_A_THREAD and not role.any_thread:
            for name in names:
                for place in places if places is not None else (slice(None),):
                    if self.of[name].ndim == 1:
                        self.of[name][self._thread] = True
                    else:
                        self.of[name][self._thread, place] = True
        elif places is not None:
            for name in names:
                for place in places:
                    if place < len(self.of[name]):
                        self.of[name][place] = True
        else:
            self.all_of(file)
        if file == "config":
            self.of["thread_config"][self._thread, 0] = True

    def _source(self, file: str) -> None:
        mnemonic = decode(self._word).mnemonic
        if mnemonic in ("ZEROSRC", "UNPACR_NOP"):  # one bank or both
            self.of[file][...] = True
            return
        which = "matrix.bank" if _is_for_matrix(mnemonic) else "unpack.bank"
        bank = int(self._before[which][0 if file == "srca" else 1])
        self.of[file][bank] = True


def access_places(role: Role, word: int) -> tuple[int, ...] | None:
    """Places of a role; those that code computes from the word, too."""
    if role.by in BY:
        found = BY[role.by](word)
        if role.by == "unpacker_words":  # and those of the context, which state decides
            found |= frozenset(range(76, 96)) | frozenset(range(124, 144))
        return tuple(found)
    return role.places(word)


def _marks(thread: int, word: int, row: Any, before: dict[str, Any]) -> tuple[Marks, Marks]:
    """What the word reads and what it writes."""
    roles = ROLES[decode(word).mnemonic]
    read, written = Marks(before, thread, word), Marks(before, thread, word)
    if row is NO_ROW:
        blocks_read = blocks_written = frozenset()
    else:
        blocks_read, blocks_written = dst_blocks(access(word), row)
    read.add((*roles.reads, *roles.waits), blocks_read)
    written.add(roles.writes, blocks_written)
    read.of["thread_config"] |= written.of["thread_config"] & (np.arange(68) == 0)
    sources = {"srca", "srcb"}
    if any(role.file in sources for role in (*roles.reads, *roles.writes, *roles.waits, *roles.gives)):
        read.all_of("banks")
    if any(role.holds(word) for role in roles.gives):
        written.all_of("banks")
        written.of["unpack.src_row"][thread] = True
    if any(role.file == "config" for role in roles.writes):
        read.of["thread_config"][thread, 0] = True
    return read, written


# --- running and comparing --------------------------------------------------------------------------------------------


def _machine_fields(record: Any) -> list[str]:
    names = []
    for name in record.dtype.names:
        inside = record.dtype[name].names if name in SECTIONS else None
        names += [f"{name}.{part}" for part in inside] if inside else [name]
    return [name for name in names if name not in VIEWS and not name.startswith(BOOKKEEPING)]


def _put(record: Any, name: str, value: Any) -> None:
    section, _, part = name.rpartition(".")
    (record[section] if section else record)[part] = value


def _copy(record: Any) -> dict[str, Any]:
    return {name: np.array(state_field(record, name)) for name in _machine_fields(record)}


def _differences(name: str, one: Any, other: Any) -> Any:
    if name != "pack":
        return np.asarray(one != other)
    return np.asarray(
        any(not np.array_equal(one[part], other[part]) for part in PACKER.names or () if part not in DECODED_BY_PACKER)
    )


def _execute(tile: bhemu.Tile, recorder: Recorder, thread: int, word: int) -> tuple[Any, str]:
    """The row of the log, or None and the reason when the word was refused or waits."""
    count = len(recorder.log())
    try:
        tile.execute(thread, word)
    except BhemuError as error:
        return None, str(error)
    rows = recorder.log().rows
    return (rows[count] if len(rows) > count else NO_ROW), ""


NO_ROW = np.zeros(COLUMNS, np.int64)
"""Of words that never reach the gate."""


def _scramble(tile: bhemu.Tile, rng: Rng, keep: Marks) -> None:
    """Give random values to all that is not marked."""
    record = tile.record
    for name, values in RANDOM.items():
        marks = keep.of[name]
        if marks.all():
            continue
        if name == "l1":
            record.l1[:0x8000] = _small(rng, 0x8000, 256)
            continue
        array = np.asarray(state_field(record, name))
        fresh = np.asarray(values(rng, array.shape)).astype(array.dtype)
        _put(record, name, np.where(marks, array, fresh))
    record.config_dirty[:] = 0xFFFFFFFF


@pytest.mark.parametrize("mnemonic", [name for name in INSTRUCTIONS if name not in NEVER_EXECUTED])
def test_what_the_roles_leave_out_neither_changes_nor_matters(mnemonic: str) -> None:
    rng = np.random.default_rng(zlib.crc32(mnemonic.encode()))
    tile, recorder = bhemu.Tile(allow_open=True), Recorder()
    recorder.attach(tile)
    executed = 0
    for _ in range(TRIES):
        if executed == RUNS:
            break
        word, thread = _word(rng, mnemonic), int(rng.integers(3))
        _start(tile, rng, mnemonic)
        start, before = tile.snapshot(), _copy(tile.record)
        row, _ = _execute(tile, recorder, thread, word)
        if row is None:
            continue
        executed += 1
        text = f"{bhemu.isa.disassemble(word)} on thread {thread}"
        after = _copy(tile.record)
        read, written = _marks(thread, word, row, before)
        for name, old in before.items():
            allowed = written.of.get(name, np.zeros((), bool))
            changed = _differences(name, old, after[name]) & ~allowed
            assert not changed.any(), f"{text} changes {name} at {np.argwhere(changed)[:4].tolist()}"
        keep = Marks(before, thread, word)
        for name in keep.of:
            keep.of[name] = read.of[name] | written.of[name]
        tile.restore(start)
        _scramble(tile, rng, keep)
        scrambled = _copy(tile.record)
        again, why = _execute(tile, recorder, thread, word)
        assert again is not None, f"{text} depends on what its roles leave out: {why}"
        for name, value in _copy(tile.record).items():
            kept = keep.of.get(name, np.zeros((), bool))
            expected = np.where(kept, after[name], scrambled[name]) if name != "pack" else after[name]
            wrong = _differences(name, value, expected)
            assert not wrong.any(), (
                f"{text}: what its roles leave out changes {name} at {np.argwhere(wrong)[:4].tolist()}"
            )
    assert executed, f"no random {mnemonic} was executed"


def test_every_register_file_of_the_roles_is_mapped_to_the_record() -> None:
    assert set(FIELDS) == set(FILES)


def test_instructions_that_are_never_executed_are_refused() -> None:
    tile = bhemu.Tile(allow_open=True)
    for mnemonic, why in NEVER_EXECUTED.items():
        if why in ("not defined", "reserved", "no source says what it does"):
            with pytest.raises(BhemuError):
                tile.execute(1, INSTRUCTIONS[mnemonic].base)


@pytest.mark.rule("P5")
def test_a_strided_pack_reads_rows_16_apart_and_none_between_or_behind() -> None:
    state = [0] * (column.L1_BEGIN - column.DST)
    state[column.PACK_DST - column.DST] = 200 << config("DEST_TARGET_REG_CFG_PACK_SEC0_Offset")[1]
    strided = {"DstAccessMode": 1, "ReadIntfSel": 0}
    assert packer_rows(strided, tuple(state)) == {(200 + 16 * k) // BLOCK_ROWS for k in range(4)}
    assert packer_rows({**strided, "ReadIntfSel": 3}, tuple(state)) == {200 // BLOCK_ROWS, 216 // BLOCK_ROWS}
    assert packer_rows({"DstAccessMode": 0, "ReadIntfSel": 0}, tuple(state)) == {200 // BLOCK_ROWS}
    state[column.PACK_DST - column.DST] |= 1 << 32 + config("PCK_DEST_RD_CTRL_Read_32b_data")[1]
    # Rows of 32 bits: their high halves are at twice the number, without the last three bits, the low ones 8 rows on.
    assert packer_rows({**strided, "ReadIntfSel": 1}, tuple(state)) == {400 // BLOCK_ROWS, 408 // BLOCK_ROWS}
