"""What is at the places of the grid: one module for each kind of node."""
