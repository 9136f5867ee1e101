"""Clocks of many tiles: their order, and how far they run ahead of each other."""
