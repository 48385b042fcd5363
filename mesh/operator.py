"""How an operator reaches a router: at its port for nodes, with the operator's certificate of the mesh."""

from __future__ import annotations

from addressing.topology import Topology
from mesh.pki import operator_certificate
from mesh.server import REACHABLE, Server
from wire.tls import MeshIdentity, Role, mesh_connector_context


def router_server(topology: Topology, router: str) -> Server:
    declared = topology.routers[router]
    host = REACHABLE.get(declared.host, declared.host)
    if not topology.node_tls:
        return Server(host, declared.port, sasl=None)
    context = mesh_connector_context(operator_certificate(topology))
    return Server(host, declared.port, context, sasl=None, expected=MeshIdentity(topology.mesh, Role.ROUTER, router))
