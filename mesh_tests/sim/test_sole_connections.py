"""Is there one connection of a container at a router, where its client asked for that? [Connection Uniqueness 1.0]"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from router.clients.sole_connections import (
    CAPABILITY,
    CLOSE_EXISTING,
    ENFORCEMENT_POLICY,
    ESTABLISHMENT_FAILED,
    REFUSE_CONNECTION,
)
from wire.data import as_uint
from wire.delivery import ACCEPTED

REFUSE: dict[str, Any] = {"properties": {ENFORCEMENT_POLICY: as_uint(REFUSE_CONNECTION)}}
CLOSE: dict[str, Any] = {"properties": {ENFORCEMENT_POLICY: as_uint(CLOSE_EXISTING)}}


def opened(
    mesh: SimMesh, container_id: str = "me", *, router: str = "r1", is_sole: bool = True, **how: Any
) -> SimClient:
    client = mesh.client(router, container_id, desired_capabilities=(CAPABILITY,) if is_sole else (), **how)
    mesh.run_until(lambda: client.endpoint.remote is not None)
    mesh.run(0.1)
    return client


@pytest.mark.parametrize("how", [{}, REFUSE], ids=["says nothing", "refuse-connection"])
def test_a_second_connection_of_a_container_is_refused_in_the_words_of_the_specification(how: dict[str, Any]) -> None:
    mesh = line()
    first = opened(mesh)
    second = opened(mesh, **how)
    assert second.endpoint.remote.properties[ESTABLISHMENT_FAILED] is True
    assert second.closed.condition == "amqp:invalid-field"
    assert second.closed.info == {"invalid-field": "container-id"}
    assert not first.closed


def test_a_second_connection_closes_the_first_where_it_asks_for_that() -> None:
    mesh = line()
    first, second = opened(mesh), opened(mesh, **CLOSE)
    assert first.closed.condition == "amqp:resource-locked"
    assert first.closed.info == {"sole-connection-enforcement": True}
    assert not second.closed
    assert ESTABLISHMENT_FAILED not in second.endpoint.remote.properties
    receiver, sender = second.receiver("rpc"), second.sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert len(receiver.messages) == 1
    assert opened(mesh).closed.condition == "amqp:invalid-field"


@pytest.mark.parametrize("end", ["closes", "is lost"])
def test_a_container_may_come_again_when_its_connection_is_gone(end: str) -> None:
    mesh = line()
    first = opened(mesh)
    if end == "closes":
        first.endpoint.close()
        first._settle()
        mesh.run(0.1)
    else:
        mesh.cut(first.pipe)
    assert not opened(mesh).closed


def test_the_end_of_one_that_was_refused_or_replaced_leaves_the_other_the_only_one() -> None:
    mesh = line()
    first = opened(mesh)
    refused = opened(mesh)
    mesh.cut(refused.pipe)
    assert opened(mesh).closed.condition == "amqp:invalid-field"
    second = opened(mesh, **CLOSE)
    mesh.cut(first.pipe)
    assert opened(mesh).closed.condition == "amqp:invalid-field"
    assert not second.closed


@pytest.mark.parametrize(
    "other",
    [{"container_id": "you"}, {"is_sole": False}, {"user": "bob"}, {"router": "r2"}],
    ids=["another container", "one that does not ask", "another user", "another router"],
)
def test_others_are_let_in_beside_a_container_that_is_promised_to_be_alone(other: dict[str, Any]) -> None:
    mesh = line()
    first, second = opened(mesh, user="alice"), opened(mesh, **{"user": "alice", **CLOSE, **other})
    assert not first.closed
    assert not second.closed


def test_equal_containers_of_two_spaces_are_two_containers() -> None:
    mesh = SimMesh({"mesh": "one", "node_tls": False, "routers": {"r1": {}}}, spaces={"acme": {}})
    clients = [opened(mesh), opened(mesh, space="acme", **CLOSE)]
    assert [client.closed for client in clients] == [None, None]
    assert opened(mesh, space="acme").closed.condition == "amqp:invalid-field"
    mesh.cut(clients[1].pipe)
    mesh.run(0.1)
    assert not opened(mesh, space="acme").closed
