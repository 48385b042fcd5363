"""Do queue and topic clients go on when a router dies: one between them and the broker, or their own?"""

import pytest

from mesh_tests.interop.clients.client import that
from mesh_tests.interop.losses import assert_nothing_lost

COUNT = 200
PAUSE_MS = "5"
BEFORE = 30
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


@pytest.fixture(params=[RING, TRIANGLE], ids=["transit", "at the broker"])
def mesh(request, start_mesh):
    return start_mesh(request.param)


@pytest.mark.parametrize("client", that("sends_again"), indirect=True)
def test_queue_clients_go_on_when_the_router_before_the_broker_dies(mesh, client):
    address = "queue.orders"
    receiver = client.receive(mesh.url("r1"), address, COUNT)
    sender = client.send(mesh.url("r1"), address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(mesh.url("r1"), address, 1))


@pytest.mark.parametrize("client", that("sends_again"), indirect=True)
def test_durable_subscribers_go_on_when_the_router_before_the_broker_dies(mesh, client):
    address, me = "topic.news", {"subscription": "mine", "container_id": "subscriber", "kind": "topic"}
    subscriber = client.receive(mesh.url("r1"), address, COUNT, **me)
    sender = client.send(mesh.url("r1"), address, COUNT, kind="topic", pause_ms=PAUSE_MS)
    subscriber.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, subscriber, lambda: client.receive(mesh.url("r1"), address, 1, **me))


@pytest.mark.parametrize("client", that("can_fail_over"), indirect=True)
def test_queue_clients_go_on_at_another_router_when_their_own_dies(start_mesh, client):
    mesh = start_mesh(RING)
    address, urls = "queue.orders", [mesh.url("r2"), mesh.url("r4")]
    receiver = client.receive(urls, address, COUNT)
    sender = client.send(urls, address, COUNT, pause_ms=PAUSE_MS)
    receiver.wait_sequences(BEFORE)
    mesh.kill("r2")
    assert set(sender.sequences()) == ALL_OF_THEM
    assert_nothing_lost(ALL_OF_THEM, receiver, lambda: client.receive(mesh.url("r4"), address, 1))
