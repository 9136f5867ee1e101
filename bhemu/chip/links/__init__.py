"""Links between the Ethernet tiles of several chips: frames in flight (ethernet 2.2, 6)."""
