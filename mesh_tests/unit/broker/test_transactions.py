"""There are no transactions: a part of one is refused at the port of a broker, too, and never taken as plain. [4]"""

from __future__ import annotations

from typing import Any

import pytest

from mesh_tests.outcomes import set_transactional
from mesh_tests.unit.broker.rig import Producer, Rig
from wire.delivery import ACCEPTED, Outcome, OutcomeCode
from wire.message import Message, encode
from wire.terminus import Terminus, TerminusType


def send_in_transaction(producer: Producer, size: int, **fields: Any) -> Outcome | None:
    delivery = producer.start(b"1")
    set_transactional(delivery)
    data = encode(Message(body="x" * size, **fields))
    for start in range(0, len(data), 65_536):
        producer.link.send(data[start : start + 65_536])
        producer._rig.run()
    producer.link.finish()
    producer._numbers[delivery] = 1
    producer._rig.run()
    return producer.outcomes.get(1)


@pytest.mark.parametrize("size", [1, 70_000, 500_000])
@pytest.mark.parametrize(("target", "to"), [("orders", None), ("news.a", None), (None, "orders"), (None, "news.a")])
def test_a_delivery_of_a_transaction_is_rejected_and_stored_nowhere(
    rig: Rig, target: str | None, to: str | None, size: int
) -> None:
    subscriber, consumer = (rig.client(address).consumer(address) for address in ("news.a", "orders"))
    producer = rig.client().producer(target)
    fields = {} if to is None else {"to": to}
    outcome = send_in_transaction(producer, size, **fields)
    assert outcome is not None
    assert (outcome.kind, outcome.error.condition if outcome.error else None) == (
        OutcomeCode.REJECTED,
        "amqp:not-implemented",
    )
    assert subscriber.bodies + consumer.bodies == []
    assert list((rig.data / "large").iterdir()) == []
    number = producer.send("next", **fields)
    assert producer.outcomes[number] == ACCEPTED
    assert subscriber.bodies + consumer.bodies == ["next"]


@pytest.mark.parametrize("settles", [False, True])
def test_an_outcome_within_a_transaction_takes_no_message_from_its_queue(rig: Rig, settles: bool) -> None:
    producer = rig.client().producer("orders")
    producer.send("x")
    client = rig.client()
    consumer = client.consumer("orders", credit=1)
    (received,) = consumer.received
    set_transactional(received.delivery)
    received.give(None, settles=settles)
    client.vanish()
    assert rig.client().consumer("orders").bodies == ["x"]


def test_a_coordinator_is_refused(rig: Rig) -> None:
    producer = Producer(rig, rig.client().session.sender("coordinator"))
    producer.link.set_target(Terminus(type=TerminusType.COORDINATOR))
    producer.link.open()
    rig.run()
    assert producer.detached is not None
    assert producer.detached[1] is not None
    assert producer.detached[1].condition == "amqp:not-implemented"
