"""Do libraries that insist on the settle modes that they asked for get on with the mesh, at every type of address?"""

import pytest

from mesh_tests.interop.clients.client import Azure, GoAmqp
from mesh_tests.interop.test_address_types import COUNT, EXPECTED, TOPOLOGY

MODES = [f"{sends},{settles}" for sends in ("unsettled", "settled", "mixed") for settles in ("first", "second")]
ADDRESSES = ["anycast", "multicast", "queue", "sharded", "topic"]


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.mark.parametrize("kind", ADDRESSES)
@pytest.mark.parametrize("settles", MODES)
@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_go_amqp_gets_each_mode_that_it_asks_for(mesh, new_client, kind, settles, role):
    address = f"{kind}.go.{role}.{settles.replace(',', '-')}"
    asks = {"settles": settles}
    receiver = new_client(GoAmqp).receive(mesh.url("r3"), address, COUNT, **(asks if role == "receiver" else {}))
    new_client(GoAmqp).send(mesh.url("r1"), address, COUNT, **(asks if role == "sender" else {})).wait_success()
    assert sorted(receiver.sequences()) == EXPECTED


@pytest.mark.parametrize("kind", ADDRESSES)
def test_azure_sends_and_receives_one_message_after_the_other(mesh, new_client, kind):
    address = f"{kind}.azure"
    receiver = new_client(Azure).receive(mesh.url("r3"), address, COUNT)
    new_client(Azure).send(mesh.url("r1"), address, COUNT).wait_success()
    assert sorted(receiver.sequences()) == EXPECTED
