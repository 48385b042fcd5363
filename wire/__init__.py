"""AMQP 1.0 endpoints over proton's engine, SASL, TLS and sockets: the only package that imports proton."""
