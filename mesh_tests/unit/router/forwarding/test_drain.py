"""A consumer asks to use or give back its credit: who is asked before it is answered? Spec: AMQP 1.0 [2.6.7]."""

from __future__ import annotations

from mesh_tests.unit.router.forwarding.rig import Consumer, Producer, Rig


def drain(rig: Rig, consumer: Consumer, credit: int) -> None:
    consumer.link.request_drain(credit)
    rig.run()


def is_answered(consumer: Consumer) -> bool:
    return not consumer.link.is_drain_pending


def asked(*brokers: Producer) -> list[bool]:
    """Which of them are asked to use their credit or give it back."""
    return [broker.link.is_draining and broker.link.credit > 0 for broker in brokers]


def test_with_nothing_to_send_it_is_answered_at_once(rig: Rig):
    group = rig.anycast()
    rig.producer(group)
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    assert is_answered(consumer)
    assert consumer.link.credit == 0


def test_what_waits_comes_before_the_answer(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group, credit=0), rig.producer(group)
    producer.send(b"1")
    rig.run()
    drain(rig, consumer, 5)
    assert consumer.messages == [b"1"]
    assert is_answered(consumer)


def test_a_taker_has_no_credit_after_its_drain_and_gets_more_by_a_grant(rig: Rig):
    group = rig.anycast()
    consumer, producer = rig.consumer(group, credit=0), rig.producer(group)
    drain(rig, consumer, 5)
    assert consumer.taker.credit == 0
    producer.send(b"1")
    rig.run()
    assert consumer.messages == []
    consumer.link.end_drain()
    consumer.link.grant(1)
    rig.run()
    assert consumer.messages == [b"1"]


def test_brokers_are_asked_one_after_the_other(rig: Rig):
    group = rig.anycast(phase=1)
    brokers = [rig.producer(group) for _ in range(3)]
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    for left in (2, 1, 0):
        assert not is_answered(consumer)
        assert asked(*brokers).count(True) == 1
        brokers[asked(*brokers).index(True)].link.drained()
        rig.run()
        assert asked(*brokers).count(True) == (left > 0)
    assert is_answered(consumer)


def test_no_other_broker_is_asked_once_the_credit_is_used_up(rig: Rig):
    group = rig.anycast(phase=1)
    brokers = [rig.producer(group) for _ in range(2)]
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 1)
    first = brokers[asked(*brokers).index(True)]
    first.send(b"the last")
    rig.run()
    assert consumer.messages == [b"the last"]
    assert is_answered(consumer)
    assert asked(*brokers).count(True) == 0


def test_a_broker_that_is_lost_is_not_waited_for(rig: Rig):
    group = rig.anycast(phase=1)
    brokers = [rig.producer(group) for _ in range(2)]
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    lost = brokers[asked(*brokers).index(True)]
    other = brokers[1 - brokers.index(lost)]
    rig.cut(lost.connection)
    assert asked(other) == [True]
    other.link.drained()
    rig.run()
    assert is_answered(consumer)


def test_when_the_consumer_is_lost_the_broker_is_used_as_before(rig: Rig):
    group = rig.anycast(phase=1)
    broker = rig.producer(group)
    consumer, other = rig.consumer(group, credit=0), rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    assert asked(broker) == [True]
    rig.cut(consumer.connection)
    assert not broker.inlet.is_draining
    broker.link.drained()  # its answer comes too late for anybody
    other.link.grant(5)
    rig.run()
    broker.send(b"1")
    rig.run()
    assert other.messages == [b"1"]


