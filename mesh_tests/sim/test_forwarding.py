"""Messages through one to three routers, in virtual time."""

from __future__ import annotations

import pytest
from proton import Message

from mesh_tests.outcomes import EVERY_KIND, outcome_id, told
from mesh_tests.sim.line import end_towards, line, ring
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode
from wire.errors import AmqpError


def test_anycast_reaches_a_consumer_over_any_number_of_hops(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    for index in range(20):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"m%d" % index)
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    assert receiver.messages == [b"m%d" % index for index in range(20)]
    assert set(sender.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_producer_without_taker_gets_no_credit_and_gets_it_when_one_comes(egress: str, address: str):
    mesh = line()
    sender = mesh.client("r1").sender(address)
    mesh.run(1)
    assert sender.link.is_open
    assert sender.link.credit == 0
    mesh.client(egress).receiver(address)
    mesh.run_until(lambda: sender.link.credit > 0)


def test_multicast_reaches_every_consumer_once():
    mesh = line()
    receivers = [mesh.client(router).receiver("prices") for router in ("r1", "r2", "r3", "r3")]
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit >= 5)
    for index in range(5):
        sender.send(b"p%d" % index)
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    assert all(receiver.messages == [b"p%d" % index for index in range(5)] for receiver in receivers)


@pytest.mark.parametrize("outcome", EVERY_KIND, ids=outcome_id)
def test_every_outcome_reaches_the_producer_unchanged(egress: str, outcome: Outcome):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc")
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(outcome)
    mesh.run_until(lambda: not sender.open)
    assert told(sender.outcomes[1]) == told(outcome)


def test_written_deliveries_of_a_consumer_that_dies_are_in_doubt(egress: str):
    mesh = line()
    client = mesh.client(egress)
    receiver = client.receiver("rpc")
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(b"x")
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1] == MODIFIED_FAILED


@pytest.mark.parametrize(("address", "kind"), [("rpc", OutcomeCode.MODIFIED), ("again", OutcomeCode.ACCEPTED)])
def test_deliveries_through_a_router_that_stops_in_order_are_in_doubt_unless_sent_again(
    address: str, kind: OutcomeCode
):
    mesh = ring()
    receiver = mesh.client("r3").receiver(address)
    receiver.accepts = False
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.send(sender, Message(body="x").encode())
    mesh.run_until(lambda: len(receiver.held) == 1)
    transit, *others = [name for name in ("r2", "r4") if mesh.routers[name].snapshot().transit_circuits]
    assert others == []
    receiver.accepts = True
    for neighbor in ("r1", "r3"):
        end_towards(mesh, transit, neighbor).close(AmqpError("amqp:connection:forced", f"{transit} shuts down"))
    mesh.run_until(lambda: 1 in sender.outcomes)
    assert sender.outcomes[1].kind is kind


def test_credit_stops_with_the_consumer_and_no_more_than_promised_is_held(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=5)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    sent = 0
    for _ in range(200):
        mesh.run(0.01)
        while sender.link.credit > 0:
            sender.send(b"x")
            sent += 1
    assert len(receiver.messages) == 5
    assert sent <= 5 + 3


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_last_consumer_leaving_takes_the_credit_back(egress: str, address: str):
    mesh = line()
    receiver = mesh.client(egress).receiver(address)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    receiver.link.close()
    mesh.run_until(lambda: sender.link.credit == 0)


def test_a_dynamic_reply_address_is_reached_from_any_router(egress: str):
    mesh = line()
    replies = mesh.client(egress).receiver(None, dynamic=True)
    mesh.run_until(lambda: replies.link.is_open)
    address = replies.link.remote_source.address
    assert address.startswith("amqp:/_topo/0/")
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(b"answer")
    mesh.run_until(lambda: replies.messages == [b"answer"])


