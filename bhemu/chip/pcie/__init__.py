"""What the host sees of a chip: PCI configuration, BARs, windows, address translation, DMA."""
