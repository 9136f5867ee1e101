"""A recording of tiles of a chip whose hazards can be asked for."""

from __future__ import annotations

from bhemu.analysis.found import FoundHazard, check_parts
from bhemu.analysis.hazard import KINDS
from bhemu.analysis.suppressions import Suppressions
from bhemu.recording.chip_recording import ChipRecording


class CheckedRecording(ChipRecording):
    """What `bhemu.Chip.record` gives.

    Attributes:
        kinds: of hazards that `hazards` looks for.
        suppressions: hazards that it leaves out.
    """

    kinds: tuple[str, ...] = KINDS
    suppressions: Suppressions | None = None

    def hazards(self) -> list[FoundHazard]:
        """Hazards in what was recorded so far; the recording goes on.

        A kind of check that needs single instructions of cores finds nothing in a recording without them.
        """
        if not self.is_over:
            self.flush()
        return check_parts(self.parts, self.kinds, self.suppressions)
