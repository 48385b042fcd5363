"""A broker node: durable queues and topics, accepted only once they are on disk."""
