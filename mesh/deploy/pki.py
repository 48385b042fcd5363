"""The certificates that a topology needs: one for each node, with the hosts at which the node is reached."""

from __future__ import annotations

from pathlib import Path

from addressing.topology.model import Topology
from mesh.certs import Certificate, CertsError, NodeRequest, ensure_operator, ensure_pki
from mesh.certs.stored import key_path_of
from mesh.deploy.running import option_for
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed
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
    """Make the certificates of the nodes and of the operator on this machine; valid certificates stay."""
    if not topology.node_tls:
        return []
    folder = WorkDir(topology.work_dir).pki
    try:
        nodes = ensure_pki(folder, topology.mesh, requests(topology))
        return [*nodes, ensure_operator(folder)]
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def node_certificate(topology: Topology, name: str) -> NodeCertificate | None:
    """Return the certificate of node ``name``, or None if the nodes of the mesh use no TLS among each other.

    A node never makes an authority: on a machine without copies of the mesh's certificates, no other node would trust
    the new authority. On the machine with the authority's key, a missing certificate is made. Raises CommandFailed.
    """
    if not topology.node_tls:
        return None
    files = _files(topology, name)
    missing = [path for path in (files.ca, files.certificate, files.key) if not path.exists()]
    if not missing:
        return files
    if not (files.ca.exists() and key_path_of(files.ca).exists()):
        raise _not_copied(topology, name, missing)
    made = make_pki(topology)
    return next(one.files for one in made if one.identity is not None and one.name == name)


def operator_certificate(topology: Topology) -> NodeCertificate:
    """Return the certificate with which commands on this machine act on the mesh. Raises CommandFailed."""
    try:
        return ensure_operator(WorkDir(topology.work_dir).pki).files
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def _files(topology: Topology, name: str) -> NodeCertificate:
    role = Role.ROUTER if name in topology.routers else Role.BROKER
    folder: Path = WorkDir(topology.work_dir).pki
    certificate = folder / role / f"{name}.pem"
    return NodeCertificate(certificate, key_path_of(certificate), folder / CA_FILE)


def _not_copied(topology: Topology, name: str, missing: list[Path]) -> CommandFailed:
    option = option_for(topology.file)
    return CommandFailed(
        f"{name} has no certificate here: missing are {', '.join(map(str, missing))}",
        fix=f"copy them from the machine that keeps the authority of mesh {topology.mesh}: `amqpmesh certs make` there "
        f"makes those that it lacks. If this is that machine: `amqpmesh certs make{option}`, or `amqpmesh up{option}`.",
    )
