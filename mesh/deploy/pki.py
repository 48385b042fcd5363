"""The certificates that a topology needs: one for each node, with the hosts at which the node is reached."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from addressing.topology.model import Topology
from mesh.deploy.node_kinds import all_nodes, kind_of
from mesh.deploy.running_processes import option_for
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed
from wire.node_files import NodeCertificate, key_path_of
from wire.tls import Role

if TYPE_CHECKING:
    # Imported where a certificate is made or renewed: the library takes long to import, and a node rarely needs it.
    from mesh.certs import Certificate, NodeRequest

CA_FILE = "ca.pem"


def requests(topology: Topology) -> list[NodeRequest]:
    from mesh.certs import NodeRequest

    return [
        NodeRequest(node.name, node.kind.role, tuple(host for host, _ in node.kind.ports(topology, node.name)))
        for node in all_nodes(topology)
        if node.kind.role is not None
    ]


def make_pki(topology: Topology) -> list[Certificate]:
    """Make the certificates of the nodes and of the operator on this machine; valid certificates stay."""
    from mesh.certs import CertsError, ensure_operator, ensure_pki

    if not topology.node_tls:
        return []
    folder = WorkDir(topology.work_dir).pki
    try:
        nodes = ensure_pki(folder, topology.mesh, requests(topology))
        return [*nodes, ensure_operator(folder)]
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def node_certificate(topology: Topology, name: str) -> NodeCertificate | None:
    """Return the certificate of node ``name``; None if nodes of its kind have none, or node_tls is false.

    A node never makes an authority: on a machine without copies of the mesh's certificates, no other node would trust
    the new authority. On the machine with the authority's key, a missing certificate is made. Raises CommandFailed.
    """
    role = kind_of(topology, name).role
    if role is None or not topology.node_tls:
        return None
    files = _files(topology, role, name)
    missing = [path for path in (files.ca, files.certificate, files.key) if not path.exists()]
    if not missing:
        return files
    if not (files.ca.exists() and key_path_of(files.ca).exists()):
        raise _not_copied(topology, name, missing)
    made = make_pki(topology)
    return next(one.files for one in made if one.identity is not None and one.name == name)


def operator_certificate(topology: Topology) -> NodeCertificate:
    """Return the certificate with which commands on this machine act on the mesh. Raises CommandFailed."""
    from mesh.certs import CertsError, ensure_operator

    try:
        return ensure_operator(WorkDir(topology.work_dir).pki).files
    except CertsError as error:
        raise CommandFailed(str(error)) from None


def _files(topology: Topology, role: Role, name: str) -> NodeCertificate:
    folder: Path = WorkDir(topology.work_dir).pki
    certificate = folder / role / f"{name}.pem"
    return NodeCertificate(certificate, key_path_of(certificate), folder / CA_FILE)


def _not_copied(topology: Topology, name: str, missing: list[Path]) -> CommandFailed:
    option = option_for(topology.file)
    return CommandFailed(
        f"node {name} has no certificate here: expected files {', '.join(map(str, missing))}",
        fix=f"copy them from the machine that keeps the authority of mesh {topology.mesh}: `amqpmesh "
        f"certs make` there makes missing certificates. If this is that machine: `amqpmesh certs make{option}`, "
        f"or `amqpmesh up{option}`.",
    )
