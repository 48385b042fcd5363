"""What an address means: the topology file, address patterns, permissions. Pure: no I/O but reading the topology."""
