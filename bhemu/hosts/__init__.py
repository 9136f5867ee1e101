"""A cluster in several processes, on one machine or several: each worker has some of the chips (ethernet 6)."""
