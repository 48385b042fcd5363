"""Do links keep AMQP's rules through real sockets: drain, reduced credit, sizes, aborts, windows, names? [2.6]"""

from __future__ import annotations

import pytest

from mesh_tests.live.row_mesh import CAPACITY
from mesh_tests.live.wire_client import WireClient, wait_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED
from wire.message import Message, encode

FRAME_BYTES = 16384
WINDOW_FRAMES = 4
LARGE_BYTES = 200_000
MANY = 2000


def sized(size):
    """A message of so many bytes."""
    overhead = len(encode(Message(body=bytes(300)))) - 300
    return encode(Message(body=bytes(size - overhead)))


# Drain [2.6.7]
def test_a_drain_brings_what_waits_and_gives_the_rest_of_the_credit_back(rows, consumer, egress, work):
    receiver = consumer.receiver(work)
    with WireClient(rows.port(egress), container_id="producer at the same router") as producer:
        numbers = [producer.send_when_due(producer.sender(work)) for _ in range(3)]
        # An attach that was answered says that what the same connection sent before it was read.
        producer.sender(work)
        receiver.request_drain(10)
        consumer.wait(lambda: not receiver.is_drain_pending, "the answer to the drain")
        assert len(consumer.arrived) == 3
        assert receiver.credit == 0
        consumer.settle_all()
        assert [producer.wait_outcome(number) for number in numbers] == [ACCEPTED] * 3


def test_a_drain_is_answered_while_a_producer_goes_on(producer, consumer, work):
    receiver = consumer.receiver(work)
    sender = producer.sender(work)
    for _ in range(10):
        receiver.request_drain(5)

        def is_answered():
            while sender.credit > 0:
                producer.send(sender, "x")
            return not receiver.is_drain_pending

        wait_with((producer, consumer), is_answered, "the answer to the drain")
        assert receiver.credit == 0
        assert len(consumer.settle_all()) <= 5
        receiver.end_drain()


# Credit that the consumer takes back
@pytest.mark.parametrize("left", [0, 5])
def test_a_consumer_that_reduces_its_credit_gets_no_more_than_that(producer, consumer, work, left):
    receiver = consumer.receiver(work, credit=100)
    sender = producer.sender(work)
    sent = 3
    for _ in range(sent):
        producer.send_when_due(sender)
    consumer.wait_arrived(sent)
    receiver.set_credit(left)
    for _ in range(20):
        while sender.credit > 0:
            producer.send(sender, "x")
            sent += 1
        producer.step(0.01)
        consumer.step(0.01)
        assert receiver.excess <= 0
    assert receiver.credit == 0
    before = len(consumer.settle_all())
    receiver.grant(100)
    wait_with((producer, consumer), lambda: len(consumer.arrived) == sent - before, "what was held")
    consumer.settle_all()


# Sizes [2.7.3]
def test_a_consumer_gets_no_larger_message_than_it_takes(producer, consumer, work):
    consumer.receiver(work, credit=10, max_message_bytes=1000)
    sender = producer.sender(work)
    producer.wait(lambda: sender.credit > 2, "credit")
    for size in (1000, 1001, 1000):
        producer.send_bytes(sender, sized(size))
    producer.step()
    assert [len(each.data) for each in consumer.wait_arrived(2)] == [1000, 1000]


@pytest.mark.parametrize("kind", ["work", "news"])
@pytest.mark.parametrize("size", [1000, 65535, 65536, 65537, 1 << 20])
@pytest.mark.parametrize("is_settled", [False, True], ids=["unsettled", "settled"])
def test_a_message_of_any_size_arrives_whole(producer, consumer, work, news, kind, size, is_settled):
    address = {"work": work, "news": news}[kind]
    consumer.receiver(address, credit=10)
    sender = producer.sender(address)
    producer.wait(lambda: sender.credit > 0, "credit")
    number = producer.send_bytes(sender, sized(size), is_settled=is_settled)
    wait_with((producer, consumer), lambda: consumer.arrived, "the message")
    assert [(each.data, each.is_settled) for each in consumer.arrived] == [(sized(size), is_settled)]
    if not is_settled:
        consumer.settle_all()
        assert producer.wait_outcome(number) == ACCEPTED


# Aborts [2.6.14]
@pytest.mark.parametrize("kind", ["work", "news"])
@pytest.mark.parametrize("size", [10, FRAME_BYTES, LARGE_BYTES], ids=lambda size: f"{size} bytes")
def test_what_is_aborted_reaches_nobody_and_costs_no_credit_for_good(producer, consumer, work, news, kind, size):
    address = {"work": work, "news": news}[kind]
    consumer.receiver(address, credit=1000)
    sender = producer.sender(address)
    for index in range(CAPACITY):
        producer.wait(lambda: sender.credit > 0, "credit")
        begun = producer.send_bytes(sender, bytes(size), is_complete=False)
        producer.step()
        producer.abort(begun)
        number = producer.send_when_due(sender, index)
        wait_with((producer, consumer), lambda: consumer.arrived, "the whole message")
        assert [each.body for each in consumer.settle_all()] == [index]
        assert producer.wait_outcome(number) == ACCEPTED


