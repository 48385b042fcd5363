"""Clients at a router: attaches and their answers, limits of connections, and orderly detach and close."""
