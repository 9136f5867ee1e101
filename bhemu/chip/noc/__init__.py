"""NoC requests between the nodes of a chip."""
