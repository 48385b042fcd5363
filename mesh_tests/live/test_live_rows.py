"""A reader that comes when a node has long been at work asks the node's control socket for all that there is."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mesh.deploy.control import RequestRefused, ask
from mesh.deploy.workdir import WRITER, WorkDir
from mesh_tests.live.wire_client import WireClient
from mesh_tests.rings import read_ring
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until
from recording import ring_format as layout

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


def has_list(ring: Path) -> bool:
    return any(row.get("event") == "listed" for row in read_ring(ring))


def test_router_and_broker_list_all_that_they_have_upon_a_request(tmp_path: Path, started: list[RunningMesh]):
    mesh = RunningMesh(TOPOLOGY, tmp_path)
    started.append(mesh)
    workdir = WorkDir(mesh.topology_file.parent / ".amqpmesh" / "listed")
    with WireClient(mesh.port("r1")) as client:
        client.receiver("orders", credit=1)
        wait_until(lambda: mesh.snapshot("b1")["node"]["link_count"] > 0, 30.0, "the link to reach the broker")
        for node in ("r1", "b1"):
            (ring,) = workdir.rings.glob(f"{node}.*.ring")
            assert ask(workdir.control_socket(node), "relist") > 0
            wait_until(partial(has_list, ring), 30.0, "the list")
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


def test_a_mesh_that_keeps_nothing_records_all_the_same_and_has_no_writer(tmp_path: Path, started: list[RunningMesh]):
    mesh = RunningMesh(TOPOLOGY + "link_logs: {keep: off, ring_bytes: 1048576}\n", tmp_path)
    started.append(mesh)
    workdir = WorkDir(mesh.topology_file.parent / ".amqpmesh" / "listed")
    (ring,) = workdir.rings.glob("r1.*.ring")
    ask(workdir.control_socket("r1"), "relist")
    wait_until(lambda: has_list(ring), 30.0, "the list")
    header = ring.read_bytes()[: layout.HEADER_BYTES]
    taken, overwrites = (struct.unpack_from("<Q", header, at)[0] for at in (layout.TAKEN_AT, layout.OVERWRITES_AT))
    assert (taken, overwrites) == (0, 1)
    assert not workdir.pid_file(WRITER).exists()
    assert not workdir.link_logs.exists()
