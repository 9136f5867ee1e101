"""GDB's remote protocol for a session of the debugger."""
