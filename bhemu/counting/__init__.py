"""Counting what a tile executes: how often and how long, not what and when."""
