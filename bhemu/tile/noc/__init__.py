"""A tile's two NoC interface units: registers, requests, transfers."""
