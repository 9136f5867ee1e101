"""Imports every unit, so that its instructions are registered. A new unit is added here, in one line."""

from bhemu.tensix import adc, config, rwc, scalar, sync

__all__ = ["adc", "config", "rwc", "scalar", "sync"]
