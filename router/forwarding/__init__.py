"""Moving deliveries along stitches: inlets (incoming links), takers (outgoing links), and groups that tie them."""
