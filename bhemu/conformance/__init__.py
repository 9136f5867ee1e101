"""Conformance vectors, and the table of what is supported and how far it can be trusted."""
