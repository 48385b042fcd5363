"""Operators' work on a running broker: requests to its control address, carried out one bounded step at a time."""
