"""Commands for operators: status, link costs, queues, stores, link logs, and checks of the machine."""
