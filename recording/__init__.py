"""The flight recorder of a node: a ring in memory to which the node writes records, and the meaning of each record."""
