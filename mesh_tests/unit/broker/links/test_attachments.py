"""Which addresses may be attached to, and which queues come and go with those who use them?"""

import pytest

from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.rig import Producer, Rig
from wire import terminus
from wire.delivery import ACCEPTED, OutcomeCode
from wire.message import selector_filter
from wire.terminus import Durability, Expiry, TerminusType


def test_an_anonymous_producer_names_the_address_in_each_message(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer(None)
    producer.send("here", to="orders")
    wrong = producer.send("nowhere", to="unknown")
    assert client.consumer("orders").bodies == ["here"]
    outcome = producer.outcomes[wrong]
    assert outcome is not None
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:not-found"


def test_a_message_to_an_address_with_wildcards_is_rejected(rig: Rig) -> None:
    client = rig.client()
    subscriber = client.consumer("news.#")
    producer = client.producer(None)
    number = producer.send("to all?", to="news.#")
    outcome = producer.outcomes[number]
    assert outcome is not None
    assert outcome.kind is OutcomeCode.REJECTED
    assert outcome.error is not None
    assert outcome.error.condition == "amqp:not-allowed"
    assert outcome.error.description == "cannot send to 'news.#': expected an address without wildcards"
    assert subscriber.bodies == []


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


@pytest.mark.parametrize(("address", "is_kept"), [("orders", False), ("news.#", True)])
def test_only_a_topic_is_said_to_keep_a_source_beyond_its_link(rig: Rig, address: str, is_kept: bool) -> None:
    consumer = rig.client().consumer(address, durability=Durability.UNSETTLED_STATE, expiry=Expiry.NEVER)
    assert consumer.link.remote_source.address == address
    assert consumer.link.remote_source.outlives_link is is_kept


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
    assert held_by(rig.store.load()).queues == []


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
    assert held_by(rig.store.load()).messages == []


def test_what_is_left_in_a_probe_queue_expires_and_the_queue_goes(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("_amqpmesh/broker/b1/probe")
    producer.send("ping")
    producer.link.close()
    rig.run()
    rig.advance(61)
    assert rig.snapshot().queues == ()


def test_a_temporary_queue_goes_with_all_its_messages_however_many(rig: Rig) -> None:
    client = rig.client()
    consumer = client.consumer(None, credit=0, is_dynamic=True)
    producer = rig.client().producer(consumer.link.remote_source.address)
    for body in range(2500):
        producer.send(body, is_settled=True)
    client.vanish()
    rig.run()
    deadline = rig.node.next_deadline()
    assert deadline is None or deadline > rig.now, "nothing of the queue is left to be dropped"
