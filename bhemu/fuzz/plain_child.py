"""The process in which programs run as plain Python, without compiled code.

    NUMBA_DISABLE_JIT=1 python -m bhemu.fuzz.plain_child

A request on standard input is `<II` (items, pieces of L1), the items, and for each piece `<QI` (address, bytes) and its
bytes. The answer is a line of JSON: words executed, and digests of the state's arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
from typing import BinaryIO, Final

import numpy as np

from bhemu.conformance.vector_file import State
from bhemu.fuzz.machine import FuzzTile, Program

_HEAD: Final = struct.Struct("<II")
_PIECE: Final = struct.Struct("<QI")


def digests(state: State) -> dict[str, str]:
    """A digest of each array."""
    return {
        name: hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).hexdigest()
        for name, values in state.items()
    }


class PlainProcess:
    """The process, and programs for it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bhemu.fuzz.plain_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        )

    def run(self, program: Program) -> tuple[int, dict[str, str]]:
        """Words that plain code executes, and digests of the state after them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = _HEAD.pack(len(program), len(program.data)) + program.items.tobytes()
        for address, content in program.data:
            request += _PIECE.pack(address, len(content)) + content
        self._process.stdin.write(request)
        self._process.stdin.flush()
        executed, found = json.loads(self._process.stdout.readline())
        return int(executed), dict(found)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def _read(stream: BinaryIO) -> Program | None:
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    count, pieces = _HEAD.unpack(head)
    items = np.frombuffer(stream.read(8 * count), np.int64)
    data = []
    for _ in range(pieces):
        address, size = _PIECE.unpack(stream.read(_PIECE.size))
        data.append((int(address), stream.read(size)))
    return Program(items, tuple(data))


def main() -> None:
    """The process."""
    tile = FuzzTile()
    while (program := _read(sys.stdin.buffer)) is not None:
        ran = tile.run(program)
        print(json.dumps([ran.executed, digests(tile.state())]), flush=True)


if __name__ == "__main__":
    main()
