"""What becomes of an anycast delivery, and of a producer's credit, in every situation; one to three routers apart."""

from __future__ import annotations

import pytest

from mesh_tests.egress import egress_at
from mesh_tests.sim.line import line, one_written_and_one_not, ring
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED

PATH_WAIT_S = 2.0
CAPACITY = 5
LARGE_BYTES = 200_000


def test_a_producer_gets_its_credit_back_as_its_deliveries_are_settled(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver("rpc", credit=1000)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    for _ in range(CAPACITY):
        mesh.send(sender)
    mesh.run(1)
    assert len(receiver.held) == CAPACITY
    assert sender.link.credit <= 1
    receiver.settle()
    mesh.run_until(lambda: not sender.open)
    assert CAPACITY / 2 <= sender.link.credit <= CAPACITY  # a flow for each half, not for each delivery


def test_a_producer_has_no_more_unsettled_than_its_capacity_and_a_float(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver("rpc", credit=1000)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    for _ in range(100):
        if sender.link.credit > 0:
            sender.send(b"x")
        mesh.run(0.01)
    assert len(receiver.held) <= CAPACITY + 1


def test_many_producers_of_a_consumer_that_stopped_send_no_more_than_a_float_each(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=5)
    receiver.accepts = False
    senders = [mesh.client("r1").sender("rpc") for _ in range(10)]
    for _ in range(100):
        for sender in senders:
            while sender.link.credit > 0:
                sender.send(b"x")
        mesh.run(0.01)
    assert len(receiver.messages) == 5
    assert sum(sender.count for sender in senders) <= 5 + len(senders) + 2
    receiver.link.grant(100)
    mesh.run_until(lambda: len(receiver.messages) == sum(sender.count for sender in senders))


def test_a_producer_keeps_its_float_while_the_credit_of_its_consumer_is_used_up(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=1)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    mesh.run(1)
    assert sender.link.credit == 1


# A consumer is lost
@pytest.mark.parametrize("way", ["is lost", "detaches", "closes"])
def test_of_a_consumer_that_goes_what_it_had_is_modified_and_what_it_never_got_is_released(egress: str, way: str):
    mesh, client, sender = one_written_and_one_not(egress)
    (link,) = client.endpoint.links
    {"is lost": lambda: mesh.cut(client.pipe), "detaches": link.detach, "closes": link.close}[way]()
    mesh.run_until(lambda: sender.outcomes.get(2) == MODIFIED_FAILED, 0.1)
    mesh.run_until(lambda: sender.outcomes.get(3) == RELEASED, PATH_WAIT_S + 0.5)


def test_a_message_whose_consumer_is_lost_in_the_middle_of_it_is_released(egress: str):
    mesh = line()
    client = mesh.client(egress)
    receiver = client.receiver("rpc", credit=1)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.begin()
    sender.link.send(bytes(LARGE_BYTES))
    mesh.run_until(lambda: len(receiver.partial) == LARGE_BYTES)
    mesh.cut(client.pipe)
    sender.link.send(bytes(LARGE_BYTES))
    sender.link.finish()
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 1)


def test_what_a_lost_consumer_never_got_waits_for_one_that_comes_in_time(egress: str):
    mesh, client, sender = one_written_and_one_not(egress)
    mesh.cut(client.pipe)
    mesh.run(PATH_WAIT_S / 2)
    late = mesh.client(egress).receiver("rpc")
    mesh.run_until(lambda: sender.outcomes.get(3) == ACCEPTED)
    assert late.messages == [b"unwritten"]


# A router or a connection between routers is lost
@egress_at("r2", "r3")
def test_what_a_lost_router_had_is_in_doubt_and_not_sent_again(egress: str):
    mesh = line()
    lost = mesh.client(egress).receiver("rpc", credit=1)
    lost.accepts = False
    other = mesh.client("r1").receiver("rpc", credit=0)
    sender = mesh.client("r1").sender("rpc")
    number = mesh.send(sender)
    mesh.run_until(lambda: bool(lost.held))
    other.link.grant(10)
    mesh.kill(egress)
    mesh.run_until(lambda: bool(sender.outcomes), 0.1)
    mesh.run(PATH_WAIT_S + 1)
    assert sender.outcomes == {number: MODIFIED_FAILED}
    assert other.messages == []


@egress_at("r2", "r3")
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_while_a_path_is_remade_deliveries_are_held_and_none_is_released(egress: str, address: str):
    mesh = ring()
    receiver = mesh.client(egress).receiver(address, credit=1000)
    sender = mesh.client("r1").sender(address)
    for _ in range(20):
        mesh.send(sender)
    mesh.cut_trunk("r1", "r2") if egress == "r2" else mesh.kill("r2")
    for _ in range(100):
        mesh.send(sender)
        mesh.run(0.001)
    mesh.run_until(lambda: not sender.open)
    outcomes = list(sender.outcomes.values())
    assert RELEASED not in outcomes
    assert outcomes.count(MODIFIED_FAILED) <= 20
    assert len(receiver.messages) >= outcomes.count(ACCEPTED) >= 100


@egress_at("r2", "r3")
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_what_has_no_path_is_held_for_one_that_comes_back_in_time(egress: str, address: str):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=100)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 20)
    mesh.cut_trunk("r1", "r2")
    for _ in range(20):
        sender.send(b"x")  # with credit that r1 took back a moment ago
    mesh.run(PATH_WAIT_S / 2)
    assert not sender.outcomes
    mesh.link("r1", "r2")
    mesh.run_until(lambda: len(receiver.messages) == 20)
    mesh.run_until(lambda: not sender.open)
    assert set(sender.outcomes.values()) == {ACCEPTED}


