"""A broker's queues and subscriptions: messages and their order, bodies in memory or on disk, limits, recovery."""
