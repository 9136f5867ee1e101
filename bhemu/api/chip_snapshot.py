"""A copy of a whole chip, in memory or in a file."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Final

from bhemu.chip.snapshot import DeviceState
from bhemu.errors import ProgramError

_MAGIC: Final = b"bhemu chip 1\n"


class ChipSnapshot:
    """A copy of a whole chip, from `Chip.snapshot`; its size is what the chip has touched, not what it could hold.

    Copies can be compared, pickled, and kept in files. Memory of the host and names of programs are not part of them.
    """

    def __init__(self, state: DeviceState) -> None:
        self.state = state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChipSnapshot) and self.state == other.state

    __hash__ = None  # type: ignore[assignment]

    def save(self, path: str | Path) -> None:
        """Write the copy to a file.

        Raises:
            OSError: the file cannot be written.
        """
        with Path(path).open("wb") as file:
            file.write(_MAGIC)
            pickle.dump(self.state, file, protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def load(path: str | Path) -> ChipSnapshot:
        """Read a copy from a file that you trust: it is a pickle, which can run code.

        Raises:
            OSError: the file cannot be read.
            ProgramError: it is no such copy.
        """
        with Path(path).open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ProgramError(f"{path} is no copy of a chip", remedy="name a file that `ChipSnapshot.save` wrote")
            try:
                state = pickle.load(file)
            except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, ValueError) as error:
                raise ProgramError(
                    f"{path} is damaged, or of another version of bhemu: {error}", remedy="make the copy again"
                ) from None
        if not isinstance(state, DeviceState):
            raise ProgramError(f"{path} is no copy of a chip", remedy="name a file that `ChipSnapshot.save` wrote")
        return ChipSnapshot(state)
