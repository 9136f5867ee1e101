"""The packer: Dst to L1, a file a stage, in the order in which data passes them."""

from bhemu.tensix.pack import pacr as pacr
from bhemu.tensix.pack import setreg as setreg
