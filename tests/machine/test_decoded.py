"""Decoded configuration is never stale: which words a unit depends on follows from the fields that it declares."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu.isa.instructions import encode
from bhemu.isa.registers import CONFIG_WORDS, FIRST_SHARED_WORD, THREAD_WORDS, WRITABLE_MASK, field, fields_of_word
from bhemu.machine import config_access, unpacker_state
from bhemu.machine.compiler import JIT, compile_entry
from bhemu.machine.config_access import (
    COPIES,
    MATRIX_BIT,
    PACK_BIT,
    UNITS_OF_ENTRY,
    UNITS_OF_WORD,
    UNPACK0_BIT,
    UNPACK1_BIT,
)
from bhemu.machine.faults import DONE
from bhemu.machine.state import ALL_CONFIG_DIRTY, TILE, new_tiles, offset_of
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tensix.matrix import decode as matrix
from bhemu.tensix.pack.pacr import _ready as pack_ready
from bhemu.tensix.unpack import decode as unpack

PACKAGE = Path(bhemu.__file__).parent
UNITS = {"unpacker 0": UNPACK0_BIT, "unpacker 1": UNPACK1_BIT, "packer": PACK_BIT, "matrix unit": MATRIX_BIT}
THREAD = 1
READ_32B = field("PCK_DEST_RD_CTRL_Read_32b_data").mask


def _decode_unpack(t: Any, unpacker: int, slot: int) -> int:
    unpack.settings(t, unpacker, 0, slot)
    return DONE


def _decode_pack(t: Any, thread: int, context: int) -> int:
    pack_ready(t, thread, context)
    return DONE


def _decode_matrix(t: Any, thread: int, _: int) -> int:
    matrix.settings(t, thread)
    return DONE


DECODERS: dict[str, tuple[Callable[..., int], int, list[int]]] = {
    "unpacker 0": (_decode_unpack, 0, list(range(unpacker_state.SLOTS))),
    "unpacker 1": (_decode_unpack, 1, list(range(unpacker_state.SLOTS))),
    "packer": (_decode_pack, THREAD, [0, 1, 2, 3]),
    "matrix unit": (_decode_matrix, THREAD, [0]),
}
"""Function of the record, its first argument, and its second one by form."""


@cache
def entry(function: Callable[..., int]) -> Callable[..., int]:
    return compile_entry(function.__name__.strip("_"), function).call


class Unit:
    """A tile in which one unit decodes its configuration."""

    def __init__(self, name: str) -> None:
        self.tiles = new_tiles(1)
        self.t: Any = self.tiles[0]
        self.t["allow_open"] = 1
        self.coprocessor = Coprocessor(self.tiles)
        self._function, self._first, self.forms = DECODERS[name]
        section = name.split()[0].replace("unpacker", "unpack").replace("packer", "pack")
        start = offset_of(TILE, section)
        self._section = self.tiles.view(np.ndarray).view(np.uint8)[start : start + TILE[section].itemsize]

    def decode(self, form: int) -> bytes:
        """Let the unit have its configuration ready, as an instruction would; returns what it keeps and the refusal."""
        self.t["fault_code"] = 0
        entry(self._function)(self.tiles.ctypes.data if JIT else self.t, self._first, form)
        return self._section.tobytes() + bytes(f"{self.t['fault_code']}", "ascii")

    def forget(self) -> None:
        """Let the unit be as after reset."""
        self._section[:] = 0

    def decoded_from(self, words: Any, entries: Any, form: int) -> bytes:
        """What the unit makes of these words of Config and entries of ThreadConfig."""
        self.forget()
        self.t["config"][0] = words
        self.t["thread_config"][THREAD] = entries
        return self.decode(form)


def configurations() -> Iterator[tuple[Any, Any]]:
    """Configurations that lead through the branches of the decoders."""
    nothing, no_entries = np.zeros(CONFIG_WORDS, np.uint32), np.zeros(THREAD_WORDS, np.uint16)
    yield nothing, no_entries
    rng = np.random.default_rng(1)
    switches = [
        {},
        {"PCK_EDGE_OFFSET_SEC0_mask": 0xFF, "PCK_EDGE_TILE_FACE_SET_SELECT_enable": 1, "PCK_EDGE_MODE_mode": 1},
        {"INT_DESCALE_Enable": 1, "STACC_RELU_ApplyRelu": 2, "PCK_DEST_RD_CTRL_Read_32b_data": 1},
        {
            "ALU_FORMAT_SPEC_REG_SrcA_override": 1,
            "DISABLE_IMPLIED_SRCA_FMT_Base": 1,
            "DISABLE_IMPLIED_SRCB_FMT_Base": 1,
        },
        {"THCON_SEC0_REG2_Ovrd_data_format": 1, "THCON_SEC1_REG2_Ovrd_data_format": 1},
        {"THCON_SEC0_REG10_Unpack_limit_address_en": 1, "THCON_SEC0_REG2_Tileize_mode": 1},
    ]
    for chosen in switches:
        words, entries = nothing.copy(), no_entries.copy()
        for name, value in chosen.items():
            found = field(name)
            place = words if found.space == "config" else entries
            place[found.word] |= value << found.lsb
        yield words, entries
    for _ in range(3):
        yield rng.integers(0, 1 << 32, CONFIG_WORDS, np.uint32) & WRITABLE_MASK, no_entries


@pytest.mark.parametrize("name", UNITS)
def test_a_word_that_changes_what_a_unit_decodes_makes_it_stale(name: str) -> None:
    unit = Unit(name)
    bit = UNITS[name]
    unexpected = set()
    changing = set()
    for words, entries in configurations():
        for form in unit.forms:
            before = unit.decoded_from(words, entries, form)
            for word in range(CONFIG_WORDS):
                other = words.copy()
                other[word] ^= WRITABLE_MASK[word]
                if unit.decoded_from(other, entries, form) != before:
                    changing.add(word)
                    if not UNITS_OF_WORD[word] & bit:
                        unexpected.add(("config", word))
            for word in range(1, THREAD_WORDS):  # entry 0 chooses the bank
                others = entries.copy()
                others[word] ^= 0xFFFF
                if unit.decoded_from(words, others, form) != before and not UNITS_OF_ENTRY[word] & bit:
                    unexpected.add(("thread", word))
    assert not unexpected
    assert changing == set(np.flatnonzero(UNITS_OF_WORD & bit).tolist())


def fields_of(name: str) -> Iterator[tuple[str, int]]:
    """Fields of the words that make a unit stale, with a form in which it reads the word."""
    for copies in COPIES[UNITS[name]]:
        for form in range(len(copies.positions)):
            for space, word, lsb, mask in copies.positions[form].tolist():
                if mask:
                    known = fields_of_word("thread" if space else "config", word)
                    yield next(f.name for f in known if f.lsb == lsb and (1 << f.width) - 1 == mask), form


@pytest.mark.parametrize("name", UNITS)
def test_a_field_that_software_writes_is_decoded_again(name: str) -> None:
    unit = Unit(name)
    changed = 0
    for of, form in dict(fields_of(name)).items():
        known = field(of)
        unit.forget()
        unit.t["config"] = 0
        unit.t["thread_config"] = 0
        if of.startswith("TILE_"):  # edge maps are looked at only where edge masks differ
            unit.t["config"][0, field("PCK_EDGE_OFFSET_SEC0_mask").word] = 0xFF
            unit.t["config"][0, field("PCK_DEST_RD_CTRL_Read_32b_data").word] = READ_32B
        before = unit.decode(form)
        if known.space == "thread":
            word = encode("SETC16", setc16_reg=known.word, setc16_value=known.mask)
        else:
            byte = known.lsb // 8
            data = known.mask >> 8 * byte & 0xFF
            word = encode(f"RMWCIB{byte}", Mask=data, Data=data, CfgRegAddr=known.word)
        assert unit.coprocessor.push(THREAD, word)
        assert unit.coprocessor.drain(THREAD)
        after = unit.decode(form)
        unit.forget()
        assert after == unit.decode(form), of
        changed += after != before
    assert changed > 0.9 * len(dict(fields_of(name)))


def test_decoders_read_no_configuration_but_their_declared_fields() -> None:
    for unit in ("unpack", "pack", "matrix"):
        tree = ast.parse((PACKAGE / "tensix" / unit / "decode.py").read_text(encoding="utf-8"))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != "table_field"]
        read = {node.attr for of in functions for node in ast.walk(of) if isinstance(node, ast.Attribute)}
        called = {node.id for of in functions for node in ast.walk(of) if isinstance(node, ast.Name)}
        assert not {"config", "thread_config"} & read, unit
        assert not {"config_field", "thread_field", "table_field"} & called, unit


def test_no_list_of_stale_words_is_typed_by_hand() -> None:
    tree = ast.parse(Path(config_access.__file__ or "").read_text(encoding="utf-8"))
    numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    assert numbers <= {0, 1, 2, 4, 8}  # bits of the units
    for bit, tables in COPIES.items():
        words = set().union(*(copies.words("config") for copies in tables))
        assert set(np.flatnonzero(UNITS_OF_WORD & bit).tolist()) == words


def test_shared_words_make_both_banks_stale() -> None:
    unit = Unit("packer")
    word = field("PCK_EDGE_OFFSET_SEC0_mask").word
    shared = next(w for w in range(FIRST_SHARED_WORD, CONFIG_WORDS) if UNITS_OF_WORD[w] & PACK_BIT)
    for written, banks in ((word, [True, False]), (shared, [True, True])):
        unit.t["config_dirty"] = 0
        unit.coprocessor.push(THREAD, encode("RMWCIB0", Mask=1, Data=1, CfgRegAddr=written))
        unit.coprocessor.drain(THREAD)
        assert [bool(dirty & PACK_BIT) for dirty in unit.t["config_dirty"].tolist()] == banks
    assert ALL_CONFIG_DIRTY & sum(UNITS.values()) == sum(UNITS.values())
