"""A simulated mesh: real nodes and AMQP engines over in-memory pipes, in virtual time. A seed gives one run."""
