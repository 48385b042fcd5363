"""What a broker refuses a client is in the log of the router that the broker is attached to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_broker_routes import mesh_of
from router.events import BrokerLinkRefused

SELECTOR = "apache.org:selector-filter:string"


def refusals(mesh: SimMesh) -> list[tuple[str, Any]]:
    return [(router, event) for _, router, event in mesh.log if isinstance(event, BrokerLinkRefused)]


@pytest.mark.parametrize("router", ["r1", "r3"])
def test_a_refusal_of_a_routed_link_is_logged_once_where_the_broker_is(tmp_path: Path, router: str):
    mesh = mesh_of(tmp_path, b1=["r3"])
    receiver = mesh.client(router, "c").receiver("news.sport", filter={SELECTOR: "colour = 'red'"})
    mesh.run_until(lambda: receiver.error is not None)
    mesh.run(1)
    [(where, event)] = refusals(mesh)
    assert where == "r3"
    assert (event.broker, event.address) == ("b1", "news.sport")
    assert event.condition == receiver.error.condition == "amqp:not-implemented"
    assert event.description == receiver.error.description
    assert event.client


@pytest.mark.parametrize("router", ["r1", "r3"])
def test_a_refused_producer_is_logged_too(tmp_path: Path, router: str):
    """The mesh makes one queue of the pattern, for the first producer."""
    mesh = mesh_of(tmp_path, b1=["r3"], jobs={"type": "queue", "broker": "b1", "max_queues": 1})
    client = mesh.client(router, "p")
    first = client.sender("jobs.1")
    mesh.run_until(lambda: first.link.is_open)
    second = client.sender("jobs.2")
    mesh.run_until(lambda: second.error is not None)
    [(where, event)] = refusals(mesh)
    assert (where, event.address, event.condition) == ("r3", "jobs.2", "amqp:resource-limit-exceeded")


@pytest.mark.parametrize("router", ["r1", "r3"])
def test_neither_a_lost_broker_nor_a_link_that_was_answered_counts_as_refused(tmp_path: Path, router: str):
    mesh = mesh_of(tmp_path, b1=["r3"])
    receiver = mesh.client(router, "c").receiver("orders")
    mesh.run_until(lambda: receiver.link.is_open)
    mesh.kill_broker("b1")
    mesh.run_until(lambda: receiver.error is not None)
    assert refusals(mesh) == []
