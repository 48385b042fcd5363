"""The nodes of a topology to start on this host, and the files of each node in the work directory."""

from __future__ import annotations

from addressing.topology.model import Topology
from mesh.deploy.pki import node_certificate
from mesh.deploy.supervisor import NodePlan
from mesh.deploy.workdir import WorkDir
from wire.node_files import NodeFiles


def plan(topology: Topology) -> list[NodePlan]:
    """Return all nodes to start, brokers first: a router that finds a broker running need not dial twice."""
    brokers = [NodePlan(name, "broker") for name, broker in topology.brokers.items() if broker.is_embedded]
    return [*brokers, *(NodePlan(name, "router") for name in topology.routers)]


def node_files(topology: Topology, name: str) -> NodeFiles:
    workdir = WorkDir(topology.work_dir)
    broker = topology.brokers.get(name)
    data = topology.locate(broker.data) if broker is not None and broker.data is not None else workdir.root / name
    return NodeFiles(node_certificate(topology, name), data, workdir.control_socket(name), workdir.rings)
