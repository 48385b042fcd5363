"""Queues and subscriptions: messages and their order, bodies in memory or on disk, policies, recovery."""
