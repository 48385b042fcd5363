"""What does the broker write before it answers, and what does a restart find?"""

import pytest

from broker.links.incoming import LINK_CREDIT, UNSYNCED_LIMIT_BYTES
from broker.queueing.commit import PATIENCE_S
from broker.queueing.queue import MARK_STRIDE
from broker.store.batch import BodyRange
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Producer, Rig
from wire.delivery import ACCEPTED, MODIFIED_FAILED
from wire.link import RECEIVE_SECOND, SEND_UNSETTLED

READ_AHEAD_BYTES = 256 * 1024
SECOND = (SEND_UNSETTLED, RECEIVE_SECOND)


@pytest.mark.parametrize("durable", [True, False])
def test_a_message_is_accepted_only_after_the_sync_whatever_its_header_says(rig: Rig, durable: bool) -> None:
    producer = rig.client().producer("orders")
    rig.is_disk_held = True
    number = producer.send("one", durable=durable)
    assert producer.outcomes == {}
    rig.is_disk_held = False
    rig.run()
    assert producer.outcomes == {number: ACCEPTED}


def test_what_comes_after_a_restart_is_not_taken_for_what_was_there_before(rig: Rig) -> None:
    client = rig.client()
    producer, consumer = client.producer("orders"), client.consumer("orders")
    rig.is_disk_held = True
    for body in ("kept", "gone", "gone, too"):
        producer.send(body)
    rig.is_disk_held = False
    rig.run()
    for received in consumer.received[1:]:
        received.give(ACCEPTED)
    rig.restart()
    rig.client().producer("orders").send("new")
    rig.restart()
    assert rig.client().consumer("orders").bodies == ["kept", "new"]


def settle_first(rig: Rig) -> Producer:
    """A message was given to a consumer that has just settled it: nobody waits for what is to be written of that."""
    client = rig.client()
    producer, consumer = client.producer("orders"), client.consumer("orders")
    producer.send("one")
    rig.is_disk_held = True
    consumer.received[0].give(ACCEPTED)
    return producer


def test_what_nobody_waits_for_is_written_soon(rig: Rig) -> None:
    settle_first(rig)
    assert rig.node.take_batch() is None
    deadline = rig.node.next_deadline()
    assert deadline is not None
    assert rig.now < deadline <= rig.now + PATIENCE_S
    rig.node.on_time(deadline)
    batch = rig.node.take_batch()
    assert batch is not None
    assert len(batch.dropped_messages) == 1
    assert rig.node.next_deadline() is None


def test_what_nobody_waits_for_is_written_along_with_what_somebody_waits_for(rig: Rig) -> None:
    producer = settle_first(rig)
    assert rig.node.take_batch() is None
    producer.send("two")
    batch = rig.node.take_batch()
    assert batch is not None
    assert (len(batch.messages), len(batch.dropped_messages)) == (1, 1)


def test_a_broker_that_closes_waits_for_nothing(rig: Rig) -> None:
    settle_first(rig)
    rig.node.close()
    batch = rig.node.take_batch()
    assert batch is not None
    assert len(batch.dropped_messages) == 1


