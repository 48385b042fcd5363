"""Finds the node port of a node, to which an operator connects with the operator's certificate of the mesh."""

from __future__ import annotations

from addressing.topology.model import Topology
from mesh.client.server import Server
from mesh.deploy.pki import operator_certificate
from mesh.deploy.server_lookup import REACHABLE
from wire.tls import MeshIdentity, Role, mesh_connector_context


def router_server(topology: Topology, router: str) -> Server:
    declared = topology.routers[router]
    return _node_server(topology, declared.host, declared.port, Role.ROUTER, router)


def broker_server(topology: Topology, broker: str) -> Server:
    """Return the node port of an embedded broker."""
    declared = topology.brokers[broker]
    return _node_server(topology, declared.host, declared.port, Role.BROKER, broker)


def _node_server(topology: Topology, host: str, port: int, role: Role, name: str) -> Server:
    reachable = REACHABLE.get(host, host)
    if not topology.node_tls:
        return Server(reachable, port, sasl=None)
    context = mesh_connector_context(operator_certificate(topology))
    return Server(reachable, port, context, sasl=None, expected=MeshIdentity(topology.mesh, role, name))
