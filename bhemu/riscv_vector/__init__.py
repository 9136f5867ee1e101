"""The vector extension of core T2, which uses part of RISC-V's V (tile T7)."""
