"""Receivers of multicasts with filter sets, and their control links, at any router of a mesh."""

from __future__ import annotations

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.filter_lives import mesh_of
from mesh_tests.sim.test_filter_sets import change, control_of, filter_of, publish, subscribe, told
from wire.delivery import ACCEPTED

ROUTERS = ("r1", "r2", "r3", "r4", "e1", "e3")


@pytest.fixture
def mesh() -> SimMesh:
    return mesh_of()


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("other", ROUTERS)
def test_a_client_anywhere_changes_its_set_and_gets_each_message_once(mesh: SimMesh, router: str, other: str) -> None:
    client = mesh.client(router)
    sender = mesh.client(other).sender(None)
    receiver = subscribe(mesh, client, "prices.tea", "prices.*", address="prices.#", kind="amqp")
    assert receiver.error is None
    assert receiver.link.remote_source.filter == filter_of("prices.tea", "prices.*", kind="amqp")
    control = control_of(mesh, client, "prices.#")
    publish(mesh, sender, "prices.tea", "prices.oil.eu", "prices.oil")
    assert change(mesh, control, 1, add=["prices.oil.#"], remove=["prices.*"]) == ACCEPTED
    publish(mesh, sender, "prices.tea", "prices.oil.eu", "prices.oil", "prices.gas")
    assert change(mesh, control, 2, remove=["prices.tea"]) == ACCEPTED
    publish(mesh, sender, "prices.tea", "prices.oil.us")
    expected = ["prices.oil", "prices.oil", "prices.oil.eu", "prices.oil.us", "prices.tea", "prices.tea"]
    assert sorted(told(receiver)) == expected
