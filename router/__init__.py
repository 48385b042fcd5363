"""A router node: link state in ``routing``, deliveries in ``forwarding``, all state owned by ``node``."""
