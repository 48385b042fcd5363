"""The fallback of an address to a queue, which takes its messages while the address has no consumers.

The modules decide when producers fall back and over which path, feed the queue back to the address, and keep order.
"""
