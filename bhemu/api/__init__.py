"""The machine as Python users see it: `Tile`, `Machine`, `Chip`, their memory, registers, programs and snapshots."""
