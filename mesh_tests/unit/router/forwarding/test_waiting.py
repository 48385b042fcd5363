"""Which of the senders that wait for a consumer are looked at, and when?"""

from __future__ import annotations

from mesh_tests.unit.router.forwarding.rig import Rig
from wire.delivery import OutcomeCode

SMALL, LARGE = b"s" * 100, b"L" * 5000
SENDERS = 5


def test_senders_that_wait_get_one_credit_each_in_turn_when_credits_come_one_by_one(rig: Rig):
    group = rig.anycast()
    consumer = rig.consumer(group, credit=0)
    producers = [rig.producer(group) for _ in range(SENDERS)]
    for number in range(3):
        for name, producer in enumerate(producers):
            producer.send(b"%d %d" % (name, number))
            rig.run()
            if number == 0:
                continue
            consumer.link.grant(1)
            rig.run()
            consumer.answer()
            rig.run()
    while len(consumer.messages) < 3 * SENDERS:
        consumer.link.grant(1)
        rig.run()
        consumer.answer()
        rig.run()
    names = [message.split()[0] for message in consumer.messages]
    assert all(set(names[at : at + SENDERS]) == set(names) for at in range(0, 3 * SENDERS, SENDERS))
    for name in range(SENDERS):
        assert [m for m in consumer.messages if m.startswith(b"%d " % name)] == [b"%d %d" % (name, n) for n in range(3)]


def test_a_message_too_large_for_the_consumers_left_is_refused_though_none_of_them_has_credit(rig: Rig):
    group = rig.anycast()
    wide, narrow = rig.consumer(group, credit=0), rig.consumer(group, credit=0, max_message_bytes=1000)
    first, second = (rig.producer(group, max_message_bytes=100_000) for _ in range(2))
    first.send(SMALL)
    second.send(LARGE)
    rig.run()
    assert not first.outcomes
    assert not second.outcomes
    group.on_taker_left(wide.taker, True, None)
    rig.run()
    assert [outcome.kind for _, outcome in second.outcomes] == [OutcomeCode.REJECTED]
    assert not first.outcomes
    narrow.link.grant(1)
    rig.run()
    assert narrow.messages == [SMALL]
