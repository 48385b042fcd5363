"""Dead letters and full queues, as clients see them through routers."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mesh_tests.live.wire_client import Arrived, WireClient
from mesh_tests.waiting import wait_until
from wire.delivery import ACCEPTED, MODIFIED_FAILED, OutcomeCode, rejected
from wire.message import Message, decode, encode

LIMIT = 100
BUSY_S = 30.0
TOPOLOGY = f"""
mesh: policies
routers:
  r1: {{connect: [r2]}}
  r2:
brokers:
  b1: {{routers: [r2]}}
  b2: {{routers: [r1]}}
default_broker: b1
addresses:
  orders: {{type: queue, dead_letter: orders.dead, max_delivery_attempts: 3, expiry: orders.late}}
  orders.dead: queue
  orders.late: queue
  spread: {{type: queue, brokers: [b1, b2], dead_letter: spread.dead}}
  spread.dead: {{type: queue, brokers: [b1, b2]}}
  blocks: {{type: queue, max_messages: {LIMIT}}}
  full: {{type: queue, max_messages: 3}}
  refuses: {{type: queue, max_messages: {LIMIT}, when_full: reject}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    return start_module_mesh(TOPOLOGY)


@pytest.fixture
def near(mesh):
    with WireClient(mesh.port("r1"), container_id="near") as client:
        yield client


@pytest.fixture
def far(mesh):
    with WireClient(mesh.port("r2"), container_id="far") as client:
        yield client


def said_of(letter: Arrived) -> dict[str, object]:
    annotations = decode(letter.data).annotations
    return {name.removeprefix("x-opt-dead-letter-"): value for name, value in annotations.items()}


def send(client: WireClient, address: str, *bodies: object, **fields: Any) -> None:
    sender = client.sender(address)
    client.wait(lambda: sender.credit >= len(bodies), "credit")
    for number in [client.send_bytes(sender, encode(Message(body=body, **fields))) for body in bodies]:
        assert client.wait_outcome(number) == ACCEPTED


def take(client: WireClient, address: str, count: int) -> list[Arrived]:
    client.receiver(address, credit=count)
    return client.wait_arrived(count)


def test_status_tells_that_a_producer_waits_for_a_full_queue(mesh, near):
    sender = near.sender("full")
    for number in range(3):
        near.wait(lambda: sender.credit > 0, "credit")
        assert near.wait_outcome(near.send_bytes(sender, encode(Message(body=number)))) == ACCEPTED

    def told() -> list[str]:
        return json.loads(mesh.run("status", "--json"))["full_queues"]

    (sentence,) = wait_until(told, BUSY_S, "somebody to wait")
    assert re.fullmatch(
        r"a producer waits for credit for \d+ s: queue full on broker b1 is full \(3 messages, \d+ bytes\)", sentence
    )
    rows = [line.split() for line in mesh.run("status", "-q").splitlines()]
    assert ["b1", "full", "-", "yes", "3", "0", "1"] in [[*row[:6], row[-1]] for row in rows if row]
    take(near, "full", 3)[0].settle(ACCEPTED)
    near.wait(lambda: sender.credit > 0, "credit")
    assert told() == []


@pytest.mark.parametrize("address", ["orders", "spread"])
def test_what_a_consumer_rejects_is_read_as_a_dead_letter_at_another_router(mesh, near, far, address):
    send(near, address, *range(6))
    for arrived in take(far, address, 6):
        arrived.settle(rejected("app:cannot", "never"))
    far.step()
    letters = take(near, f"{address}.dead", 6)
    assert sorted(letter.body for letter in letters) == list(range(6))
    assert {(said_of(letter)["reason"], said_of(letter)["origin"]) for letter in letters} == {("rejected", address)}
    for letter in letters:
        letter.settle(ACCEPTED)
    near.step()


def test_dead_letters_are_sent_back_by_an_operator_and_received(mesh, near, far):
    send(near, "orders", "second chance")
    for arrived in take(far, "orders", 1):
        arrived.settle(rejected("app:cannot", "not today"))
    far.step()
    wait_until(lambda: available(mesh, "orders.dead") == 1, 30.0, "the dead letter")
    assert json.loads(mesh.run("broker", "redrive", "orders.dead", "--json"))["messages"] == 1
    (again,) = take(near, "orders", 1)
    assert (again.body, said_of(again)) == ("second chance", {})
    again.settle(ACCEPTED)
    near.step()


def available(mesh, address) -> int:
    queues = json.loads(mesh.run("broker", "list", "--json"))["queues"]
    return sum(queue["available_count"] for queue in queues if queue["address"] == address)


def test_what_consumers_fail_with_is_given_up_after_as_many_attempts_as_there_may_be(mesh, near, far):
    send(near, "orders", "poison")
    receiver = far.receiver("orders", credit=10)
    for attempt in range(3):
        arrived = far.wait_arrived(attempt + 1)[attempt]
        assert decode(arrived.data).delivery_count == attempt
        arrived.settle(MODIFIED_FAILED)
        far.step()
    (letter,) = take(near, "orders.dead", 1)
    assert said_of(letter)["reason"] == "delivery-attempts"
    assert said_of(letter)["delivery-count"] == 3
    letter.settle(ACCEPTED)
    near.step()
    assert len(far.arrived) == 3
    assert not receiver.is_gone


def test_what_expires_is_read_where_the_topology_says(mesh, near, far):
    send(near, "orders", "late", ttl_s=0.2)
    (late,) = take(far, "orders.late", 1)
    assert (late.body, said_of(late)["reason"], decode(late.data).ttl_s) == ("late", "expired", 0.0)


def test_producers_wait_for_room_and_nobody_is_refused(mesh, near, far):
    sender = near.sender("blocks")
    numbers = []

    def has_filled_it() -> bool:
        while sender.credit > 0:
            numbers.append(near.send(sender, len(numbers)))
        return len(numbers) >= LIMIT

    near.wait(has_filled_it, "as much credit as there is room")
    for number in numbers:
        assert near.wait_outcome(number) == ACCEPTED
    assert (len(numbers), sender.credit) == (LIMIT, 0)
    arrived = take(far, "blocks", 10)
    for each in arrived:
        each.settle(ACCEPTED)
    far.step()
    near.wait(lambda: sender.credit > 0, "credit again")


def test_a_producer_hears_that_a_queue_is_full_where_the_topology_wants_that(mesh, near):
    send(near, "refuses", *range(LIMIT))
    sender = near.sender("refuses")
    near.wait(lambda: sender.credit > 0, "credit")
    outcome = near.wait_outcome(near.send(sender, "one more"))
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error.condition == "amqp:resource-limit-exceeded"
