"""The vector unit (SFPU): 32 lanes of 32 bits (math V). One file a stage; importing it registers the instructions."""

from bhemu.tensix.vector import fma as fma
from bhemu.tensix.vector import load_store as load_store
