"""What an Ethernet tile has around its two cores: its memory map, reset, the queues of its link (ethernet 1, 2)."""

from bhemu.ethernet import memory_map as memory_map  # its functions get their places in the table of handlers
