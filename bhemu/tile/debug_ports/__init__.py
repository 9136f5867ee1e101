"""A tile's debug ports: debug bus, array reads, watchpoints, timestamps, the cores' debug interface."""