def test_an_anonymous_sender_names_an_address_in_each_message(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc")
    prices = mesh.client(egress).receiver("prices")
    sender = mesh.client("r1").sender(None)
    mesh.run(0.5)  # r1 has heard of both
    one, other = Message(address="rpc", body="a").encode(), Message(address="prices", body="b").encode()
    sender.send(one)
    sender.send(other)
    unknown = sender.send(Message(address="nowhere", body="c").encode())
    mesh.run_until(lambda: len(sender.outcomes) == 3)
    assert receiver.messages == [one]
    assert prices.messages == [other]
    assert sender.outcomes[unknown].kind is OutcomeCode.REJECTED
    assert sender.outcomes[unknown].error.condition == "amqp:not-found"


def test_an_anonymous_message_without_taker_is_released():
    mesh = line()
    sender = mesh.client("r1").sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(Message(address="rpc", body="a").encode())
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[1] == RELEASED


def test_a_large_message_streams_through(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    body = bytes(range(256)) * 8192
    sender.send(body)
    sender.send(b"after")
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    assert [len(message) for message in receiver.messages] == [len(body), 5]
    assert receiver.messages[0] == body


def test_balanced_spreads_over_consumers_by_what_each_has_outstanding():
    mesh = line()
    receivers = [mesh.client(router).receiver("rpc", credit=100) for router in ("r1", "r1", "r3")]
    for receiver in receivers:
        receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run(1)  # the circuit to r3 is up
    for _ in range(90):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"x")
    mesh.run_until(lambda: sum(len(receiver.messages) for receiver in receivers) == 90)
    assert all(len(receiver.messages) >= 28 for receiver in receivers)


def test_closest_prefers_the_local_consumer():
    mesh = line()
    here = mesh.client("r1").receiver("near", credit=100)
    there = mesh.client("r3").receiver("near", credit=100)
    sender = mesh.client("r1").sender("near")
    for _ in range(20):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"x")
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    assert (len(here.messages), len(there.messages)) == (20, 0)


def test_pre_settled_deliveries_arrive_and_credit_returns(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=1000)
    sender = mesh.client("r1").sender("rpc")
    for _ in range(400):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"x", settled=True)
    mesh.run_until(lambda: len(receiver.messages) == 400)


def test_traffic_finds_another_path_when_the_transit_router_dies():
    mesh = ring()
    receiver = mesh.client("r3").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(b"before")
    mesh.run_until(lambda: len(sender.outcomes) == 1)
    mesh.kill("r2")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(b"after")
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    assert receiver.messages == [b"before", b"after"]


def test_a_large_multicast_streams_to_all_beside_small_ones():
    mesh = line()
    receivers = [mesh.client(router).receiver("prices") for router in ("r1", "r2", "r3")]
    one, other = mesh.client("r1").sender("prices"), mesh.client("r1").sender("prices")
    mesh.run_until(lambda: one.link.credit > 1 and other.link.credit > 0)
    body = bytes(range(256)) * 24576  # more than any window holds
    half = one.link.start(b"large")
    one.open[half] = 1
    for start in range(0, len(body), 65536):
        mesh.run_until(lambda: one.link.is_writable)
        one.link.send(body[start : start + 65536])
        mesh.flush()
    other.send(b"small")
    one.link.finish()
    mesh.run_until(lambda: bool(one.outcomes) and bool(other.outcomes))
    assert all(sorted(receiver.messages, key=len) == [b"small", body] for receiver in receivers)


def test_a_large_multicast_whose_producer_dies_is_aborted_everywhere():
    mesh = line()
    receivers = [mesh.client(router).receiver("prices") for router in ("r1", "r2", "r3")]
    client = mesh.client("r1")
    sender = client.sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.link.start(b"large")
    sender.link.send(bytes(200_000))
    mesh.run(1)
    mesh.cut(client.pipe)
    after = mesh.client("r2").sender("prices")
    mesh.run_until(lambda: after.link.credit > 0)
    after.send(b"after")
    mesh.run_until(lambda: all(receiver.messages == [b"after"] for receiver in receivers))


def test_a_multicast_goes_on_without_a_consumer_that_stands_still():
    mesh = line()
    moving = mesh.client("r3").receiver("prices", credit=100)
    still = mesh.client("r2").receiver("prices", credit=1)
    still.accepts = False
    sender = mesh.client("r1").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0)
    for _ in range(3):
        mesh.run_until(lambda: sender.link.credit > 0, 15)
        sender.send(b"x")
    mesh.run_until(lambda: len(moving.messages) == 3, 15)
    assert len(still.messages) == 1


