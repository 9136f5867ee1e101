"""The chip around the tiles: grid and coordinates, host windows, DRAM, PCIe and ARC (tile N, H)."""
