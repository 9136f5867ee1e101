"""What surrounds the coprocessor in a tile: cores' memory map, reset, mailboxes, buffers, debug and NoC registers."""
