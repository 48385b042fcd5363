"""Rehearsed failures: a mesh under traffic, faults from a file, and a verdict on what its users would have noticed."""
