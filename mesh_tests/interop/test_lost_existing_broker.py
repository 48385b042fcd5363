"""Do clients go on when the way to a broker of others is lost, or the broker itself for a while?"""

import pytest

from mesh_tests.interop.clients.client import Rhea, that
from mesh_tests.interop.losses import assert_nothing_lost

COUNT = 200
PAUSE_MS = "5"
BEFORE = 30
ALL_OF_THEM = set(range(1, COUNT + 1))

# The broker is at r2 and r3: from r1 the way leads over r2 while it lives.
TOPOLOGY = """
mesh: "{name}"
routers:
  r1: {{connect: [r2, {{to: r3, cost: 5}}]}}
  r2: {{connect: [r3]}}
  r3:
brokers:
  there: {{url: "{url}", routers: [r2, r3], address_prefix: "{prefix}"}}
  there-too: {{url: "{url}", routers: [r2, r3], address_prefix: "{prefix_of_existing}"}}
addresses:
  queue.#: {{type: queue, broker: there}}
  existing.#: {{type: queue, broker: there-too}}
"""
PREFIXES = {
    "rabbitmq": {"prefix": "/queue/", "prefix_of_existing": "/amq/queue/"},
    "artemis": {"prefix": "", "prefix_of_existing": ""},
}


@pytest.fixture(params=PREFIXES)
def broker(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def mesh(request, broker, start_mesh):
    name = request.node.callspec.params["broker"]
    return start_mesh(TOPOLOGY.format(name=name, url=broker.url, **PREFIXES[name]))


@pytest.mark.parametrize("client", that("sends_again"), indirect=True)
def test_queue_clients_go_on_when_the_router_before_the_broker_dies(mesh, client):
    address = f"queue.lost.{client.name}"
    receiver = client.receive(mesh.url("r1"), address, COUNT)
    sender = client.send(mesh.url("r1"), address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(mesh.url("r1"), address, 1))


def test_what_a_broker_accepted_is_there_when_it_comes_back(mesh, broker, new_client):
    client, address = new_client(Rhea), "existing.orders"
    broker.make_durable_queue(address)
    client.send(mesh.url("r1"), address, COUNT).wait_success()
    broker.kill()
    broker.restart()
    assert client.receive(mesh.url("r1"), address, COUNT).sequences() == sorted(ALL_OF_THEM)
