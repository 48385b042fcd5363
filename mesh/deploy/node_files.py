"""Finds the files of a node: its certificate, data folder, control socket and the folder of its ring of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesh.deploy.node_kinds import kind_of
from mesh.deploy.pki import node_certificate
from mesh.deploy.workdir import WorkDir
from wire.node_files import NodeFiles

if TYPE_CHECKING:
    from addressing.topology.model import Topology


def node_files(topology: Topology, name: str) -> NodeFiles:
    workdir = WorkDir(topology.work_dir)
    data = kind_of(topology, name).data(topology, name) or workdir.root / name
    return NodeFiles(node_certificate(topology, name), data, workdir.control_socket(name), workdir.rings)
