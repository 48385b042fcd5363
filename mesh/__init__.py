"""The `amqpmesh` command: run a topology, a node of it, and exchange messages with it."""
