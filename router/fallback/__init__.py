"""The fallback of an address to a queue: when producers fall back, over which path, and how order is kept."""
