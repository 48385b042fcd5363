"""`amqpmesh bench`: measure the cost of messages, links and connections at a router or broker."""
