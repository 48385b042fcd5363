"""The certificates that a topology needs: one for each node, with the hosts of its listeners, and one for operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mesh.deploy.node_kinds import all_nodes, kind_of
from mesh.deploy.running_processes import option_for
from mesh.deploy.workdir import WorkDir
from mesh.terminal.failure import CommandFailed
from wire.transport.certificate_files import NodeCertificate, key_path_of
from wire.transport.tls import Role

if TYPE_CHECKING:
    from addressing.topology.model import Topology

    # At run time, only functions that make certificates import mesh.certs: a slow import, which a node rarely needs.
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
    """Make the certificates of all nodes and of the operator in this machine's work directory; valid ones stay.

    Without node TLS, none is made or returned. Raises CommandFailed if a certificate has to be made and the authority's
    key is not here.
    """
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

    On the machine with the authority's key, a missing certificate is made; elsewhere a missing certificate raises
    CommandFailed. A new authority is never made here: the nodes on other machines would not trust the new authority.
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
    """Return the operator's certificate, with which commands on this machine log in to nodes.

    The certificate is made if it is missing, ends within 30 days, or is another authority's. Raises CommandFailed if
    there is no authority here, or the certificate has to be made and the authority's key is not on this machine.
    """
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