@egress_at("r2", "r3")
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_what_has_no_path_is_released_after_the_wait_for_one(egress: str, address: str):
    mesh = line()
    mesh.client(egress).receiver(address, credit=100)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 20)
    mesh.cut_trunk("r1", "r2")
    for _ in range(20):
        sender.send(b"x")
    mesh.run(PATH_WAIT_S - 0.1)
    assert not sender.outcomes
    mesh.run(0.2)
    assert list(sender.outcomes.values()) == [RELEASED] * 20


# The last taker leaves
def test_credit_goes_by_flow_when_the_last_taker_leaves_and_nobody_is_drained(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 20)
    receiver.link.close()
    mesh.run_until(lambda: sender.link.credit == 0, 0.1)
    assert not sender.was_drained
    assert sender.error is None


@egress_at("r1", "r2", "r3")
def test_deliveries_that_cross_the_leaving_of_the_last_taker_are_released(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 20)
    receiver.link.close()
    mesh.flush()
    for _ in range(20):
        sender.send(b"x")
    mesh.run_until(lambda: not sender.open, PATH_WAIT_S + 1)
    assert list(sender.outcomes.values()) == [RELEASED] * 20
    assert sender.error is None


def test_what_is_sent_to_a_dynamic_address_whose_consumer_is_lost_is_released(egress: str):
    mesh = line()
    client = mesh.client(egress)
    replies = client.receiver(None, dynamic=True)
    mesh.run_until(lambda: replies.link.is_open)
    sender = mesh.client("r1").sender(replies.link.remote_source.address)
    mesh.send(sender)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    mesh.cut(client.pipe)
    sender.send(b"it crosses")
    mesh.run_until(lambda: not sender.open and sender.link.credit == 0, PATH_WAIT_S + 1)
    assert sender.outcomes == {1: ACCEPTED, 2: RELEASED}


# The producer dies
def test_a_message_whose_producer_dies_in_the_middle_is_aborted_at_the_consumer(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc")
    client = mesh.client("r1")
    sender = client.sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 1)
    sender.begin()
    sender.link.send(bytes(LARGE_BYTES))
    mesh.run_until(lambda: len(receiver.partial) == LARGE_BYTES)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: receiver.aborted == 1)
    after = mesh.client("r1").sender("rpc")
    mesh.send(after, b"after")
    mesh.run_until(lambda: receiver.messages == [b"after"])


def test_the_complete_messages_of_a_producer_that_dies_go_on(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    client = mesh.client("r1")
    sender = client.sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 20)
    for _ in range(20):
        sender.send(b"complete")
    mesh.run(0.0015)  # all at r1
    mesh.cut(client.pipe)
    mesh.run_until(lambda: receiver.messages == [b"complete"] * 20)


def test_what_a_dead_producer_sent_takes_no_room_once_it_is_settled(egress: str):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver("rpc", credit=CAPACITY)
    receiver.accepts = False
    client = mesh.client("r1")
    sender = client.sender("rpc")
    for _ in range(CAPACITY):
        mesh.send(sender)
    mesh.run_until(lambda: len(receiver.held) == CAPACITY)
    mesh.cut(client.pipe)
    receiver.settle()
    receiver.accepts = True
    receiver.link.grant(CAPACITY)
    after = mesh.client("r1").sender("rpc")
    for _ in range(3 * CAPACITY):
        mesh.send(after)
    mesh.run_until(lambda: len(after.outcomes) == 3 * CAPACITY)


# Pre-settled
def test_pre_settled_deliveries_are_held_back_by_credit_and_none_is_lost(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=5)
    receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    for _ in range(100):
        while sender.link.credit > 0:
            sender.send(b"x", settled=True)
        mesh.run(0.01)
    assert len(receiver.messages) == 5
    assert sender.count <= 5 + 3
    receiver.link.grant(1000)
    mesh.run_until(lambda: len(receiver.messages) == sender.count)
    for _ in range(100):
        mesh.send(sender, settled=True)
    mesh.run_until(lambda: len(receiver.messages) == sender.count)
    assert all(receiver.came_settled)


def test_pre_settled_deliveries_that_no_lost_consumer_was_given_reach_another(egress: str):
    mesh = line()
    client = mesh.client(egress)
    lost = client.receiver("rpc", credit=3)
    lost.tops_up = False
    other = mesh.client(egress).receiver("rpc", credit=0)
    sender = mesh.client("r1").sender("rpc")
    for _ in range(4):
        mesh.send(sender, settled=True)
    mesh.run_until(lambda: len(lost.messages) == 3)
    mesh.cut(client.pipe)
    other.link.grant(100)
    mesh.run_until(lambda: len(other.messages) == 1)
    for _ in range(20):
        mesh.send(sender, settled=True)
    mesh.run_until(lambda: len(other.messages) == 21)
