"""More links to queues and topics than the broker connection of a client has sessions for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh

MOST = 256


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


@pytest.mark.parametrize("broker_at", ["r1", "r2"])
def test_a_link_beyond_the_sessions_of_its_broker_connection_is_refused_at_once_with_the_true_reason(
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


@pytest.mark.parametrize("broker_at", ["r1", "r2"])
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


def _told(error: Any) -> tuple[str, str]:
    return error.condition, error.description
