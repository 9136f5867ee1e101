"""Scalar unit (ThCon): GPR arithmetic, GPRs to and from L1, Src and MMIO, atomics (I.11).

Each instruction finishes before the next word of any thread executes: results that silicon delivers later are there
at once, and what waits for the unit to be idle (FLUSHDMA, STALLWAIT C0) never waits.
"""

from bhemu.tensix.scalar import atomics as atomics
from bhemu.tensix.scalar import flops as flops
from bhemu.tensix.scalar import memory as memory
from bhemu.tensix.scalar import registers as registers
