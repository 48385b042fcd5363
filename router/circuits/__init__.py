"""Connections to neighbors, and circuits: chains of links, opened hop by hop along a path that the ingress computed."""
