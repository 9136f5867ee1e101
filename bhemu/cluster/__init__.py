"""Several chips: which there are, how their Ethernet tiles are joined (ethernet 5, 6)."""
