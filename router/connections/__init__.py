"""Connections of a router: kinds of peers, brokers, and connections shared by link routes."""
