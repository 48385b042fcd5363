"""What is a client refused: attaches, transfers beyond its promise, messages too large, transactions?"""

from __future__ import annotations

import pytest
from proton import Message

from mesh.simulation.clients import SimClient
from mesh_tests.frames import pretended_credit
from mesh_tests.outcomes import set_transactional
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, OutcomeCode

CAPACITY = 20
MOST_BYTES = 100_000


# Attaches
@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
@pytest.mark.parametrize("direction", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("address", "condition"),
    [("nowhere", "amqp:not-found"), ("closed", "amqp:not-found"), ("rpc", "amqp:unauthorized-access")],
)
def test_an_attach_is_refused_with_a_sentence_and_other_links_stay(
    router: str, direction: str, address: str, condition: str
):
    allowed = ["work.#", "closed", "nowhere"]
    mesh = line(users={"anonymous": {"send": allowed, "receive": allowed}})
    client = mesh.client(router)
    other = client.sender("work.other")
    refused = client.sender(address) if direction == "sender" else client.receiver(address)
    mesh.run_until(lambda: refused.error is not None)
    assert refused.error.condition == condition
    assert address in refused.error.description
    terminus = refused.link.remote_target if direction == "sender" else refused.link.remote_source
    assert terminus.is_null
    assert other.link.is_open


# Transfers beyond the promise
def overrun(client: SimClient) -> None:
    """Let its engine send over its first link without any credit of the router's."""
    client.endpoint.receive(pretended_credit())
    client.endpoint.drain(client)


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_transfer_beyond_the_promise_ends_the_link_and_no_other(egress: str, address: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver(address, credit=5)
    receiver.tops_up = False
    client = mesh.client("r1")
    sender, other = client.sender(address), mesh.client("r1").sender("work.other")
    mesh.client(egress).receiver("work.other")
    mesh.run_until(lambda: sender.link.credit > 0)
    overrun(client)
    for _ in range(3 * CAPACITY):
        sender.send(b"x")
    mesh.run_until(lambda: sender.error is not None)
    assert sender.error.condition == "amqp:link:transfer-limit-exceeded"
    assert len(receiver.messages) <= CAPACITY
    mesh.send(other)
    mesh.run_until(lambda: other.outcomes == {1: ACCEPTED})


def test_a_transfer_beyond_the_promise_ends_an_anonymous_link(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    mesh.client(egress).receiver("rpc", credit=5)
    client = mesh.client("r1")
    sender = client.sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    overrun(client)
    for _ in range(3 * CAPACITY):
        sender.send(Message(address="rpc").encode())
    mesh.run_until(lambda: sender.error is not None)
    assert sender.error.condition == "amqp:link:transfer-limit-exceeded"


# Messages that are too large
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_the_largest_message_passes_and_a_larger_one_ends_the_link(egress: str, address: str):
    mesh = line(listener={"max_message_bytes": MOST_BYTES})
    receiver = mesh.client(egress).receiver(address)
    sender = mesh.client("r1").sender(address)
    mesh.send(sender, bytes(MOST_BYTES))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert sender.link.remote_max_message_bytes == MOST_BYTES
    mesh.send(sender, bytes(MOST_BYTES + 1))
    mesh.run_until(lambda: sender.error is not None)
    assert sender.error.condition == "amqp:link:message-size-exceeded"
    mesh.run(1)
    assert [len(message) for message in receiver.messages] == [MOST_BYTES]


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_message_that_grows_too_large_while_it_streams_is_aborted_at_the_consumer(egress: str, address: str):
    mesh = line(listener={"max_message_bytes": MOST_BYTES})
    receiver = mesh.client(egress).receiver(address)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.begin()
    sender.link.send(bytes(MOST_BYTES))
    mesh.run_until(lambda: len(receiver.partial) > 0)
    sender.link.send(b"one more")
    mesh.run_until(lambda: sender.error is not None)
    assert sender.error.condition == "amqp:link:message-size-exceeded"
    mesh.run_until(lambda: receiver.aborted == 1)
    assert receiver.messages == []


# Transactions
@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
def test_a_coordinator_is_refused_with_a_sentence_and_other_links_stay(router: str):
    mesh = line()
    client = mesh.client(router)
    other, coordinator = client.sender("rpc"), client.coordinator()
    mesh.run_until(lambda: coordinator.error is not None)
    assert coordinator.error.condition == "amqp:not-implemented"
    assert coordinator.error.description
    assert other.link.is_open


@pytest.mark.parametrize("address", ["rpc", "prices", None])
def test_a_delivery_of_a_transaction_is_rejected(egress: str, address: str | None):
    mesh = line()
    receiver = mesh.client(egress).receiver(address or "rpc")
    sender = mesh.client("r1").sender(address)
    mesh.run(0.5)
    delivery = sender.begin()
    set_transactional(delivery)
    sender.link.send(Message(address=address or "rpc").encode())
    sender.link.finish()
    mesh.run_until(lambda: not sender.open)
    assert sender.outcomes[1].kind is OutcomeCode.REJECTED
    assert sender.outcomes[1].error.description
    assert receiver.messages == []
