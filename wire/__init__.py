"""AMQP 1.0 endpoints over proton's engine: the only package that imports proton."""
