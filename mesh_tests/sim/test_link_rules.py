"""Do links keep AMQP's rules: drain, reduced credit, sizes, aborts, windows, names? One to three routers. [2.6]"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED, MODIFIED_FAILED

CAPACITY = 5
FRAME_BYTES = 16384
WINDOW_FRAMES = 4
LARGE_BYTES = 200_000
MANY = 2000


def send_what_credit_allows(mesh: SimMesh, senders: list[SimSender], seconds: float) -> None:
    end = mesh.now + seconds
    while mesh.now < end:
        for sender in senders:
            while sender.link.credit > 0:
                sender.send(b"x")
        mesh.run(0.01)


# Drain [2.6.7]
def test_a_drain_brings_what_waits_and_gives_the_rest_of_the_credit_back(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    receiver.tops_up = False
    senders = [mesh.client(egress).sender("rpc") for _ in range(3)]
    for sender in senders:
        mesh.send(sender)
    mesh.run(0.1)
    receiver.link.request_drain(10)
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
    assert len(receiver.messages) == 3
    assert receiver.link.credit == 0


def test_a_drain_is_answered_while_producers_go_on(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    for count in range(1, 6):
        send_what_credit_allows(mesh, [sender], 0.1)
        receiver.link.request_drain(100)
        mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
        assert receiver.link.credit == 0
        receiver.link.end_drain()
        assert len(receiver.messages) <= 100 * count
    receiver.link.grant(1000)
    mesh.run_until(lambda: len(receiver.messages) == sender.count)


def test_a_drain_without_anything_to_bring_is_answered_and_credit_granted_later_counts(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    mesh.run_until(lambda: receiver.link.is_open)
    receiver.link.request_drain(10)
    mesh.run_until(lambda: not receiver.link.is_drain_pending, 1)
    receiver.link.end_drain()
    sender = mesh.client("r1").sender("rpc")
    receiver.link.grant(10)
    for _ in range(20):
        mesh.send(sender)
    mesh.run_until(lambda: len(sender.outcomes) == 20)


# Credit that the consumer takes back
@pytest.mark.parametrize("left", [0, 5])
def test_a_consumer_that_reduces_its_credit_gets_no_more_than_that(egress: str, left: int):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    receiver.tops_up = False
    senders = [mesh.client("r1").sender("rpc") for _ in range(3)]
    send_what_credit_allows(mesh, senders, 0.01)
    receiver.link.set_credit(left)
    mesh.run(0.01)
    assert receiver.link.excess <= 0
    before = len(receiver.messages)
    send_what_credit_allows(mesh, senders, 1)
    assert len(receiver.messages) <= before + left
    assert receiver.link.credit == 0
    receiver.tops_up = True
    receiver.link.grant(10)
    mesh.run_until(lambda: len(receiver.messages) == sum(sender.count for sender in senders))


def test_credit_that_is_reduced_and_granted_over_and_over_is_never_exceeded(egress: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=0)
    receiver.tops_up = False
    sender = mesh.client("r1").sender("rpc")
    for credit in (10, 0, 7, 1, 50, 2, 0, 30) * 5:
        receiver.link.set_credit(credit)
        send_what_credit_allows(mesh, [sender], 0.02)
        assert receiver.link.excess <= 0
    receiver.link.set_credit(1000)
    mesh.run_until(lambda: len(receiver.messages) == sender.count)
    assert list(sender.outcomes.values()) == [ACCEPTED] * sender.count


# Sizes
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_consumer_gets_no_larger_message_than_it_takes(egress: str, address: str):
    mesh = line()
    receiver = mesh.client(egress).receiver(address, max_message_bytes=1000)
    sender = mesh.client("r1").sender(address)
    for size in (1000, 1001, 1000):
        mesh.send(sender, bytes(size))
    mesh.run_until(lambda: not sender.open)
    assert [len(message) for message in receiver.messages] == [1000, 1000]


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES, 65535, 65536, 65537, 1 << 20])
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_a_message_of_any_size_arrives_whole(egress: str, address: str, size: int, settled: bool):
    mesh = line()
    receiver = mesh.client(egress).receiver(address)
    sender = mesh.client("r1").sender(address)
    body = bytes(index % 251 for index in range(size))
    mesh.send(sender, body, settled=settled)
    mesh.run_until(lambda: receiver.messages == [body])
    assert receiver.came_settled == [settled]
    mesh.run_until(lambda: sender.outcomes == ({} if settled else {1: ACCEPTED}))


# Aborts [2.6.14]
@pytest.mark.parametrize("address", ["rpc", "prices"])
@pytest.mark.parametrize("size", [0, 10, FRAME_BYTES, LARGE_BYTES], ids=lambda size: f"{size} bytes")
def test_what_is_aborted_reaches_nobody_and_costs_no_credit_for_good(egress: str, address: str, size: int):
    mesh = line(listener={"link_capacity": CAPACITY})
    receiver = mesh.client(egress).receiver(address, credit=100)
    sender = mesh.client("r1").sender(address)
    for _ in range(3 * CAPACITY):
        mesh.run_until(lambda: sender.link.credit > 0)
        delivery = sender.begin()
        if size:
            sender.link.send(bytes(size))
        mesh.run(0.01)
        sender.abort(delivery)
        mesh.send(sender, b"whole")
    mesh.run_until(lambda: not sender.open)
    assert receiver.messages == [b"whole"] * 3 * CAPACITY
    assert list(sender.outcomes.values()) == [ACCEPTED] * 3 * CAPACITY


# Session windows [2.5.6]
def test_a_consumer_that_does_not_read_is_sent_no_more_than_its_window_and_others_go_on(egress: str):
    mesh = line()
    client = mesh.client(egress, window_frames=WINDOW_FRAMES)
    still = client.receiver("rpc", credit=100)
    still.reads = False
    sender = mesh.client("r1").sender("rpc")
    body = bytes(FRAME_BYTES // 2)
    for _ in range(20):
        mesh.send(sender, body)
    mesh.run(1)
    assert 0 < still.link.queued * len(body) <= WINDOW_FRAMES * FRAME_BYTES
    moving = mesh.client(egress).receiver("rpc")
    for _ in range(20):
        mesh.send(sender, body)
    mesh.run_until(lambda: len(moving.messages) >= 10)
    client.resume(still)
    mesh.run_until(lambda: not sender.open)
    assert len(still.messages) + len(moving.messages) == 40


def test_a_message_larger_than_any_window_waits_for_its_reader_and_arrives_whole(egress: str):
    mesh = line()
    client = mesh.client(egress, window_frames=WINDOW_FRAMES)
    receiver = client.receiver("rpc")
    receiver.reads = False
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    body = bytes(index % 251 for index in range(2 * LARGE_BYTES))
    sender.send(body)
    mesh.run(1)
    assert not sender.outcomes
    client.resume(receiver)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})
    assert receiver.messages == [body]


# Names and re-attaching [2.6.1], [2.6.3]
@pytest.mark.parametrize("way", ["closed", "detached"])
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_name_is_used_again_after_its_link_was(egress: str, address: str, way: str):
    mesh = line()
    taking, making = mesh.client(egress), mesh.client("r1")
    for _ in range(10):
        receiver = taking.receiver(address, name="same")
        sender = making.sender(address, name="same")
        mesh.send(sender)
        mesh.run_until(lambda link=sender: link.outcomes == {1: ACCEPTED})
        for each in (receiver, sender):
            each.link.close() if way == "closed" else each.link.detach()
        mesh.run_until(lambda pair=(receiver, sender): all(each.link.is_gone for each in pair))
        assert len(receiver.messages) == 1


@pytest.mark.parametrize("way", ["closed", "detached"])
def test_a_consumer_that_leaves_with_deliveries_and_comes_back_gets_only_new_ones(egress: str, way: str):
    mesh = line()
    client = mesh.client(egress)
    receiver = client.receiver("rpc", name="same")
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.link.close() if way == "closed" else receiver.link.detach()
    mesh.run_until(lambda: sender.outcomes == {1: MODIFIED_FAILED})
    mesh.run_until(lambda: receiver.link.is_gone)
    again = client.receiver("rpc", name="same")
    mesh.send(sender, b"new")
    mesh.run_until(lambda: sender.outcomes.get(2) == ACCEPTED)
    assert again.messages == [b"new"]


@pytest.mark.parametrize("way", ["closed", "detached"])
def test_what_a_producer_sent_before_it_left_arrives_and_it_may_come_back(egress: str, way: str):
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=100)
    client = mesh.client("r1")
    for _ in range(10):
        sender = client.sender("rpc", name="same")
        mesh.run_until(lambda link=sender.link: link.credit > 2)
        for _ in range(3):
            sender.send(b"x")
        sender.link.close() if way == "closed" else sender.link.detach()
        mesh.run_until(lambda link=sender.link: link.is_gone)
    mesh.run_until(lambda: len(receiver.messages) == 30)


def test_two_thousand_links_in_one_session_all_pass_messages(egress: str):
    mesh = line()
    making, taking = mesh.client("r1"), mesh.client(egress)
    receivers = [taking.receiver(f"work.{number % 200}", credit=20) for number in range(MANY)]
    senders = [making.sender(f"work.{number % 200}") for number in range(MANY)]
    mesh.run_until(lambda: all(sender.link.credit > 0 for sender in senders))
    for sender in senders:
        sender.send(b"x")
    mesh.run_until(lambda: all(sender.outcomes == {1: ACCEPTED} for sender in senders))
    assert sum(len(receiver.messages) for receiver in receivers) == MANY
    for each in (*senders, *receivers):
        each.link.close()
    mesh.run_until(lambda: all(each.link.is_gone for each in (*senders, *receivers)))
    assert making.sender("rpc", name="s1").link.endpoint.session_count == 1
