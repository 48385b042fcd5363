"""Meaning of addresses: the topology file, address patterns, permissions. No I/O except reading the topology file."""
