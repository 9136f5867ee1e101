"""Unpackers: L1 to SrcA, SrcB and Dst (rules I.1-I.7, U1-U12).

The files are in the order in which data passes: `decode` (configuration), `address` (which datums, from where),
`compressed` (the same for zero-compressed tiles), `convert` (datum to register cell), `place` (cell to register),
`walk` (the loops over datums), `completion` (counters and hand-over), `unpacr` and `nop` (the instructions), `faults`.
"""

from bhemu.tensix.unpack import nop as nop
from bhemu.tensix.unpack import unpacr as unpacr
