"""Positions of the counters inside the `adc` and `rwc` arrays of the state record."""

from typing import Final

UNPACKER0: Final = 0
UNPACKER1: Final = 1
PACKER: Final = 2

# adc[thread, unit, CH0_X + channel * 4 + dimension]; the carry copy ("_Cr") is CARRY places further (I.8).
CH0_X: Final = 0
CH0_Y: Final = 1
CH0_Z: Final = 2
CH0_W: Final = 3
CH1_X: Final = 4
CH1_Y: Final = 5
CH1_Z: Final = 6
CH1_W: Final = 7
CARRY: Final = 8

# rwc[thread, ...] (R1)
RWC_A: Final = 0
RWC_A_CR: Final = 1
RWC_B: Final = 2
RWC_B_CR: Final = 3
RWC_DST: Final = 4
RWC_DST_CR: Final = 5
RWC_FIDELITY: Final = 6
RWC_BIAS: Final = 7
