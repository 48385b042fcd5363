"""The fallback of an address to a queue, which takes its messages while the address has no consumers.

When producers fall back, over which path, how the queue is fed back to the address, and how order is kept.
"""
