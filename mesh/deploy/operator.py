"""Finds a node's node port, to which commands connect as an operator, with the mesh's certificate for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesh.client.server import REACHABLE, Server
from mesh.deploy.node_kinds import kind_of
from mesh.deploy.pki import CA_FILE, operator_certificate
from mesh.deploy.workdir import WorkDir
from wire.transport.certificate_files import KEY_SUFFIX, NodeCertificate, key_path_of
from wire.transport.tls import MeshIdentity, Role, mesh_connector_context

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from addressing.topology.model import Topology


def node_server(topology: Topology, name: str) -> Server:
    """Return the node port of node ``name`` with the TLS settings of an operator; plain TCP where node TLS is off."""
    files = operator_certificate(topology) if _has_tls(topology, name) else None
    return _server(topology, name, files)


def broker_server(topology: Topology, name: str) -> Server:
    """Return the node port of an embedded broker, as `node_server` does.

    A host that keeps no operator's certificate has that of a broker which runs there, and the broker obeys its own.
    """
    pki = WorkDir(topology.work_dir).pki
    own = [files for files in _certificates(pki, Role.BROKER) if files.certificate.stem == name]
    if not own or not _has_tls(topology, name) or _certificates(pki, Role.OPERATOR):
        return node_server(topology, name)
    return _server(topology, name, own[0])


def servers_for_programs(topology: Topology, name: str) -> Iterator[Server]:
    """Yield the node port of node ``name`` with each certificate by which a program of this host may be an operator.

    These are the operator's certificate and that of one node of this host: a host that keeps no operator's certificate
    has those of its nodes, and a node trusts both. No certificate is made, which would load the code of authorities.
    """
    if not _has_tls(topology, name):
        yield _server(topology, name, None)
        return
    pki = WorkDir(topology.work_dir).pki
    nodes = [found for role in (Role.ROUTER, Role.BROKER) for found in _certificates(pki, role)]
    for files in [*_certificates(pki, Role.OPERATOR)[:1], *nodes[:1]]:
        yield _server(topology, name, files)


def _has_tls(topology: Topology, name: str) -> bool:
    return kind_of(topology, name).role is not None and topology.node_tls


def _server(topology: Topology, name: str, files: NodeCertificate | None) -> Server:
    kind = kind_of(topology, name)
    host, port = kind.ports(topology, name)[0]
    reachable = REACHABLE.get(host, host)
    if files is None or kind.role is None:
        return Server(reachable, port, sasl=None)
    expected = MeshIdentity(topology.mesh, kind.role, name)
    return Server(reachable, port, mesh_connector_context(files), sasl=None, expected=expected)


def _certificates(pki: Path, role: Role) -> list[NodeCertificate]:
    found = (path for path in sorted((pki / role).glob("*.pem")) if not path.name.endswith(KEY_SUFFIX))
    return [NodeCertificate(path, key_path_of(path), pki / CA_FILE) for path in found if key_path_of(path).exists()]
