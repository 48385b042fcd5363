"""Management of nodes over AMQP, in the words of Qpid Dispatch: requests, entities, and the observer as their agent."""
