"""Moving deliveries along stitches: inlets (incoming links), takers (outgoing links), and the groups that tie them."""
