"""Programs and tensors in, tensors out: the tile as Python users see it."""
