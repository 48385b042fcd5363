"""Meaning of addresses: the topology file, address patterns, permissions. Pure: no I/O but reading the topology."""
