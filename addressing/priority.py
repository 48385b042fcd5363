"""Priorities of addresses, from 0 to 9, with 9 the most urgent."""

DEFAULT_PRIORITY = 4
MAX_PRIORITY = 9
