"""Recording runs: what each core and each thread executed, and when; as text, as a trace, as a profile.

Example:
    >>> import bhemu
    >>> from bhemu.recording import Recorder
    >>> tile = bhemu.Tile()
    >>> recorder = Recorder()
    >>> recorder.attach(tile)
    >>> tile.execute(2, "SETDMAREG 0x20, 24")
    >>> len(recorder.log())
    1
"""

from __future__ import annotations

from bhemu.recording.core_log import CoreLog
from bhemu.recording.core_profile import Profile, core_lines, profile, profile_as_json, profile_lines
from bhemu.recording.core_recorder import CoreRecorder
from bhemu.recording.core_text import text_lines
from bhemu.recording.log import Log
from bhemu.recording.recorder import Recorder

__all__ = [
    "CoreLog",
    "CoreRecorder",
    "Log",
    "Profile",
    "Recorder",
    "core_lines",
    "profile",
    "profile_as_json",
    "profile_lines",
    "text_lines",
]
