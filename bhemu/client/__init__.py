"""A debugger inside of a running client's simulator, and the other end of its socket (`bhemu.attach`)."""
