"""Moving deliveries through a router: inlets (incoming links), takers (outgoing links), and groups that tie them."""
