"""Drills: a mesh under traffic, faults from a file, and a verdict on the effects that users would have noticed."""
