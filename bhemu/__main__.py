"""`python -m bhemu`: the command line."""

from bhemu.cli.main import main

main()