@pytest.mark.parametrize("producer_at", ["r1", "r2", "r3"])
@pytest.mark.parametrize("stranger_at", ["r1", "r2", "r3"])
@pytest.mark.parametrize(("capability", "copies"), [("temporary-queue", 1), ("temporary-topic", 3)])
def test_who_knows_the_address_of_a_dynamic_target_receives_from_it_at_any_router(
    capability: str, copies: int, stranger_at: str, producer_at: str
):
    mesh = line()
    client = mesh.client("r3")
    maker = client.sender(None, is_dynamic=True, capabilities=(capability,))
    mesh.run_until(lambda: maker.link.is_open)
    address = maker.link.remote_target.address
    stranger = mesh.client(stranger_at).receiver(address)
    mesh.run(0.5)
    sender = mesh.client(producer_at).sender(address)
    for each in (maker, sender):
        mesh.send(each, b"to the stranger alone")
    mesh.run_until(lambda: len(stranger.messages) == 2)
    consumers = [client.receiver(address), client.receiver(address)]
    mesh.run(0.5)
    for _ in range(6):
        mesh.send(sender)
    mesh.run_until(lambda: len(sender.outcomes) == 7)
    mesh.run(0.1)
    assert sum(len(consumer.messages) for consumer in [stranger, *consumers]) == 2 + 6 * copies
    assert set(sender.outcomes.values()) | set(maker.outcomes.values()) == {ACCEPTED}


@pytest.mark.parametrize(("capability", "copies"), [("temporary-queue", 1), ("temporary-topic", 2)])
def test_a_dynamic_source_stays_closed_to_others(capability: str, copies: int):
    mesh = line()
    client = mesh.client("r3")
    maker = client.receiver(None, dynamic=True, capabilities=(capability,))
    mesh.run_until(lambda: maker.link.is_open)
    address = maker.link.remote_source.address
    stranger = mesh.client("r3").receiver(address)
    second = client.receiver(address)
    mesh.run(0.5)
    assert stranger.error.condition == "amqp:unauthorized-access"
    sender = mesh.client("r1").sender(address)
    for _ in range(6):
        mesh.send(sender)
    mesh.run_until(lambda: len(sender.outcomes) == 6)
    mesh.run(0.1)
    assert len(maker.messages) + len(second.messages) == 6 * copies


def test_a_producer_to_a_dynamic_target_without_consumers_hears_so():
    mesh = line()
    client = mesh.client("r3")
    maker = client.sender(None, is_dynamic=True)
    mesh.run_until(lambda: maker.link.is_open)
    address = maker.link.remote_target.address
    stranger = mesh.client("r1")
    stranger.receiver(address)
    mesh.run(0.5)
    mesh.cut(stranger.pipe)
    mesh.run(0.5)
    late = mesh.client("r3", "late").sender(address)
    mesh.run_until(lambda: late.error is not None)
    assert late.error.condition == "amqp:not-found"


def test_a_multicast_loses_no_copy_when_another_consumer_joins():
    mesh = line()
    first = mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    for index in range(60):
        mesh.run_until(lambda: sender.link.credit > 0)
        sender.send(b"%d" % index, settled=True)
        if index == 20:
            mesh.client("r2").receiver("prices", credit=1000)
        mesh.run(0.002)
    mesh.run_until(lambda: len(first.messages) == 60)


def test_what_a_circuit_brought_for_a_consumer_that_left_is_given_back():
    mesh = line()
    far = mesh.client("r3").receiver("rpc", credit=1)
    far.accepts = False
    sender = mesh.client("r1").sender("rpc")
    other = mesh.client("r3").sender("rpc")  # so that r3 has circuits of its own, besides
    near = mesh.client("r2").receiver("rpc", credit=0)
    mesh.run(0.5)
    for _ in range(3):
        if sender.link.credit > 0:
            sender.send(b"x")
        mesh.run(0.2)
    far.link.close()
    near.link.grant(100)
    mesh.run(5)
    assert other.link.credit > 0
    assert len(sender.outcomes) == sender.count


def test_the_last_taker_has_left_though_a_large_message_had_a_circuit_of_its_own():
    mesh = line(2)
    client = mesh.client("r2")
    client.receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, bytes(200_000))
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.cut(client.pipe)
    mesh.run_until(lambda: sender.link.credit == 0, 1.0)
