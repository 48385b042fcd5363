"""A router: link state in ``routing``, movement of deliveries in ``forwarding``, the owner of all state in ``node``."""
