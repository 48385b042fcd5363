"""What a consumer adds to a message that it gives back is in the message when it comes again. [3.4.5]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.queueing.annotations import MOST_BYTES
from mesh_tests.unit.broker.rig import Consumer, Rig, topology_with
from mesh_tests.unit.broker.store.damaging import root_of, spoil_page, spoil_word
from mesh_tests.unit.broker.store.format_5 import as_format_5
from wire.delivery import Outcome, OutcomeCode

HEAD_BYTES = 131_072


def modified(*, failed: bool = False, here: bool = False, **annotations: Any) -> Outcome:
    return Outcome(OutcomeCode.MODIFIED, delivery_failed=failed, undeliverable_here=here, annotations=annotations)


def said_of(consumer: Consumer) -> list[dict[str, Any]]:
    return [dict(received.message.annotations or {}) for received in consumer.received]


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("size", [10, 200_000])
def test_annotations_of_modified_are_merged_into_the_message(rig: Rig, size: int, failed: bool) -> None:
    client = rig.client()
    client.producer("orders").send("x" * size, annotations={"x-first": "as sent", "x-why": "nobody asked"})
    consumer = client.consumer("orders", credit=1)
    consumer.received[-1].give(modified(failed=failed, **{"x-why": "too early", "x-times": 1}))
    consumer.link.grant(1)
    rig.run()
    consumer.received[-1].give(modified(failed=failed, **{"x-times": 2, "x-more": b"\x00\x01"}))
    consumer.link.grant(1)
    rig.run()
    first = {"x-first": "as sent", "x-why": "nobody asked"}
    second = {"x-first": "as sent", "x-why": "too early", "x-times": 1}
    assert said_of(consumer) == [first, second, {**second, "x-times": 2, "x-more": b"\x00\x01"}]
    assert consumer.counts == [0, int(failed), 2 * int(failed)]
    assert {received.message.body for received in consumer.received} == {"x" * size}


def test_what_a_consumer_of_one_subscription_says_is_not_said_to_those_of_another(rig: Rig) -> None:
    client = rig.client()
    one, other = (client.consumer("news.a", name=name, credit=2) for name in ("one", "other"))
    client.producer("news.a").send("x")
    one.received[0].give(modified(**{"x-why": "no"}))
    other.received[0].give(modified(**{"x-where": "here"}))
    assert said_of(one)[1:] == [{"x-why": "no"}]
    assert said_of(other)[1:] == [{"x-where": "here"}]


@pytest.mark.parametrize("stop", ["restart", "crash"])
@pytest.mark.parametrize("size", [10, 200_000])
def test_annotations_of_consumers_survive_a_restart(rig: Rig, size: int, stop: str) -> None:
    client = rig.client()
    client.producer("orders").send("x" * size, annotations={"x-first": "as sent"})
    client.consumer("orders", credit=1).received[0].give(modified(**{"x-why": "no"}))
    getattr(rig, stop)()
    consumer = rig.client().consumer("orders", credit=1)
    assert said_of(consumer) == [{"x-first": "as sent", "x-why": "no"}]
    consumer.received[0].give(modified(**{"x-why": "still no"}))
    getattr(rig, stop)()
    consumer = rig.client().consumer("orders", credit=1)
    assert said_of(consumer) == [{"x-first": "as sent", "x-why": "still no"}]
    consumer.received[0].give(Outcome(OutcomeCode.ACCEPTED))
    rig.restart()
    assert rig.inventory.annotations == {}


def test_a_store_of_format_5_keeps_annotations_from_now_on(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("x")
    rig.crash(lambda: as_format_5(rig.data))
    rig.client().consumer("orders", credit=1).received[0].give(modified(**{"x-why": "no"}))
    rig.crash()
    assert said_of(rig.client().consumer("orders", credit=1)) == [{"x-why": "no"}]


def test_annotations_go_along_to_the_dead_letter_queue(tmp_path: Path) -> None:
    addresses = {"jobs": {"type": "queue", "dead_letter": "dead", "max_delivery_attempts": 1}, "dead": "queue"}
    rig = Rig(tmp_path / "data", topology_with(addresses))
    client = rig.client()
    client.producer("jobs").send("x")
    client.consumer("jobs", credit=1).received[0].give(modified(failed=True, **{"x-why": "no"}))
    for _ in range(2):
        (said,) = said_of(rig.client().consumer("dead", credit=1))
        assert (said["x-why"], said["x-opt-dead-letter-reason"]) == ("no", "delivery-attempts")
        rig.restart()
    rig.store.close()


def test_annotations_beyond_the_limit_are_left_out_and_the_message_stays(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("x")
    consumer = client.consumer("orders", credit=3)
    consumer.received[0].give(modified(**{"x-why": "no"}))
    consumer.received[1].give(modified(**{"x-long": "x" * MOST_BYTES}))
    assert said_of(consumer) == [{}, {"x-why": "no"}, {"x-why": "no"}]


def test_what_routers_tell_each_other_does_not_get_into_the_message(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("x")
    consumer = client.consumer("orders", credit=2)
    consumer.received[0].give(modified(**{"x-opt-amqpmesh-lost": True, "x-why": "no"}))
    assert said_of(consumer)[1:] == [{"x-why": "no"}]


def test_a_damaged_table_of_annotations_takes_annotations_away_and_no_message(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("x")
    client.consumer("orders", credit=1).received[0].give(modified(**{"x-why": "no"}))
    rig.restart()
    rig.crash(lambda: spoil_page(rig.data, root_of(rig.data, "annotation")))
    assert rig.inventory.damages == [
        "table annotation was damaged, and was renamed to annotation_damaged_1: 0 of its rows could be read"
    ]
    assert said_of(rig.client().consumer("orders", credit=1)) == [{}]


def test_a_spoiled_row_takes_its_own_annotations_away(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("one"), producer.send("other")
    consumer = client.consumer("orders", credit=2)
    for received, why in zip(list(consumer.received), ("first why", "other why"), strict=True):
        received.give(modified(**{"x-why": why}))
    rig.restart()
    rig.crash(lambda: spoil_word(rig.data, b"first why", b"fIrst why"))
    (damage,) = rig.inventory.damages
    assert damage.startswith("queue 1: the annotations that consumers added to message 1 are lost")
    assert said_of(rig.client().consumer("orders", credit=2)) == [{}, {"x-why": "other why"}]
    rig.crash()
    assert rig.inventory.damages == []


def test_nothing_of_it_stays_when_the_message_is_gone(rig: Rig) -> None:
    client = rig.client()
    producer, consumer = client.producer("orders"), client.consumer("orders", credit=2)
    producer.send("x")
    consumer.received[0].give(modified(**{"x-why": "no"}))
    consumer.received[1].give(Outcome(OutcomeCode.ACCEPTED))
    consumer.link.grant(1)
    producer.send("y")
    assert said_of(consumer)[-1] == {}


@pytest.mark.parametrize("size", [60_000, 70_000, 110_000, 128_000])
def test_a_head_of_up_to_128_kib_is_kept(rig: Rig, size: int) -> None:
    client = rig.client()
    client.producer("orders").send("body", annotations={"x-long": "x" * size})
    assert client.consumer("orders").received[0].message.annotations == {"x-long": "x" * size}


@pytest.mark.parametrize("size", [HEAD_BYTES + 70_000, 500_000])
def test_a_longer_head_is_refused_as_a_limit(rig: Rig, size: int) -> None:
    producer = rig.client().producer("orders")
    outcome = producer.outcomes[producer.send("body", annotations={"x-long": "x" * size})]
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:link:message-size-exceeded"
    assert "too many bytes before the body of the message: expected at most 131072" in outcome.error.description
    assert producer.outcomes[producer.send("next")] == Outcome(OutcomeCode.ACCEPTED)
