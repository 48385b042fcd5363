"""Runs `amqpmesh bench`: measures the cost of messages, links and connections at a router or broker."""
