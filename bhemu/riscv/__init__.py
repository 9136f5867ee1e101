"""The baby RISC-V cores: decoding, execution, control and status registers, and loops that only poll (tile T)."""
