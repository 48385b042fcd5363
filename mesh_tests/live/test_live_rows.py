"""A reader that comes when a node has long been at work asks the node's control socket for all that there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.workdir import WorkDir
from mesh_tests.live.wire_client import WireClient
from mesh_tests.rings import read_ring
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: listed
node_tls: false
routers:
  r1: {listeners: [{authentication: none}]}
brokers:
  b1: {routers: [r1]}
addresses:
  orders: queue
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[RunningMesh]]:
    meshes: list[RunningMesh] = []
    yield meshes
    for mesh in meshes:
        mesh.down()


def test_router_and_broker_list_all_that_they_have_upon_a_request(tmp_path: Path, started: list[RunningMesh]):
    mesh = RunningMesh(TOPOLOGY, tmp_path)
    started.append(mesh)
    workdir = WorkDir(mesh.topology_file.parent / ".amqpmesh" / "listed")
    with WireClient(mesh.port("r1")) as client:
        client.receiver("orders", credit=1)
        wait_until(lambda: mesh.snapshot("b1")["node"]["link_count"] > 0, 10.0, "the link to reach the broker")
        for node in ("r1", "b1"):
            (ring,) = workdir.rings.glob(f"{node}.*.ring")
            assert ask(workdir.control_socket(node), "relist") > 0
            wait_until(lambda: read_ring(ring)[-1].get("event") == "listed", 10.0, "the list")  # noqa: B023
            rows = [row for row in read_ring(ring) if row.get("event") == "live"]
            assert {"connection", "link"} <= {row["kind"] for row in rows}
            assert "orders" in {row.get("address") for row in rows}
        assert [row["depth_count"] for row in rows if row["kind"] == "queue" and row["address"] == "orders"] == [0]


def test_a_node_that_records_nothing_refuses_the_request(tmp_path: Path, started: list[RunningMesh]):
    mesh = RunningMesh(TOPOLOGY + "link_logs: off\n", tmp_path)
    started.append(mesh)
    workdir = WorkDir(mesh.topology_file.parent / ".amqpmesh" / "listed")
    with pytest.raises(RequestRefused, match="`link_logs` is off"):
        ask(workdir.control_socket("r1"), "relist")
