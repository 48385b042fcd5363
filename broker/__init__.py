"""A broker node: stores the messages of queues and topics, and accepts a message only once it is on disk."""
