"""How many links to queues and topics may a client have: many to an embedded broker, fewer to an existing one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation import sim_mesh
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.leftovers import QUIET_S, leftovers
from router.events import RouteReattached
from router.routes import attach_turns
from router.routes.attach_turns import AttachTurns
from router.routes.link_routes import REATTACH_S
from wire.endpoint import EndpointSettings

MOST = 256
MANY = 1000
LINKS_PER_SESSION = 64
AT = pytest.mark.parametrize("broker_at", ["r1", "r2"])


def _mesh(folder: Path, broker_at: str) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {"b1": {"data": "b1", "routers": [broker_at]}},
            "addresses": {"q.#": {"type": "queue", "broker": "b1"}},
        },
        folder,
    )
    mesh.converge()
    mesh.run_until(lambda: mesh.routers[broker_at].snapshot().brokers[0].is_up)
    mesh.run(0.2)
    return mesh


@pytest.fixture
def existing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The routers take the broker for an existing one."""
    settings_of = sim_mesh._broker_settings
    endpoint = EndpointSettings("mesh")
    monkeypatch.setattr(
        sim_mesh, "_broker_settings", lambda name: replace(settings_of(name), needs_kind=True, endpoint=endpoint)
    )


@AT
@pytest.mark.usefixtures("existing")
def test_a_link_beyond_the_sessions_of_an_existing_broker_is_refused_at_once_with_the_true_reason(
    tmp_path: Path, broker_at: str
):
    mesh = _mesh(tmp_path, broker_at)
    client = mesh.client("r1")
    receivers = [client.receiver(f"q.{index}") for index in range(MOST)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers))
    beyond = client.receiver("q.beyond")
    mesh.run(0.1)
    assert _told(beyond.error) == (
        "amqp:resource-limit-exceeded",
        f"a client connection may have at most {MOST} links to queues and topics of broker b1, and all are in use",
    )
    assert all(receiver.error is None for receiver in receivers)
    refusals = [event for _, _, event in mesh.log if type(event).__name__ == "BrokerLinkRefused"]
    assert [event.condition for event in refusals] == ["amqp:resource-limit-exceeded"]
    other = mesh.client("r1", "other").receiver("q.other")
    mesh.run_until(lambda: other.link.is_open, 1)


@AT
@pytest.mark.usefixtures("existing")
def test_a_link_takes_the_place_of_one_that_has_just_left(tmp_path: Path, broker_at: str):
    mesh = _mesh(tmp_path, broker_at)
    client = mesh.client("r1")
    receivers = [client.receiver(f"q.{index}") for index in range(MOST)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers))
    receivers[7].link.close()
    mesh.flush()
    following = client.receiver("q.following")
    mesh.run_until(lambda: following.link.is_open, 1)
    assert following.error is None


@AT
def test_many_links_to_an_embedded_broker_share_sessions_which_end_with_them(tmp_path: Path, broker_at: str):
    mesh = _mesh(tmp_path, broker_at)
    before = _sessions_at_broker(mesh)
    client = mesh.client("r1")
    ends: list[Any] = [
        client.receiver(f"q.{index}") if index % 2 else client.sender(f"q.{index}") for index in range(MANY)
    ]
    mesh.run_until(lambda: all(end.link.is_open for end in ends), 30)
    assert all(end.error is None for end in ends)
    assert _sessions_at_broker(mesh) - before <= MANY // LINKS_PER_SESSION + 1
    # Links that end make room for others in the same sessions.
    for end in ends[::3]:
        end.link.close()
    mesh.run(0.5)
    more = [client.receiver(f"q.more.{index}") for index in range(len(ends[::3]))]
    mesh.run_until(lambda: all(end.link.is_open for end in more), 30)
    assert _sessions_at_broker(mesh) - before <= MANY // LINKS_PER_SESSION + 1
    client.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


@AT
def test_a_link_waits_for_its_turn_as_long_as_the_broker_answers_others(
    tmp_path: Path, broker_at: str, monkeypatch: pytest.MonkeyPatch
):
    # A second for each link: the last ones wait for three times as long as a link waits for a broker that is away.
    monkeypatch.setattr(attach_turns, "_TURN_S", 1.0)
    monkeypatch.setattr(attach_turns, "ATTACHES_AT_ONCE", 1)
    mesh = _mesh(tmp_path, broker_at)
    client = mesh.client("r1")
    receivers = [client.receiver(f"q.{index}") for index in range(30)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers), 60)
    mesh.kill_broker("b1")
    mesh.run(1)
    mesh.start_broker("b1")
    mesh.run_until(lambda: len(_reattached(mesh)) == len(receivers), 60)
    assert all(receiver.error is None for receiver in receivers)
    mesh.kill_broker("b1")
    mesh.run_until(lambda: all(receiver.error is not None for receiver in receivers), 2 * REATTACH_S)
    assert {_told(receiver.error) for receiver in receivers} == {
        ("amqp:link:detach-forced", "broker b1 could not be reached within 10 s")
    }


@AT
def test_a_link_waits_for_the_answer_of_a_broker_that_comes_back_late(
    tmp_path: Path, broker_at: str, monkeypatch: pytest.MonkeyPatch
):
    mesh = _mesh(tmp_path, broker_at)
    receiver = mesh.client("r1").receiver("q.late")
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.kill_broker("b1")
    mesh.run(REATTACH_S - 1)
    # The router is busy for longer than the link would wait for a broker that is away.
    monkeypatch.setattr(AttachTurns, "take", lambda turns, route: turns._timers.after(5.0, route.attach))
    mesh.start_broker("b1")
    mesh.run_until(lambda: bool(_reattached(mesh)) or receiver.error is not None, REATTACH_S)
    assert receiver.error is None


def _reattached(mesh: SimMesh) -> set[str]:
    return {event.link for _, _, event in mesh.log if isinstance(event, RouteReattached)}


@AT
def test_a_connection_without_a_session_to_spare_has_more_links_in_each(tmp_path: Path, broker_at: str):
    mesh = _mesh(tmp_path, broker_at)
    client = mesh.client("r1")
    client.receiver("q.first")
    mesh.run(0.5)
    for router in mesh.routers.values():
        for connection in router._connections.values():
            endpoint = connection.endpoint
            if connection.kind != "client":
                endpoint.settings = replace(endpoint.settings, max_sessions=endpoint.session_count)
    receivers = [client.receiver(f"q.{index}") for index in range(3 * LINKS_PER_SESSION)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers), 30)
    assert all(receiver.error is None for receiver in receivers)


def _sessions_at_broker(mesh: SimMesh) -> int:
    return sum(endpoint.session_count for endpoint in mesh.brokers["b1"]._endpoints)


def _told(error: Any) -> tuple[str, str]:
    return error.condition, error.description
