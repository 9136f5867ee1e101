"""Decoded configuration: the one idiom of unpackers, matrix unit and packer.

A unit declares in `Copies` which configuration fields it depends on: the attribute of its record that holds the field,
and the field's official name. From that table come the attributes, the positions from which `copy_fields` takes them,
and the words whose change makes the copy stale (machine/config_access.py). A decoder works on the copies alone and
never on the configuration, so it cannot depend on a word that is not in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from bhemu.isa.registers import FIRST_SHARED_WORD, RegisterField, Space, field
from bhemu.machine.kernel import kernel
from bhemu.machine.section import section
from bhemu.machine.types import Int, Lanes, TileRecord

NONE: Final = ""
"""Instead of a field's name: this form does not have the field, the attribute is 0."""

_THREAD_SPACE: Final = 1
Positions = np.ndarray[Any, np.dtype[np.int64]]


class Copies:
    """Configuration fields that a unit keeps copied.

    A unit may decode the same attributes from other fields by context: each context is a *form*.

    Args:
        fields: attribute -> official name of the field in each form, `NONE` where a form has none; one name alone
            is meant for all forms.
        forms: how many.
    """

    def __init__(self, fields: Mapping[str, str | Sequence[str]], forms: int = 1) -> None:
        self.attributes: Final = tuple(fields)
        names = [[of] * forms if isinstance(of, str) else list(of) for of in fields.values()]
        self._fields: Final = [[field(name) if name != NONE else None for name in of] for of in names]
        self.positions: Final[Positions] = np.zeros((forms, len(names), 4), np.int64)
        """int64 [form, attribute, 4]: space (1 = ThreadConfig), word, least significant bit, value mask."""
        for i, of in enumerate(self._fields):
            for form, found in zip(range(forms), of, strict=True):
                if found is not None:
                    self.positions[form, i] = _position(found)

    def words(self, space: Space) -> frozenset[int]:
        """Words of Config, or entries of ThreadConfig, that hold one of the fields in some form."""
        return frozenset(found.word for of in self._fields for found in of if found and found.space == space)


def _position(found: RegisterField) -> tuple[int, int, int, int]:
    space = _THREAD_SPACE if found.space == "thread" else 0
    return space, found.word, found.lsb, (1 << found.width) - 1


def decoded(copies: Copies, derived: Sequence[str], views: Sequence[tuple[str, str, int]] = ()) -> np.dtype[Any]:
    """dtype of decoded configuration: all attributes int64, the copied ones also as one array `copied`.

    Args:
        copies: what is copied.
        derived: attributes that the decoder computes.
        views: (name, first attribute, count): derived attributes as one array.
    """
    attributes = [(name, "i8", ()) for name in (*copies.attributes, *derived)]
    arrays = [("copied", copies.attributes[0], len(copies.attributes)), *views]
    return section(attributes, [(name, of, "i8", (count,)) for name, of, count in arrays])


@kernel
def copy_fields(t: TileRecord, bank: Int, thread: Int, positions: Lanes, form: Int, copied: Lanes) -> None:
    """Copy the fields of a form as Config `bank` and ThreadConfig `thread` hold them; shared words are in bank 0."""
    for i in range(positions.shape[1]):
        word = positions[form, i, 1]
        if positions[form, i, 0] == _THREAD_SPACE:
            value = np.int64(t.thread_config[thread, word])
        else:
            value = np.int64(t.config[0 if word >= FIRST_SHARED_WORD else bank, word])
        copied[i] = (value >> positions[form, i, 2]) & positions[form, i, 3]
