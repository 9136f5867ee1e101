"""What an Ethernet tile has around its two cores: its memory map, reset, the queues of its link (ethernet 1, 2)."""
