"""The debugger's commands, by their names in GDB where GDB has them; the command line and scripts run them."""