def test_an_accepted_message_survives_a_crash_and_one_not_accepted_need_not(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    producer.send("kept")
    producer.send("said so", durable=True)
    rig.is_disk_held = True
    producer.send("never accepted")
    rig.crash()
    consumer = rig.client().consumer("orders")
    assert consumer.bodies == ["kept", "said so"]
    assert consumer.counts == [0, 0]


def test_a_message_that_was_given_before_a_crash_shows_that_when_it_comes_again(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("seen")
    assert client.consumer("orders", credit=1).bodies == ["seen"]
    producer.send("not seen")
    rig.crash()
    consumer = rig.client().consumer("orders")
    assert consumer.bodies == ["seen", "not seen"]
    assert consumer.counts[0] == 1


def test_what_was_given_under_a_far_mark_is_counted_though_nearer_ones_were_wanted_since(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("before any consumer")
    consumer = client.consumer("orders")
    producer.send("while there is one")
    consumer.close()
    producer.send("while there is none")
    assert len(client.consumer("orders", name="later").bodies) == 3
    rig.crash()
    counts = rig.client().consumer("orders").counts
    assert len(counts) == 3
    assert min(counts) >= 1


def test_what_waits_behind_a_consumer_without_credit_is_not_counted_as_seen(rig: Rig) -> None:
    client = rig.client()
    client.consumer("orders", credit=1)
    producer = client.producer("orders")
    for body in range(MARK_STRIDE + 10):
        producer.send(body)
    rig.crash()
    counts = rig.client().consumer("orders", credit=MARK_STRIDE + 10).counts
    assert counts[0] == 1
    assert counts[-5:] == [0] * 5


def test_after_an_orderly_restart_only_what_was_given_is_counted(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    for body in ("a", "b"):
        producer.send(body)
    client.consumer("orders", credit=1)
    rig.restart()
    assert rig.client().consumer("orders").counts == [1, 0]


def test_a_confirmed_settlement_is_never_seen_again(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("once")
    (received,) = client.consumer("orders", settle_modes=SECOND).received
    rig.is_disk_held = True
    received.give(ACCEPTED, settles=False)
    assert not received.is_confirmed
    rig.is_disk_held = False
    rig.run()
    assert received.is_confirmed
    rig.crash()
    assert rig.client().consumer("orders").bodies == []
    assert held_by(rig.store.load()).messages == []


def test_an_unconfirmed_settlement_may_come_again_counted(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("twice")
    (received,) = client.consumer("orders", settle_modes=SECOND).received
    rig.is_disk_held = True
    received.give(ACCEPTED, settles=False)
    rig.crash()
    assert rig.client().consumer("orders").counts == [1]


def test_time_to_live_goes_on_while_the_broker_is_down(rig: Rig) -> None:
    rig.client().producer("orders").send("short", ttl_s=2)
    rig.now += 3
    rig.crash()
    rig.advance(0)
    assert rig.client().consumer("orders").bodies == []


def test_a_large_message_is_kept_in_a_file_and_given_whole(rig: Rig) -> None:
    body = bytes(range(256)) * 8000
    rig.client().producer("orders").send(body)
    assert len(list((rig.data / "large").iterdir())) == 1
    rig.crash()
    client = rig.client()
    consumer = client.consumer("orders")
    assert consumer.bodies == [body]
    consumer.received[0].give(MODIFIED_FAILED)
    assert consumer.bodies == [body, body]
    assert consumer.counts == [0, 1]
    consumer.received[1].give(ACCEPTED)
    assert list((rig.data / "large").iterdir()) == []


def test_a_large_message_is_read_piece_by_piece(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    body, read, asked = bytes(range(256)) * 8000, rig.store.read, []

    def note(wanted: list[BodyRange]) -> list[bytes]:
        asked.extend(wanted)
        return read(wanted)

    monkeypatch.setattr(rig.store, "read", note)
    client = rig.client()
    client.producer("orders").send(body)
    assert client.consumer("orders").bodies == [body]
    assert max(each.size_bytes for each in asked) == READ_AHEAD_BYTES
    assert sum(each.size_bytes for each in asked) < len(body) + READ_AHEAD_BYTES


def test_an_aborted_delivery_leaves_nothing(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    delivery = producer.start(b"tag")
    for _ in range(5):
        producer.link.send(b"\x00\x53\x75\xb0\x00\x10\x00\x00" + bytes(60000))
        rig.run()
    assert len(list((rig.data / "large").iterdir())) == 1
    producer.link.abort(delivery)
    rig.run()
    assert list((rig.data / "large").iterdir()) == []
    assert client.producer("orders", "another").send("fine") == 0
    assert client.consumer("orders").bodies == ["fine"]


def test_what_waits_for_the_disk_counts_against_the_credit_of_its_producer(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    rig.is_disk_held = True
    for _ in range(LINK_CREDIT):
        producer.send(is_settled=True)
    assert producer.link.credit == 0
    rig.is_disk_held = False
    rig.run()
    assert producer.link.credit > 0


def test_producers_are_held_back_while_too_many_bytes_wait_for_the_disk(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    rig.is_disk_held = True
    body = bytes(60000)
    while rig.snapshot().unsynced_bytes < UNSYNCED_LIMIT_BYTES and producer.link.credit:
        producer.send(body)
    before = rig.snapshot().unsynced_bytes
    for _ in range(20):
        producer.send(body)
    assert rig.snapshot().unsynced_bytes == before
    rig.is_disk_held = False
    rig.run()
    assert set(producer.outcomes.values()) == {ACCEPTED}
    assert rig.snapshot().unsynced_bytes == 0