# Session windows [2.5.6]
def test_a_consumer_that_does_not_read_is_sent_no_more_than_its_window_and_others_go_on(rows, producer, egress, work):
    body = bytes(FRAME_BYTES // 2)
    with (
        WireClient(rows.port(egress), container_id="still", window_frames=WINDOW_FRAMES) as still,
        WireClient(rows.port(egress), container_id="moving") as moving,
    ):
        receiver = still.receiver(work, credit=100)
        still.reads = False
        sender = producer.sender(work)
        for _ in range(CAPACITY):
            producer.send_when_due(sender, body)
            still.step(0.005)
        assert 0 < receiver.queued * len(body) <= WINDOW_FRAMES * FRAME_BYTES
        moving.receiver(work, credit=100)
        wait_with((producer, moving, still), lambda: moving.arrived or sender.credit > 0, "another consumer")
        still.resume(receiver)
        counts = {"sent": CAPACITY, "taken": 0}

        def are_all_taken():
            while sender.credit > 0 and counts["sent"] < 3 * CAPACITY:
                producer.send(sender, body)
                counts["sent"] += 1
            counts["taken"] += len(moving.settle_all()) + len(still.settle_all())
            return counts["taken"] == counts["sent"] == 3 * CAPACITY

        wait_with((producer, moving, still), are_all_taken, "all messages")


def test_a_message_larger_than_any_window_waits_for_its_reader_and_arrives_whole(rows, producer, egress, work):
    with WireClient(rows.port(egress), container_id="slow", window_frames=WINDOW_FRAMES) as slow:
        receiver = slow.receiver(work, credit=10)
        slow.reads = False
        sender = producer.sender(work)
        producer.wait(lambda: sender.credit > 0, "credit")
        number = producer.send_bytes(sender, sized(2 * LARGE_BYTES))
        wait_with((producer, slow), lambda: receiver.queued == 1, "its beginning")
        slow.resume(receiver)
        wait_with((producer, slow), lambda: slow.arrived, "its end")
        assert [each.data for each in slow.settle_all()] == [sized(2 * LARGE_BYTES)]
        assert producer.wait_outcome(number) == ACCEPTED


# Names and re-attaching [2.6.1], [2.6.3]
@pytest.mark.parametrize("way", ["close", "detach"])
def test_a_name_is_used_again_after_its_link_was(producer, consumer, work, way):
    making, taking = producer.begin(), consumer.begin()
    for index in range(10):
        receiver = consumer.receiver(work, credit=10, name="same", session=taking)
        sender = producer.sender(work, name="same", session=making)
        number = producer.send_when_due(sender, index)
        assert consumer.wait_arrived(1)[0].body == index
        consumer.settle_all()
        assert producer.wait_outcome(number) == ACCEPTED
        for client, link in ((producer, sender), (consumer, receiver)):
            getattr(link, way)()
            client.wait(lambda link=link: link.is_gone, "the answer to the detach")


@pytest.mark.parametrize("way", ["close", "detach"])
def test_a_consumer_that_leaves_with_deliveries_and_comes_back_gets_only_new_ones(producer, consumer, work, way):
    session = consumer.begin()
    receiver = consumer.receiver(work, credit=10, name="same", session=session)
    sender = producer.sender(work)
    number = producer.send_when_due(sender, "old")
    consumer.wait_arrived(1).clear()
    getattr(receiver, way)()
    consumer.wait(lambda: receiver.is_gone, "the answer to the detach")
    assert producer.wait_outcome(number) == MODIFIED_FAILED
    consumer.receiver(work, credit=10, name="same", session=session)
    number = producer.send_when_due(sender, "new")
    assert [each.body for each in consumer.wait_arrived(1)] == ["new"]
    consumer.settle_all()
    assert producer.wait_outcome(number) == ACCEPTED


def test_two_thousand_links_in_one_session_all_pass_messages(producer, consumer, work):
    making, taking = producer.begin(), consumer.begin()
    for number in range(200):
        consumer.receiver(f"{work}.{number}", credit=20, session=taking, is_awaited=False)
    senders = [producer.sender(f"{work}.{n % 200}", session=making, is_awaited=False) for n in range(MANY)]
    wait_with((producer, consumer), lambda: all(sender.credit > 0 for sender in senders), "credit for all", 30)
    for sender in senders:
        producer.send(sender, "x")
    wait_with((producer, consumer), lambda: len(consumer.arrived) == MANY, "all messages", 30)
    consumer.settle_all()
    wait_with((producer, consumer), lambda: len(producer.outcomes) == MANY, "all outcomes", 30)
    assert set(producer.outcomes.values()) == {ACCEPTED}
