import pytest

from broker.queue import MARK_STRIDE
from broker.receiving import LINK_CREDIT, UNSYNCED_LIMIT_BYTES
from mesh_tests.unit.broker.rig import Producer, Rig
from wire import delivery as deliveries
from wire import terminus
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Kind, Outcome, rejected
from wire.link import RECEIVE_SECOND, SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED
from wire.message import selector_filter
from wire.terminus import DistributionMode, TerminusType

SECOND = (SEND_UNSETTLED, RECEIVE_SECOND)
MODIFIED_HERE = Outcome(Kind.MODIFIED, delivery_failed=True, undeliverable_here=True)


@pytest.mark.parametrize("durable", [True, False])
def test_a_message_is_accepted_only_after_the_sync_whatever_its_header_says(rig: Rig, durable: bool) -> None:
    producer = rig.client().producer("orders")
    rig.is_disk_held = True
    number = producer.send("one", durable=durable)
    assert producer.outcomes == {}
    rig.is_disk_held = False
    rig.run()
    assert producer.outcomes == {number: ACCEPTED}


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
    assert rig.store.load().messages == []


def test_an_unconfirmed_settlement_may_come_again_counted(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("twice")
    (received,) = client.consumer("orders", settle_modes=SECOND).received
    rig.is_disk_held = True
    received.give(ACCEPTED, settles=False)
    rig.crash()
    assert rig.client().consumer("orders").counts == [1]


def test_consumers_compete(rig: Rig) -> None:
    client = rig.client()
    first, second = client.consumer("orders", name="1"), client.consumer("orders", name="2")
    producer = client.producer("orders")
    for body in range(4):
        producer.send(body)
    assert (first.bodies, second.bodies) == ([0, 2], [1, 3])


@pytest.mark.parametrize(
    ("outcome", "count"), [(RELEASED, 0), (MODIFIED_FAILED, 1), (Outcome(Kind.MODIFIED), 0), (None, 1)]
)
def test_what_a_consumer_gives_back_comes_again(rig: Rig, outcome: Outcome | None, count: int) -> None:
    client = rig.client()
    client.producer("orders").send("again")
    consumer = client.consumer("orders", credit=1)
    consumer.received[0].give(outcome)
    consumer.link.grant(1)
    rig.run()
    assert consumer.bodies == ["again", "again"]
    assert consumer.counts == [0, count]


@pytest.mark.parametrize("outcome", [ACCEPTED, rejected("amqp:decode-error", "no")])
def test_what_a_consumer_keeps_or_rejects_is_gone(rig: Rig, outcome: Outcome) -> None:
    client = rig.client()
    client.producer("orders").send("gone")
    client.consumer("orders").received[0].give(outcome)
    assert rig.queue("orders").queue.available_count == 0
    assert rig.store.load().entries == []


def test_what_a_consumer_gives_back_with_its_credit_goes_to_another_consumer(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("a"), producer.send("b")
    first = client.consumer("orders", credit=3, name="first")
    for received in first.received:
        deliveries.set_outcome(received.delivery, RELEASED)
        deliveries.settle(received.delivery)
    first.link.set_credit(0)
    rig.run()
    producer.send("c")
    assert first.bodies == ["a", "b"]
    assert client.consumer("orders", name="second").bodies == ["a", "b", "c"]


def test_undeliverable_here_goes_to_another_consumer(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("not for you")
    first = client.consumer("orders", name="first")
    first.received[0].give(MODIFIED_HERE)
    assert len(first.received) == 1
    assert client.consumer("orders", name="second").counts == [1]


def test_a_broken_connection_gives_back_what_was_written_counted_and_what_was_not_uncounted(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    for body in ("a", "b"):
        producer.send(body)
    other = rig.client("other")
    other.consumer("orders", credit=1)
    other.vanish()
    assert client.consumer("orders").counts == [1, 0]


def test_a_drain_is_answered_when_nothing_is_left(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("only")
    consumer = client.consumer("orders", credit=0)
    consumer.link.request_drain(10)
    rig.run()
    assert consumer.bodies == ["only"]
    assert consumer.link.credit == 0
    assert not consumer.link.is_drain_pending


def test_a_browser_takes_nothing(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("look")
    browser = client.consumer("orders", name="browser", distribution_mode=DistributionMode.COPY)
    browser.received[0].give(ACCEPTED)
    assert client.consumer("orders").bodies == ["look"]


def test_a_pre_settled_message_is_stored_and_a_pre_settled_consumer_takes_it_for_good(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("fire", is_settled=True)
    rig.crash()
    client = rig.client()
    assert client.consumer("orders", settle_modes=(SEND_SETTLED, 0)).bodies == ["fire"]
    rig.crash()
    assert rig.client().consumer("orders").bodies == []


def test_an_expired_message_is_not_given_and_leaves_the_disk(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send("short", ttl_s=2)
    producer.send("long", ttl_s=200)
    rig.advance(3)
    assert len(rig.store.load().messages) == 1
    rig.crash()
    assert rig.client().consumer("orders").bodies == ["long"]


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


def test_what_is_no_message_is_rejected(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    number = producer.send_raw(b"not AMQP")
    outcome = producer.outcomes[number]
    assert outcome is not None
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:decode-error"


def test_a_producer_has_credit_and_gets_it_back(rig: Rig) -> None:
    producer = rig.client().producer("orders")
    assert producer.link.credit == LINK_CREDIT
    for _ in range(LINK_CREDIT):
        producer.send()
    assert producer.link.credit > 0


def test_an_anonymous_producer_names_the_address_in_each_message(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer(None)
    producer.send("here", to="orders")
    wrong = producer.send("nowhere", to="unknown")
    assert client.consumer("orders").bodies == ["here"]
    outcome = producer.outcomes[wrong]
    assert outcome is not None
    assert outcome.kind is Kind.REJECTED
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:not-found"


def test_a_queue_is_known_by_its_name_at_the_broker(rig: Rig) -> None:
    client = rig.client()
    client.producer("its-name-here").send("found")
    assert client.consumer("its-name-here").bodies == ["found"]


@pytest.mark.parametrize("address", ["unknown", "elsewhere", "_amqpmesh/broker/b2/x", "_amqpmesh/broker/b1/temp.gone"])
def test_an_address_that_is_not_kept_here_is_refused(rig: Rig, address: str) -> None:
    producer = rig.client().producer(address)
    assert producer.detached is not None
    closed, error = producer.detached
    assert closed
    assert error is not None
    assert error.condition == "amqp:not-found"
    assert producer.link.remote_target.is_null


def test_a_selector_is_refused_and_not_ignored(rig: Rig) -> None:
    consumer = rig.client().consumer("orders", filter=selector_filter("a = 1"))
    assert consumer.detached is not None
    assert consumer.detached[1] is not None
    assert consumer.detached[1].condition == "amqp:not-implemented"


def test_a_coordinator_is_refused(rig: Rig) -> None:
    client = rig.client()
    link = client.session.sender("transactions")
    producer = Producer(rig, link)
    link.set_source(terminus.source("here"))
    link.set_target(terminus.Terminus(type=TerminusType.COORDINATOR))
    link.open()
    rig.run()
    assert producer.detached is not None
    assert producer.detached[1] is not None
    assert producer.detached[1].condition == "amqp:not-implemented"


def test_who_is_not_of_the_mesh_may_not_attach(rig: Rig) -> None:
    producer = rig.client(is_mesh=False).producer("orders")
    assert producer.detached is not None
    assert producer.detached[1] is not None
    assert producer.detached[1].condition == "amqp:unauthorized-access"


def test_a_dynamic_source_is_a_queue_that_goes_with_its_link(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer(None, is_dynamic=True)
    address = consumer.link.remote_source.address
    assert address is not None
    client.producer(address).send("reply")
    assert consumer.bodies == ["reply"]
    consumer.close()
    late = client.producer(address, "late")
    assert late.detached is not None


def test_a_dynamic_target_makes_a_temporary_queue_as_jms_wants_it(rig: Rig) -> None:
    client = rig.client()
    maker = client.producer(None, "maker", is_dynamic=True, capabilities=("temporary-queue",))
    address = maker.link.remote_target.address
    client.producer(address, "replier").send("reply")
    assert client.consumer(address).bodies == ["reply"]
    maker.link.close()
    rig.run()
    late = client.producer(address, "late")
    assert late.detached is not None


def test_a_dynamic_target_makes_a_temporary_topic_when_asked(rig: Rig) -> None:
    client = rig.client()
    maker = client.producer(None, "maker", is_dynamic=True, capabilities=("temporary-topic",))
    address = maker.link.remote_target.address
    hearers = [client.consumer(address, name=name) for name in "ab"]
    client.producer(address).send("all hear")
    assert [hearer.bodies for hearer in hearers] == [["all hear"], ["all hear"]]


def test_a_probe_queue_is_made_by_use_and_goes_when_unused(rig: Rig) -> None:
    client = rig.client()
    probe = "_amqpmesh/broker/b1/probe"
    producer = client.producer(probe)
    producer.send("ping")
    consumer = client.consumer(probe)
    assert consumer.bodies == ["ping"]
    consumer.received[0].give(ACCEPTED)
    consumer.close()
    producer.link.close()
    rig.run()
    assert rig.snapshot().queues == ()
    assert rig.store.load().queues == []


def test_a_probe_is_accepted_and_given_only_after_a_sync_and_is_forgotten_by_a_crash(rig: Rig) -> None:
    client = rig.client()
    probe = "_amqpmesh/broker/b1/probe"
    consumer = client.consumer(probe)
    producer = client.producer(probe)
    rig.is_disk_held = True
    number = producer.send("ping")
    assert (producer.outcomes, consumer.bodies) == ({}, [])
    batch = rig.node.take_batch()
    assert batch is not None
    assert batch.has_rows
    rig.store.commit(batch)
    rig.node.on_committed(rig.now)
    rig.run()
    assert (producer.outcomes, consumer.bodies) == ({number: ACCEPTED}, ["ping"])
    rig.crash()
    assert rig.store.load().messages == []


def test_what_is_left_in_a_probe_queue_expires_and_the_queue_goes(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("_amqpmesh/broker/b1/probe")
    producer.send("ping")
    producer.link.close()
    rig.run()
    rig.advance(61)
    assert rig.snapshot().queues == ()


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


def test_mixed_settlement_is_answered_unsettled(rig: Rig) -> None:
    client = rig.client()
    client.producer("orders").send("mixed")
    (received,) = client.consumer("orders", settle_modes=(SEND_MIXED, 0)).received
    received.give(ACCEPTED)
    assert rig.store.load().messages == []
