"""The `amqpmesh` command: runs a topology or a single node, sends and receives messages, and operates a mesh."""
