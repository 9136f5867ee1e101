"""Measurements: how fast instructions, cores, kernels and chips run."""
