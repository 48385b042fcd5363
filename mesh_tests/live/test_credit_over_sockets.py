"""Credit, settlement and the limits of a producer, as a client sees them on the wire; one to three routers apart."""

from __future__ import annotations

import pytest

from mesh_tests.egress import BETWEEN
from mesh_tests.frames import pretended_credit
from mesh_tests.live.offender import complaints
from mesh_tests.live.wire_client import WireClient
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, MODIFIED_FAILED, OutcomeCode
from wire.link import SEND_SETTLED

CAPACITY = 20
MOST_BYTES = 10_000
SMALL = 1

TOPOLOGY = f"""
mesh: credit
routers:
  r1:
    listeners:
      - {{link_capacity: {CAPACITY}}}
      - {{link_capacity: {CAPACITY}, max_message_bytes: {MOST_BYTES}}}
    connect: [r2]
  r2: {{connect: [r3]}}
  r3:
brokers:
  b1: {{routers: [r2]}}
addresses:
  work.#: anycast
  news.#: multicast
  stored.#: queue
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.fixture(params=BETWEEN, ids=BETWEEN.values())
def taker(mesh, request):
    """A client at the router of the producer, at its neighbor, or one further."""
    with WireClient(mesh.port(request.param), container_id="taker") as client:
        yield client


@pytest.fixture
def producer(mesh):
    with WireClient(mesh.port("r1"), container_id="producer") as client:
        yield client


@pytest.fixture(params=["work", "news"])
def address(request):
    """One for each test, so that none sees what another left."""
    return f"{request.param}.{abs(hash(request.node.name))}"


def test_a_producer_without_a_taker_has_no_credit(producer, address):
    sender = producer.sender(address)
    assert sender.is_open
    producer.step(0.2)
    assert sender.credit == 0


def test_credit_follows_when_a_taker_comes_and_goes_when_the_last_one_leaves(producer, taker, address):
    sender = producer.sender(address)
    receiver = taker.receiver(address, credit=10)
    producer.wait(lambda: sender.credit > 0, "credit")
    receiver.close()
    taker.wait(lambda: receiver.is_gone, "the answer to the detach")
    producer.wait(lambda: sender.credit == 0, "credit to be taken back")
    assert sender.is_open


def test_a_producer_never_has_more_credit_than_the_capacity_of_a_link(producer, taker, address):
    taker.receiver(address, credit=1000)
    sender = producer.sender(address)
    producer.wait(lambda: sender.credit == CAPACITY, "all the credit of a link")
    for number in range(CAPACITY):
        producer.send(sender, number)
    producer.step()
    taker.wait_arrived(CAPACITY)
    producer.step(0.1)
    assert sender.credit <= CAPACITY


def test_the_outcome_of_the_consumer_reaches_the_producer_and_its_credit_returns(producer, taker, address):
    taker.receiver(address, credit=100)
    sender = producer.sender(address)
    for _ in range(3 * CAPACITY):
        producer.wait(lambda: sender.credit > 0, "credit")
        number = producer.send(sender, "work")
        producer.step()
        taker.wait_arrived(1).pop().settle(ACCEPTED)
        taker.step()
        assert producer.wait_outcome(number) == ACCEPTED


def test_what_a_consumer_leaves_unsettled_when_it_dies_is_modified(mesh, producer, address):
    for router in BETWEEN:
        taker = WireClient(mesh.port(router), container_id="mortal")
        taker.receiver(address, credit=10)
        sender = producer.sender(address)
        producer.wait(lambda link=sender: link.credit > 0, "credit")
        number = producer.send(sender, "work")
        producer.step()
        taker.wait_arrived(1)
        taker.kill()
        assert producer.wait_outcome(number) == MODIFIED_FAILED
        sender.close()


def test_a_presettled_message_arrives_settled_and_its_credit_returns(producer, taker, address):
    taker.receiver(address, credit=100)
    sender = producer.sender(address)
    for number in range(3 * CAPACITY):
        producer.wait(lambda: sender.credit > 0, "credit")
        producer.send(sender, number, is_settled=True)
        producer.step()
    arrived = taker.wait_arrived(3 * CAPACITY)
    assert [each.body for each in arrived] == list(range(3 * CAPACITY))
    assert all(each.is_settled for each in arrived)


def test_a_consumer_that_asks_for_settled_messages_settles_nothing(producer, taker, address):
    taker.receiver(address, credit=10, send_mode=SEND_SETTLED)
    sender = producer.sender(address)
    producer.wait(lambda: sender.credit > 0, "credit")
    number = producer.send(sender, "work")
    producer.step()
    assert taker.wait_arrived(1)[0].is_settled
    assert producer.wait_outcome(number).kind is OutcomeCode.ACCEPTED


def test_a_drain_of_a_consumer_is_answered_when_nothing_waits(taker, address):
    receiver = taker.receiver(address)
    receiver.request_drain(10)
    taker.wait(lambda: not receiver.is_drain_pending, "the answer to the drain")
    assert receiver.credit == 0


# Limits
@pytest.fixture
def limited(mesh):
    with WireClient(mesh.port("r1", SMALL), container_id="limited") as client:
        yield client


@pytest.mark.parametrize("kind", ["work", "news", "stored"])
def test_a_message_of_the_largest_size_passes_and_a_larger_one_ends_the_link(mesh, limited, taker, kind):
    name = f"{kind}.size"
    taker.receiver(name, credit=10)
    sender = limited.sender(name)
    assert sender.remote_max_message_bytes == MOST_BYTES
    limited.wait(lambda: sender.credit > 1, "credit")
    limited.send_bytes(sender, _message(MOST_BYTES))
    limited.step()
    arrived = taker.wait_arrived(1)
    assert len(arrived[0].data) == MOST_BYTES
    arrived.pop().settle(ACCEPTED)
    taker.step()
    _assert_too_large(mesh, limited, sender)
    taker.step(0.2)
    assert not taker.arrived


def test_a_message_too_large_ends_an_anonymous_link_too(mesh, limited):
    sender = limited.sender(None)
    limited.wait(lambda: sender.credit > 0, "credit")
    _assert_too_large(mesh, limited, sender)


def test_a_message_that_grows_too_large_while_it_streams_ends_the_link(mesh, limited, taker):
    taker.receiver("work.streams", credit=10)
    sender = limited.sender("work.streams")
    limited.wait(lambda: sender.credit > 0, "credit")
    limited.send_bytes(sender, bytes(MOST_BYTES + 1), is_complete=False)
    assert limited.wait_detached(sender).error.condition == "amqp:link:message-size-exceeded"


def _assert_too_large(mesh, client, sender):
    client.send_bytes(sender, _message(MOST_BYTES + 1))
    error = client.wait_detached(sender).error
    assert error.condition == "amqp:link:message-size-exceeded"
    assert str(MOST_BYTES) in error.description
    assert len(wait_until(lambda: complaints(mesh, "r1", client.local_name), 30.0, "a line in the log")) == 1


def _message(size):
    return b"\x00\x53\x75\xb0" + (size - 8).to_bytes(4, "big") + bytes(size - 8)


@pytest.mark.parametrize("kind", ["work", "news"])
def test_a_transfer_beyond_the_promise_ends_the_link(mesh, producer, taker, kind):
    name = f"{kind}.promise"
    taker.receiver(name, credit=5)
    sender = producer.sender(name)
    producer.wait(lambda: sender.credit > 0, "credit")
    _pretend_credit(producer)
    for number in range(3 * CAPACITY):
        producer.send(sender, number)
    assert producer.wait_detached(sender).error.condition == "amqp:link:transfer-limit-exceeded"
    (line,) = wait_until(lambda: complaints(mesh, "r1", producer.local_name), 30.0, "a line in the log")
    assert line["condition"] == "amqp:link:transfer-limit-exceeded"


def test_a_transfer_beyond_the_promise_ends_an_anonymous_link_too(producer, taker):
    sender = producer.sender(None)
    producer.wait(lambda: sender.credit > 0, "credit")
    _pretend_credit(producer)
    for number in range(3 * CAPACITY):
        producer.send(sender, number, to="work.anonymous")
    assert producer.wait_detached(sender).error.condition == "amqp:link:transfer-limit-exceeded"


def _pretend_credit(producer):
    """Let the engine hear of 1,000 credits for its first link that nobody gave. [2.7.4]"""
    producer.endpoint.receive(pretended_credit())
    producer.endpoint.drain(producer)
