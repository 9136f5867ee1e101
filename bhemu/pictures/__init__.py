"""Pictures of arrays, of a chip's tiles and of time: as HTML for notebooks, and with matplotlib where it is installed.

What is shown comes in as plain arrays and numbers; tiles, chips and results say what of them is shown.
"""
