"""Connections of a router: the kinds of peers, connections to brokers, and connections that link routes share."""
