"""Matrix unit (FPU)."""

from bhemu.tensix.matrix import clear as clear
from bhemu.tensix.matrix import elementwise as elementwise
from bhemu.tensix.matrix import legacy as legacy
from bhemu.tensix.matrix import moves as moves
from bhemu.tensix.matrix import multiply as multiply
from bhemu.tensix.matrix import pool as pool
from bhemu.tensix.matrix import shifts as shifts
