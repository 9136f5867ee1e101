"""Analytical models of what is not timed by execution: NoC, DRAM, whole matmuls, over the figures of isa/silicon.py.

They are formulas, not runs: an estimate says nothing about what a program computes.
"""
