"""Connections as bytes: TCP, TLS, listeners, connectors and their limits. Knows no AMQP; see `ByteProtocol`."""
