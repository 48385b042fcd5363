"""What a broker accepted is received, and clients keep their links, though the broker is killed under load."""

from __future__ import annotations

import pytest

from mesh_tests.live.ledger import Ledger
from mesh_tests.live.wire_client import WireClient
from wire.terminus import Durability, Expiry

BEFORE, AFTER = 200, 1000
REATTACHED_S = 30.0
DONE_S = 60.0

TOPOLOGY = """
mesh: durability
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r3]}
addresses:
  queue.#: queue
  topic.#: topic
"""

SUBSCRIPTION = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "capabilities": ("topic",)}


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def producer(mesh):
    with WireClient(mesh.port("r1"), container_id="producer") as client:
        yield client


@pytest.fixture
def consumer(mesh):
    with WireClient(mesh.port("r1"), container_id="consumer") as client:
        yield client


@pytest.mark.parametrize(
    ("address", "terminus"),
    [("queue.ledger", {}), ("topic.ledger", SUBSCRIPTION)],
    ids=["queue", "durable subscription"],
)
def test_all_that_was_accepted_is_received_after_the_broker_was_killed(mesh, producer, consumer, address, terminus):
    receiver = consumer.receiver(address, credit=50, name="subscription", **terminus)
    ledger = Ledger(producer, producer.sender(address), consumer, receiver)
    ledger.run(lambda ledger: len(ledger.accepted) >= BEFORE, DONE_S)
    mesh.kill("b1")
    accepted, received = len(ledger.accepted), sum(ledger.received.values())
    # What had left the broker may still come; then both links move again, and nobody connected anew.
    ledger.run(lambda ledger: len(ledger.accepted) > accepted + 200, REATTACHED_S)
    ledger.run(lambda ledger: sum(ledger.received.values()) > received + 200, REATTACHED_S)
    ledger.run(lambda ledger: len(ledger.accepted) >= AFTER, DONE_S)
    ledger.run(lambda ledger: not ledger.missing, DONE_S, is_sending=False)


def test_a_durable_subscriber_finds_what_came_while_it_and_the_broker_were_away(mesh, producer):
    def subscribe():
        client = WireClient(mesh.port("r2"), container_id="subscriber")
        return client, client.receiver("topic.away", credit=100, name="mine", **SUBSCRIPTION)

    client, receiver = subscribe()
    receiver.detach()
    client.wait(lambda: receiver.is_gone, "the answer to the detach")
    client.__exit__(None, None, None)
    sender = producer.sender("topic.away")
    producer.wait(lambda: sender.credit >= 10, "credit")
    numbers = [producer.send(sender, number) for number in range(10)]
    for number in numbers:
        producer.wait_outcome(number)
    mesh.kill("b1")
    client, receiver = subscribe()
    assert [each.body for each in client.wait_arrived(10)] == list(range(10))
    client.__exit__(None, None, None)
