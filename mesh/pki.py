"""The certificates that one topology needs: which nodes, reached at which hosts."""

from __future__ import annotations

from pathlib import Path

from addressing.topology import Topology
from mesh.certs import Certificate, CertsError, NodeRequest, ensure_operator, ensure_pki
from mesh.failure import CommandFailed
from mesh.workdir import WorkDir
from wire.node_files import NodeCertificate
from wire.tls import Role

CA_FILE = "ca.pem"


def requests(topology: Topology) -> list[NodeRequest]:
    routers = [
        NodeRequest(name, Role.ROUTER, (router.host, *(listener.host for listener in router.listeners)))
        for name, router in topology.routers.items()
    ]
    brokers = [
        NodeRequest(name, Role.BROKER, (broker.host,))
        for name, broker in topology.brokers.items()
        if broker.is_embedded
    ]
    return [*routers, *brokers]


def make_pki(topology: Topology) -> list[Certificate]:
    """For nodes and for operators on this machine; certificates that are there and good stay."""
    if not topology.node_tls:
        return []
    folder = WorkDir(topology.work_dir).pki
    try:
        nodes = ensure_pki(folder, topology.mesh, requests(topology))
        return [*nodes, ensure_operator(folder)]
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def node_certificate(topology: Topology, name: str) -> NodeCertificate | None:
    """That of node ``name``; None between nodes that talk in plain text.

    A machine that only runs some nodes has their certificates and the CA's, but not its key: nothing is made there.
    """
    if not topology.node_tls:
        return None
    role = Role.ROUTER if name in topology.routers else Role.BROKER
    return _existing(topology, role, name) or next(
        made.files for made in make_pki(topology) if made.identity is not None and made.name == name
    )


def operator_certificate(topology: Topology) -> NodeCertificate:
    """By which commands on this machine act on the mesh."""
    try:
        return ensure_operator(WorkDir(topology.work_dir).pki).files
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def _existing(topology: Topology, role: Role, name: str) -> NodeCertificate | None:
    folder: Path = WorkDir(topology.work_dir).pki
    files = NodeCertificate(folder / role / f"{name}.pem", folder / role / f"{name}-key.pem", folder / CA_FILE)
    return files if files.certificate.exists() and files.key.exists() and files.ca.exists() else None
