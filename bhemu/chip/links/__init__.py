"""Links between the Ethernet tiles of several chips: frames on their way (ethernet 2.2, 6)."""
