"""Names for operand values that software uses: wait-gate blocks and conditions, semaphores, data movers of the ADC
mask.

Programs read better with `Block.MATH` than with 0x40; the values are those of math Y10 and of the LLK headers' naming.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class Block(IntFlag):
    """What a latched wait holds (STALLWAIT, SEMWAIT, STREAMWAIT `stall_res`; B0..B8 of math Y10)."""

    TDMA = 0x001
    SYNC = 0x002
    PACK = 0x004
    UNPACK = 0x008
    XMOV = 0x010
    THCON = 0x020
    MATH = 0x040
    CFG = 0x080
    SFPU = 0x100


class Condition(IntFlag):
    """What a STALLWAIT waits for (`wait_res`; C0..C12 of math Y10)."""

    THCON = 0x0001
    UNPACK0 = 0x0002
    UNPACK1 = 0x0004
    PACK = 0x0008
    MATH = 0x0010
    SRCA_CLEARED = 0x0020
    SRCB_CLEARED = 0x0040
    SRCA_VALID = 0x0080
    SRCB_VALID = 0x0100
    XMOV = 0x0200
    TRISC_CFG = 0x0400
    SFPU = 0x0800
    CFGEXU = 0x1000


class WhileSemaphore(IntFlag):
    """How long a SEMWAIT waits (`wait_sem_cond`; math Y11a)."""

    ZERO = 1
    MAX = 2


class Semaphore(IntEnum):
    """Semaphore numbers by the use that the LLK makes of them; `1 << n` selects one in `sem_sel`."""

    FPU_SFPU = 0
    MATH_PACK = 1
    UNPACK_TO_DEST = 2
    UNPACK_OPERAND_SYNC = 3
    PACK_DONE = 4
    UNPACK_SYNC = 5
    UNPACK_MATH_DONE = 6
    MATH_DONE = 7

    @property
    def mask(self) -> int:
        """The semaphore as `sem_sel` bit mask."""
        return 1 << self.value


class Counters(IntFlag):
    """Which units' address counters an ADC instruction changes (`CntSetMask`)."""

    UNPACK0 = 1
    UNPACK1 = 2
    PACK = 4
