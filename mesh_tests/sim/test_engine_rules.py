"""Do routers keep the engine's rules where breaking one shows only later? All: unit/wire/test_engine_rules.py."""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line
from router.forwarding import ties
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode

HALF_BYTES = 150_000
TIMES = 40
"""With 150 kB each, more than a session's window of 4 MiB."""


# 1
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_messages_that_are_refused_halfway_leave_the_windows_whole(egress: str, address: str):
    mesh = line()
    consumer = mesh.client(egress)
    sender = mesh.client("r1").sender(address)
    for _ in range(TIMES):
        receiver = consumer.receiver(address)
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.begin()
        sender.link.send(bytes(HALF_BYTES))
        mesh.run_until(lambda each=receiver: len(each.partial) == HALF_BYTES)
        receiver.link.close()
        mesh.run_until(lambda each=receiver: each.link.is_gone)
        sender.link.send(bytes(HALF_BYTES))
        sender.link.finish()
        mesh.run_until(lambda: not sender.open)
    assert {outcome.kind for outcome in sender.outcomes.values()} <= {OutcomeCode.MODIFIED, OutcomeCode.RELEASED}
    receiver = consumer.receiver(address)
    mesh.send(sender, bytes(4 * HALF_BYTES))
    mesh.run_until(lambda: sender.outcomes.get(sender.count) == ACCEPTED)
    assert [len(message) for message in receiver.messages] == [4 * HALF_BYTES]


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_messages_that_are_aborted_halfway_leave_the_windows_whole(egress: str, address: str):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=1000)
    sender = mesh.client("r1").sender(address)
    for count in range(1, TIMES + 1):
        mesh.run_until(lambda: sender.link.credit > 0)
        delivery = sender.begin()
        sender.link.send(bytes(HALF_BYTES))
        mesh.run_until(lambda: len(receiver.partial) == HALF_BYTES)
        sender.abort(delivery)
        mesh.run_until(lambda expected=count: receiver.aborted == expected)
    mesh.send(sender, bytes(4 * HALF_BYTES))
    mesh.run_until(lambda: sender.outcomes.get(sender.count) == ACCEPTED)
    assert [len(message) for message in receiver.messages] == [4 * HALF_BYTES]


# 7
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("lost", ["consumer", "producer", "nobody"])
def test_no_delivery_stays_tied_when_all_are_settled(egress: str, address: str, lost: str):
    before = ties.count()
    mesh = line()
    consumer, producer = mesh.client(egress), mesh.client("r1")
    receiver = consumer.receiver(address, credit=100)
    receiver.accepts = False
    sender = producer.sender(address)
    for index in range(20):
        mesh.send(sender, bytes(index * 10_000), settled=index % 5 == 0)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert ties.count() > before
    receiver.settle(RELEASED)
    if lost != "nobody":
        mesh.cut(consumer.pipe if lost == "consumer" else producer.pipe)
    mesh.run_until(lambda: ties.count() == before, 3)
