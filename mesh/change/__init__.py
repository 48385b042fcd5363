"""Changes of a mesh: what two topologies resolve to, where they differ, and steps from one to the other. Sans-IO."""
