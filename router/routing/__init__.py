"""Link-state routing: which routers there are, how to reach them, who has takers for an address. Sans-IO."""
