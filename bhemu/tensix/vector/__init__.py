"""The vector unit (SFPU): 32 lanes of 32 bits (math V). One file a stage; importing it registers the instructions."""

from bhemu.tensix.vector import arithmetic as arithmetic
from bhemu.tensix.vector import condition as condition
from bhemu.tensix.vector import config as config
from bhemu.tensix.vector import convert as convert
from bhemu.tensix.vector import cross_lane as cross_lane
from bhemu.tensix.vector import fields as fields
from bhemu.tensix.vector import fma as fma
from bhemu.tensix.vector import integer as integer
from bhemu.tensix.vector import load_immediate as load_immediate
from bhemu.tensix.vector import load_store as load_store
from bhemu.tensix.vector import macro as macro
