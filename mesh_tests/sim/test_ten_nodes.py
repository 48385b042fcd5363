"""Nodes that share a process: each records to its own ring, at its own time, and leaves a link log of its own."""

from __future__ import annotations

from typing import Any

import pytest
from pyarrow import parquet

from linklogs.live_files import live_files
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.ten_nodes import BROKERS, NODES, ROUTERS, SENT, leave_link_logs, neighbors_of
from recording.records import Recorder

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """The rows of the link logs, by node: each file is in the directory of its node."""
    found: dict[str, list[Row]] = {}
    for path in live_files(leave_link_logs(tmp_path_factory.mktemp("ten"))):
        (node,) = [part.removeprefix("node=") for part in path.parts if part.startswith("node=")]
        found.setdefault(node, []).extend(parquet.ParquetFile(path).read().to_pylist())
    return found


def of(rows: list[Row], kind: str, event: str | None = None) -> list[Row]:
    return [row for row in rows if row["kind"] == kind and (event is None or row["event"] == event)]


def test_ten_nodes_of_one_process_leave_ten_link_logs(rows: dict[str, list[Row]]) -> None:
    assert rows.keys() == NODES
    for each in rows.values():
        assert len({row["run"] for row in each if row["run"] is not None}) == 1


@pytest.mark.parametrize("router", ROUTERS)
def test_each_router_records_its_own_neighbors_and_no_others(rows: dict[str, list[Row]], router: str) -> None:
    assert {row["neighbor"] for row in of(rows[router], "neighbor", "opened")} == neighbors_of(router)


@pytest.mark.parametrize("router", ROUTERS)
def test_each_router_on_the_way_records_each_delivery_once_under_its_own_links(
    rows: dict[str, list[Row]], router: str
) -> None:
    links = {row["link"]: row for row in of(rows[router], "link", "opened")}
    # Numbers begin anew at each node: no other node's links are counted with these.
    assert set(links) <= set(range(1, len(links) + 1))
    moved = [links[row["incoming"]]["address"] for row in of(rows[router], "delivery")]
    assert sorted(moved) == ["orders"] * SENT + ["rpc"] * SENT


def test_a_broker_records_the_messages_of_its_queue_and_another_broker_none(rows: dict[str, list[Row]]) -> None:
    assert {row["address"] for row in of(rows["b1"], "queue", "opened")} == {"orders"}
    counts = {name: len(of(rows[name], "message", "enqueued")) for name in BROKERS}
    assert counts == {"b1": SENT, "b2": 0}


def test_each_router_records_at_the_level_of_its_own_recorder() -> None:
    full, off = Ring(1000), Ring(1000)
    recorders = {"r1": Recorder(full.memory, "full"), "r2": Recorder(), "r3": Recorder(off.memory, "off")}
    routers = {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}}
    model = {"mesh": "line", "node_tls": False, "routers": routers, "addresses": {"rpc": "anycast"}}
    mesh = SimMesh(model, recorder_of=recorders.__getitem__)
    mesh.converge()
    mesh.client("r3").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, b"x")
    mesh.run_until(lambda: bool(sender.outcomes))
    assert len(full.take()[0]) == 1
    records, states = off.take()
    assert records == []
    assert {row["kind"] for row in states} >= {"connection", "link"}