def test_a_broker_that_gave_credit_back_while_its_messages_waited_gets_as_much_again(rig: Rig):
    group = rig.anycast(phase=1)
    broker, consumer = rig.producer(group), rig.consumer(group, credit=0)
    consumer.connection.is_stalled = True
    drain(rig, consumer, 5)
    broker.send(bytes(200_000), b"waits behind it")
    broker.link.drained()
    rig.run()
    assert broker.inlet.is_waiting
    consumer.connection.is_stalled = False
    rig.run()
    assert len(consumer.messages) == 2
    assert is_answered(consumer)
    consumer.answer()
    consumer.link.end_drain()
    consumer.link.grant(5)
    rig.run()
    assert broker.link.credit == 5


def test_what_feeds_an_anycast_from_its_queue_is_not_asked(rig: Rig):
    group = rig.anycast(phase=0)
    producer = rig.producer(group)
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    assert asked(producer) == [False]
    assert is_answered(consumer)


def test_it_waits_for_brokers_that_are_still_to_come(rig: Rig):
    rig.has_all_brokers = False
    group = rig.anycast(phase=1)
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    assert not is_answered(consumer)
    broker = rig.producer(group)
    rig.run()
    assert asked(broker) == [True]
    rig.has_all_brokers = True
    broker.link.drained()
    rig.run()
    assert is_answered(consumer)


def test_it_does_not_wait_for_ever_for_brokers_that_do_not_come(rig: Rig):
    rig.has_all_brokers = False
    consumer = rig.consumer(rig.anycast(phase=1), credit=0)
    drain(rig, consumer, 5)
    rig.advance(rig.settings.path_wait_s - 0.1)
    assert not is_answered(consumer)
    rig.advance(0.2)
    assert is_answered(consumer)


def test_a_broker_in_the_middle_of_its_last_message_is_waited_for(rig: Rig):
    group = rig.anycast(phase=1)
    brokers = [rig.producer(group) for _ in range(2)]
    consumer = rig.consumer(group, credit=0)
    drain(rig, consumer, 1)
    first = brokers[asked(*brokers).index(True)]
    other = brokers[1 - brokers.index(first)]
    first.begin(b"half ")
    rig.run()
    assert not is_answered(consumer)
    assert asked(other) == [False]
    first.link.send(b"and half")
    first.link.finish()
    rig.run()
    assert consumer.messages == [b"half and half"]
    assert is_answered(consumer)


def test_what_comes_over_a_stream_beside_a_circuit_comes_before_the_answer(rig: Rig):
    group = rig.anycast(phase=1)
    circuit, stream = (rig.producer(group, is_circuit=True) for _ in range(2))
    stream.inlet.is_stream = True
    consumer = rig.consumer(group, credit=0)
    stream.begin(b"half ")
    drain(rig, consumer, 5)
    circuit.link.drained()
    rig.run()
    assert not is_answered(consumer)
    stream.link.send(b"and half")
    stream.link.finish()
    rig.run()
    assert consumer.messages == [b"half and half"]
    assert is_answered(consumer)


def test_the_time_of_a_drain_that_is_over_ends_no_later_one(rig: Rig):
    group = rig.anycast(phase=1)
    broker, consumer = rig.producer(group), rig.consumer(group, credit=0)
    drain(rig, consumer, 5)
    broker.link.drained()
    rig.run()
    assert is_answered(consumer)
    rig.advance(rig.settings.path_wait_s - 0.5)
    rig.has_all_brokers = False
    consumer.link.end_drain()
    drain(rig, consumer, 5)
    broker.link.drained()
    rig.advance(1.0)
    assert not is_answered(consumer)
    rig.advance(rig.settings.path_wait_s)
    assert is_answered(consumer)


def test_a_producer_is_asked_no_longer_once_the_last_consumer_that_drained_is_lost(rig: Rig):
    group = rig.anycast()
    consumers = [rig.consumer(group, credit=1) for _ in range(2)]
    producer = rig.producer(group, is_circuit=True)
    for consumer in consumers:
        drain(rig, consumer, 5)
    for consumer, is_asked in zip(consumers, (True, False), strict=True):
        rig.cut(consumer.connection)
        assert producer.inlet.is_draining == is_asked
