"""Finds a node's node port, to which commands connect as an operator, with the mesh's certificate for operators."""

from __future__ import annotations

from addressing.topology.model import Topology
from mesh.client.server import Server
from mesh.deploy.node_kinds import kind_of
from mesh.deploy.pki import operator_certificate
from mesh.deploy.server_lookup import REACHABLE
from wire.transport.tls import MeshIdentity, mesh_connector_context


def node_server(topology: Topology, name: str) -> Server:
    """Return the node port of node ``name`` with the TLS settings of an operator; plain TCP where node TLS is off."""
    kind = kind_of(topology, name)
    host, port = kind.ports(topology, name)[0]
    reachable = REACHABLE.get(host, host)
    if kind.role is None or not topology.node_tls:
        return Server(reachable, port, sasl=None)
    context = mesh_connector_context(operator_certificate(topology))
    return Server(reachable, port, context, sasl=None, expected=MeshIdentity(topology.mesh, kind.role, name))
