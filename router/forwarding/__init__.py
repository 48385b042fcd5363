"""Move deliveries through a router: from inlets (incoming links) to takers (outgoing links), in groups of both."""
