"""What does a router say at level debug of attaches, routes, paths and credit? And nothing of it otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.events import AttachAnswered
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.line import ADDRESSES
from recording.events import CreditResumed, CreditStalled
from recording.records import Recorder
from router.clients.events import AttachDecided
from router.routes.events import RouteEstablished, RoutePathLost, RouteWaiting
from router.routing.events import PathChosen
from wire import log

BODY = b"\x00\x53\x75\xa0\x01x"


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    yield
    log.set_level("", "info")


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    topology = {
        "mesh": "debug",
        "node_tls": False,
        "routers": {"r1": {"connect": ["r2", {"to": "r3", "cost": 5}]}, "r2": {"connect": ["r3"]}, "r3": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r3"]}},
        "addresses": {**ADDRESSES, "orders": {"type": "queue", "broker": "b1"}},
    }
    mesh = SimMesh(topology, tmp_path, recorder_of=lambda _: Recorder(Ring(4096).memory, "full"))
    mesh.converge()
    mesh.run(1)
    return mesh


def events(mesh: SimMesh, kind: type) -> list[Any]:
    return [event for _, _, event in mesh.log if isinstance(event, kind)]


def live(mesh: SimMesh) -> None:
    """A client of each kind, a lost broker, a lost path, and a producer without credit."""
    client = mesh.client("r1", "worker")
    receiver = client.receiver("orders", credit=5)
    client.receiver("rpc")
    client.sender(None)
    mesh.run(1)
    mesh.kill_broker("b1")
    mesh.run(1)
    mesh.start_broker("b1")
    mesh.run(5)
    sender = mesh.client("r2", "starving").sender("near")
    mesh.run(1)
    for _ in range(3):
        mesh.tell_second("r2")
        mesh.run(1)
    mesh.client("r2").receiver("near")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.tell_second("r2")
    mesh.cut_trunk("r1", "r2")
    mesh.run(2)
    mesh.link("r1", "r2")
    mesh.run(5)
    assert receiver.link.is_open


def test_at_level_debug_a_router_says_what_it_decides_and_what_waits(mesh: SimMesh):
    log.set_level("", "debug")
    live(mesh)
    decided = {(each.address, each.direction): each for each in events(mesh, AttachDecided) if "worker" in each.client}
    assert (decided["orders", "outgoing"].treatment, decided["orders", "outgoing"].broker) == ("queue", "b1")
    assert (decided["rpc", "outgoing"].treatment, decided["rpc", "outgoing"].broker) == ("balanced", None)
    assert decided[None, "incoming"].treatment is None
    assert events(mesh, RouteEstablished)[0].path == ["r1", "r2", "r3"]
    assert {each.broker for each in events(mesh, RoutePathLost)} == {"b1"}
    assert {each.address for each in events(mesh, RouteWaiting)} == {"orders"}
    assert [(each.address, each.direction) for each in events(mesh, AttachAnswered)].count(("orders", "outgoing")) == 3
    (stalled,) = events(mesh, CreditStalled)
    assert (stalled.cause, stalled.client.partition(" at ")[0]) == ("no_taker", "starving")
    assert [each.link for each in events(mesh, CreditResumed)] == [stalled.link]
    chosen = events(mesh, PathChosen)
    assert any((each.router, each.before, each.path) == ("r3", ["r1", "r3"], ["r1", "r2", "r3"]) for each in chosen)


def test_at_level_info_none_of_these_events_is_made(mesh: SimMesh):
    live(mesh)
    made = {type(event).level for _, _, event in mesh.log}
    assert "info" in made
    assert "debug" not in made


def test_each_module_has_its_own_events(mesh: SimMesh):
    log.set_level("router.routes", "debug")
    live(mesh)
    made = {type(event) for _, _, event in mesh.log if event.level == "debug"}
    assert made == {RouteWaiting, RoutePathLost, RouteEstablished}
