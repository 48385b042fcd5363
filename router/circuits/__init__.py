"""Neighbors and circuits: links between routers, opened hop by hop along a path that the ingress computed."""
