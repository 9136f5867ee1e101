"""Imports every unit, so that its instructions are registered. A new unit is added here, in one line."""

from bhemu.tensix import adc as adc
from bhemu.tensix import config as config
from bhemu.tensix import matrix as matrix
from bhemu.tensix import mover as mover
from bhemu.tensix import pack as pack
from bhemu.tensix import rwc as rwc
from bhemu.tensix import scalar as scalar
from bhemu.tensix import sync as sync
from bhemu.tensix import unpack as unpack
from bhemu.tensix import vector as vector
from bhemu.tensix.frontend import words as words
