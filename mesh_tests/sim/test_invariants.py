"""Would the invariants of the random lives notice? Each is broken once."""

from __future__ import annotations

from collections.abc import Hashable
from types import SimpleNamespace
from typing import Any

import pytest

from addressing.topology.model import Topology
from broker.store.batch import QueueKind, QueueRow, WriteBatch
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.world import World
from mesh_tests.sim.invariants import Invariants
from mesh_tests.sim.walk import data_section
from wire.delivery import ACCEPTED, RELEASED, Outcome, rejected

REJECTED = rejected("amqp:not-allowed", "no")
TOPOLOGY = {
    "mesh": "invariants",
    "routers": {"r1": {}},
    "brokers": {"b1": {"data": "b1", "routers": ["r1"]}},
    "addresses": {"rpc": "anycast", "prices": "multicast", "orders": {"type": "queue", "broker": "b1"}},
}
NOW = 1000.0
SEEN_AGAIN = b"\x00\x53\x70\xc0\x07\x05\x40\x40\x40\x40\x52\x01"
"""A header with a delivery-count of 1."""


class Told:
    """A life in which one message went to an address, or none; clients say what the test wants."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.message = data_section(1, 20)
        self.client = SimClient(World(), "c")
        self.invariants = Invariants(self, Topology.model_validate(TOPOLOGY))

    def name_in(self, message: bytes) -> Hashable | None:
        return 1 if message.endswith(self.message) or message == self.message[:5] else None

    def name_of(self, sender: SimSender, count: int) -> Hashable:
        return count

    def sent_as(self, name: Hashable) -> tuple[str, bytes]:
        return self.address, self.message

    def consumer(self, address: str | None = None) -> SimReceiver:
        receiver = SimReceiver(_link(), address or self.address)
        self.client.receivers.append(receiver)
        return receiver

    def see(self, receiver: SimReceiver, message: bytes | None = None) -> None:
        receiver.messages.append(self.message if message is None else message)
        receiver.came_settled.append(False)

    def answer(self, receiver: SimReceiver, outcome: Outcome) -> None:
        receiver.answers.append((self.message, outcome))

    def tell_producer(self, outcome: Outcome) -> None:
        self.client.senders.append(SimSender(_link(), {1: outcome}))

    def commit(self, **parts: Any) -> None:
        self.invariants.on_commit("b1", WriteBatch(**parts))

    def store(self) -> None:
        self.commit(queues=[QueueRow(7, QueueKind.QUEUE, "orders")], messages=[(5, 20, 4, None, self.message)])

    def step(self) -> None:
        self.invariants.on_step(self.client, NOW)


def _link(credit: int = 0) -> Any:
    return SimpleNamespace(name="link", credit=credit, has_left=False, session=SimpleNamespace(has_left=False))


@pytest.mark.parametrize("outcome", [ACCEPTED, REJECTED])
@pytest.mark.parametrize("address", ["rpc", "prices", "orders"])
def test_a_producer_hears_only_what_a_consumer_said(address: str, outcome: Outcome):
    life = Told(address)
    life.tell_producer(outcome)
    with pytest.raises(AssertionError, match=r"1 is (accepted, and nobody has it|rejected, and nobody did that)"):
        life.step()


@pytest.mark.parametrize("outcome", [ACCEPTED, REJECTED])
def test_what_a_consumer_said_a_producer_may_hear(outcome: Outcome):
    life = Told("rpc")
    life.see(consumer := life.consumer())
    life.answer(consumer, outcome)
    life.tell_producer(outcome)
    life.step()


def test_what_is_stored_may_be_accepted_before_any_consumer_comes():
    life = Told("orders")
    life.store()
    life.tell_producer(ACCEPTED)
    life.step()


def test_a_producer_has_no_more_credit_than_was_promised():
    life = Told("rpc")
    life.client.senders.append(SimSender(_link(credit=1001)))
    life.step()
    life.client.senders.append(SimSender(_link(credit=1002)))
    with pytest.raises(AssertionError, match="has a credit of 1002, 1000 and a float of one were promised"):
        life.step()


@pytest.mark.parametrize(
    ("at", "message", "complaint"),
    [
        ("rpc", data_section(2, 20), "nobody sent"),
        ("rpc", b"", "nobody sent"),
        ("prices", data_section(1, 20), "1 for rpc came from prices"),
        ("rpc", data_section(1, 20)[:5], "came with other bytes"),
    ],
)
def test_a_consumer_sees_only_what_was_sent_like_that_to_its_address(at: str, message: bytes, complaint: str):
    life = Told("rpc")
    life.see(life.consumer(at), message)
    with pytest.raises(AssertionError, match=complaint):
        life.step()


def test_a_consumer_of_a_multicast_address_sees_a_message_once():
    life = Told("prices")
    life.see(life.consumer())
    life.see(second := life.consumer())
    life.step()
    life.see(second, SEEN_AGAIN + life.message)
    with pytest.raises(AssertionError, match="seen twice"):
        life.step()


@pytest.mark.parametrize("address", ["rpc", "orders"])
def test_what_is_seen_again_says_so(address: str):
    life = Told(address)
    life.see(life.consumer())
    life.see(life.consumer(), SEEN_AGAIN + life.message)
    life.step()
    life.see(life.consumer())
    with pytest.raises(AssertionError, match="seen again with a delivery-count of 0"):
        life.step()


def test_what_was_given_back_untouched_need_not_say_so():
    life = Told("orders")
    life.see(consumer := life.consumer())
    life.answer(consumer, RELEASED)
    life.step()
    life.see(life.consumer())
    life.step()


def test_after_its_producer_heard_that_it_is_accepted_nobody_sees_it_again():
    life = Told("rpc")
    life.see(consumer := life.consumer())
    life.answer(consumer, ACCEPTED)
    life.tell_producer(ACCEPTED)
    life.step()
    life.see(life.consumer(), SEEN_AGAIN + life.message)
    with pytest.raises(AssertionError, match="seen again after all was said"):
        life.step()


def test_what_its_taker_heard_confirmed_nobody_sees_again():
    life = Told("orders")
    life.see(consumer := life.consumer())
    life.answer(consumer, ACCEPTED)
    consumer.doubtful.append(life.message)
    life.step()
    life.see(other := life.consumer(), SEEN_AGAIN + life.message)
    life.answer(other, ACCEPTED)
    other.confirmed.append(life.message)
    life.step()
    life.see(life.consumer(), SEEN_AGAIN + life.message)
    with pytest.raises(AssertionError, match="seen again after all was said"):
        life.step()


def test_what_was_sent_before_may_be_read_after():
    life = Told("orders")
    late = SimClient(World(), "late")
    late.receivers.append(SimReceiver(_link(), "orders", reads=False))
    life.invariants.on_step(late, NOW)
    life.see(life.consumer())
    life.step()
    late.receivers[0].reads = True
    late.receivers[0].messages.append(life.message)
    late.receivers[0].came_settled.append(False)
    life.invariants.on_step(late, NOW)


def test_a_store_forgets_only_what_a_consumer_took():
    life = Told("orders")
    life.store()
    with pytest.raises(AssertionError, match="a store forgot 1, and nobody took it"):
        life.commit(archived={7: [5]})


def test_what_a_store_forgot_nobody_sees_again():
    life = Told("orders")
    life.store()
    life.see(consumer := life.consumer())
    life.answer(consumer, ACCEPTED)
    life.step()
    life.commit(archived={7: [5]})
    life.see(life.consumer(), SEEN_AGAIN + life.message)
    with pytest.raises(AssertionError, match="seen again after all was said"):
        life.step()


def test_a_large_message_is_known_by_its_beginning():
    life = Told("orders")
    life.commit(pieces=[(5, life.message[:5]), (6, b"another")])
    life.commit(messages=[(5, 20, None, None)])
    life.tell_producer(ACCEPTED)
    life.step()


def test_what_was_not_complete_when_its_broker_died_is_forgotten():
    life = Told("orders")
    life.commit(pieces=[(5, b"what never came to its end")])
    life.invariants.on_start("b1")
    life.commit(pieces=[(5, life.message)], messages=[(5, 20, None, None)])


def test_no_node_wants_to_be_called_at_a_moment_that_is_over():
    node = SimpleNamespace(next_deadline=lambda: NOW - 1)
    invariants = Told("rpc").invariants
    invariants.on_step(node, NOW)  # it hears of a deadline that is over, and is called at this moment
    with pytest.raises(AssertionError, match="it is 1001"):
        invariants.on_step(node, NOW + 1)
