"""AMQP 1.0 over proton's engine, above the connections of `wire.transport`: the only package that imports proton."""
