"""Clients at a router: answers to attaches, limits of connections, and detaches and closes that wait for deliveries."""
