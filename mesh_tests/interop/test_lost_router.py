"""Do queue and topic clients go on when a router dies: one between them and the broker, or their own?

Tests share a mesh, with addresses of their own: each begins when the router that the one before killed is linked again.
"""

import itertools

import pytest

from mesh_tests.interop.clients.client import that
from mesh_tests.interop.losses import assert_nothing_lost
from mesh_tests.waiting import wait_until

COUNT = 200
PAUSE_MS = "5"
BEFORE = 30
LINKED_S = 30.0
ALL_OF_THEM = set(range(1, COUNT + 1))

# The way from r1 to b1 leads over r2 while it lives, else over r4.
RING = """
mesh: ring
routers:
  r1: {connect: [r2, {to: r4, cost: 5}]}
  r2: {connect: [r3]}
  r3: {connect: [r4]}
  r4:
brokers:
  b1: {routers: [r3]}
addresses:
  queue.#: queue
  topic.#: topic
"""

# The broker is at r2 and r3, so it can be reached without either.
TRIANGLE = """
mesh: triangle
routers:
  r1: {connect: [r2, {to: r3, cost: 5}]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r2, r3]}
addresses:
  queue.#: queue
  topic.#: topic
"""


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def topology(request):
    return request.param


@pytest.fixture(scope="module")
def shared_mesh(topology, start_module_mesh):
    return start_module_mesh(topology)


@pytest.fixture
def mesh(shared_mesh):
    shared_mesh.wait_linked()
    wait_until(lambda: _path_of_r1_to_r3(shared_mesh) == ["r1", "r2", "r3"], LINKED_S, "the cheapest path, over r2")
    return shared_mesh


def _path_of_r1_to_r3(mesh):
    (found,) = (view["path"] for view in mesh.snapshot("r1")["node"]["routers"] if view["router"] == "r3")
    return found


@pytest.fixture
def name():
    """The end of an address that no other test uses."""
    return str(next(_numbers))


in_both = pytest.mark.parametrize("topology", [RING, TRIANGLE], ids=["transit", "at the broker"], indirect=True)
in_the_ring = pytest.mark.parametrize("topology", [RING], ids=["transit"], indirect=True)


@in_both
@pytest.mark.parametrize("client", that("sends_again"), indirect=True)
def test_queue_clients_go_on_when_the_router_before_the_broker_dies(mesh, client, name):
    address = f"queue.{name}"
    receiver = client.receive(mesh.url("r1"), address, COUNT)
    sender = client.send(mesh.url("r1"), address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(mesh.url("r1"), address, 1))


@in_both
@pytest.mark.parametrize("client", that("sends_again"), indirect=True)
def test_durable_subscribers_go_on_when_the_router_before_the_broker_dies(mesh, client, name):
    address, me = f"topic.{name}", {"subscription": "mine", "container_id": f"subscriber-{name}", "kind": "topic"}
    subscriber = client.receive(mesh.url("r1"), address, COUNT, **me)
    sender = client.send(mesh.url("r1"), address, COUNT, kind="topic", pause_ms=PAUSE_MS)
    subscriber.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, subscriber, lambda: client.receive(mesh.url("r1"), address, 1, **me))


@in_the_ring
@pytest.mark.parametrize("client", that("can_fail_over"), indirect=True)
def test_queue_clients_go_on_at_another_router_when_their_own_dies(mesh, client, name):
    address, urls = f"queue.{name}", [mesh.url("r2"), mesh.url("r4")]
    receiver = client.receive(urls, address, COUNT)
    sender = client.send(urls, address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(mesh.url("r4"), address, 1))
