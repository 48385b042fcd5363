"""The observer, one for each host: reads the rings of the nodes, and shows the mesh to people and to programs."""
