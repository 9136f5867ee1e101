"""Matrix unit (FPU)."""

from bhemu.tensix.matrix import multiply as multiply
