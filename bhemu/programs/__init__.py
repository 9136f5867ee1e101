"""Programs in Python: three functions in the place of the T cores, arrays in, arrays and a report out."""
