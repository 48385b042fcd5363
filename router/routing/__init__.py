"""Link-state routing, sans-IO: the routers of the mesh, the paths to each router, and the takers of each address."""
