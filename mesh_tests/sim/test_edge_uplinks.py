"""The active uplink is lost: everything goes on over the next one, nothing is lost and nothing comes twice unasked."""

from __future__ import annotations

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edges import with_edges
from mesh_tests.sim.test_edge_rows import message_to
from wire.delivery import ACCEPTED, OutcomeCode

MESSAGE = b"\x00\x53\x77\xa1\x01x"


def uplink(mesh: SimMesh, edge: str = "e1") -> str | None:
    return mesh.routers[edge].snapshot().active_uplink


def lose(mesh: SimMesh, how: str, edge: str = "e1") -> None:
    """The active uplink of ``edge``: its connection drops, falls silent, or its router dies."""
    active = uplink(mesh, edge)
    assert active is not None
    if how == "dies":
        mesh.kill(active)
    elif how == "drops":
        mesh.cut_trunk(edge, active)
    else:
        mesh.cut(mesh.trunks[frozenset({edge, active})], silently=True)
        mesh.run(3.1)


LOSSES = ["dies", "drops", "falls silent"]


@pytest.mark.parametrize("how", LOSSES)
def test_the_next_uplink_is_active_at_once(how: str):
    mesh = with_edges()
    lose(mesh, how)
    mesh.run(0.001)
    assert uplink(mesh) == "r2"
    mesh.run(0.1)
    assert mesh.routers["r2"].snapshot().edges == ("e1",)


@pytest.mark.parametrize("how", LOSSES)
def test_producers_and_consumers_go_on_over_the_next_uplink(how: str):
    mesh = with_edges()
    at_edge = mesh.client("e1").receiver("rpc", credit=100)
    at_other = mesh.client("e3").receiver("work.x", credit=100)
    to_edge, from_edge = mesh.client("e3").sender("rpc"), mesh.client("e1").sender("work.x")
    for sender in (to_edge, from_edge):
        mesh.send(sender, b"before")
    mesh.run(0.5)
    lose(mesh, how)
    mesh.run(0.2)
    for sender in (to_edge, from_edge):
        mesh.send(sender, b"after")
    mesh.run(0.5)
    assert at_edge.taken == at_other.taken == [b"before", b"after"]
    assert to_edge.outcomes == from_edge.outcomes == {1: ACCEPTED, 2: ACCEPTED}


@pytest.mark.parametrize("how", LOSSES)
def test_a_multicast_goes_on_with_one_copy_for_each(how: str):
    mesh = with_edges()
    receivers = [mesh.client(router).receiver("prices", credit=100) for router in ("e1", "e1", "e3", "r2")]
    senders = [mesh.client(router).sender("prices") for router in ("e1", "e3")]
    mesh.run(0.5)
    for sender in senders:
        mesh.send(sender, b"before")
    mesh.run(0.5)
    lose(mesh, how)
    mesh.run(0.5)
    for sender in senders:
        mesh.send(sender, b"after")
    mesh.run(1)
    assert [receiver.taken for receiver in receivers] == [[b"before", b"before", b"after", b"after"]] * 4
    assert senders[0].outcomes == senders[1].outcomes == {1: ACCEPTED, 2: ACCEPTED}


def test_what_waits_at_the_edge_goes_to_the_next_uplink():
    """The session to the first one is full: what it did not take was never written."""
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=100)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    mesh.cut(mesh.trunks[frozenset({"e1", "r1"})], silently=True)
    for _ in range(100):
        mesh.send(sender, b"x" * 60_000)
    mesh.run(6)
    kinds = [outcome.kind for outcome in sender.outcomes.values()]
    assert len(kinds) == 100
    assert kinds.count(OutcomeCode.ACCEPTED) == len(receiver.taken) > 0
    assert set(kinds) == {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED}


def test_what_was_written_is_in_doubt():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=5)
    receiver.accepts = False
    sender = mesh.client("e1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    lose(mesh, "dies")
    mesh.run(0.5)
    assert sender.outcomes[1].kind is OutcomeCode.MODIFIED
    assert sender.outcomes[1].delivery_failed


def test_what_was_written_is_sent_again_if_the_address_says_so():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("again", credit=5)
    receiver.accepts = False
    sender = mesh.client("e1").sender("again")
    mesh.send(sender, MESSAGE)
    mesh.run_until(lambda: bool(receiver.held))
    receiver.held.clear()
    receiver.accepts = True
    lose(mesh, "dies")
    mesh.run(1)
    assert sender.outcomes == {1: ACCEPTED}
    assert len(receiver.messages) == 2
    assert receiver.messages[0] == MESSAGE
    assert receiver.messages[1].endswith(MESSAGE)
    assert len(receiver.messages[1]) > len(MESSAGE), "with delivery-count raised"


def test_what_an_edge_held_for_its_consumer_is_in_doubt_at_the_other_end():
    mesh = with_edges()
    receiver = mesh.client("e1").receiver("rpc", credit=5)
    receiver.accepts = False
    sender = mesh.client("e3").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(receiver.held))
    lose(mesh, "dies")
    mesh.run(0.5)
    assert sender.outcomes[1].kind is OutcomeCode.MODIFIED


@pytest.mark.parametrize("service", ["e2", "e3", "r2"])
def test_a_dynamic_address_outlives_the_uplink(service: str):
    mesh = with_edges()
    replies = mesh.client("e1").receiver(None, dynamic=True)
    sender = mesh.client(service).sender(None)
    mesh.run(0.5)
    address = replies.link.remote_source.address
    mesh.send(sender, message_to(address))
    mesh.run(0.3)
    lose(mesh, "drops")
    mesh.send(sender, message_to(address))
    mesh.run(2)
    assert sender.outcomes == {1: ACCEPTED, 2: ACCEPTED}
    assert len(replies.taken) == 2


def test_a_reply_that_comes_while_there_is_no_uplink_is_held_for_the_next():
    """Its router still takes the first uplink for the way there."""
    mesh = with_edges()
    replies = mesh.client("e1").receiver(None, dynamic=True)
    sender = mesh.client("r3").sender(None)
    mesh.cut_trunk("e1", "r2")
    mesh.run(0.5)
    mesh.cut_trunk("e1", "r1")
    sender.send(message_to(replies.link.remote_source.address))
    mesh.run(0.5)
    mesh.link("e1", "r2")
    mesh.run(2)
    assert sender.outcomes == {1: ACCEPTED}
    assert len(replies.taken) == 1


def test_without_any_uplink_clients_of_one_edge_still_reach_each_other():
    mesh = with_edges()
    receiver = mesh.client("e1").receiver("rpc", credit=10)
    sender = mesh.client("e1").sender("rpc")
    far = mesh.client("e1").sender("work.x")
    mesh.client("e3").receiver("work.x")
    mesh.run(0.5)
    assert far.link.credit
    mesh.cut_trunk("e1", "r1"), mesh.cut_trunk("e1", "r2")
    mesh.run(0.5)
    assert uplink(mesh) is None
    mesh.send(sender, b"1")
    mesh.run(0.5)
    assert sender.outcomes == {1: ACCEPTED}
    assert receiver.taken == [b"1"]
    assert far.link.credit == 0


def test_an_uplink_that_comes_back_is_used_again_when_it_is_needed():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=10)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    lose(mesh, "drops")
    mesh.run(0.5)
    mesh.link("e1", "r1")
    mesh.run(2)
    assert uplink(mesh) == "r2", "it stays until it breaks"
    lose(mesh, "drops")
    mesh.run(0.2)
    assert uplink(mesh) == "r1"
    mesh.send(sender, b"1")
    mesh.run(0.5)
    assert receiver.taken == [b"1"]


def test_with_no_uplink_for_longer_than_the_patience_what_is_held_is_released():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=0)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    mesh.send(sender, b"1")
    mesh.run(0.2)
    mesh.cut_trunk("e1", "r1"), mesh.cut_trunk("e1", "r2")
    mesh.run(5)
    assert not receiver.messages
    assert sender.outcomes[1].kind in (OutcomeCode.RELEASED, OutcomeCode.MODIFIED)


def test_an_edge_that_starts_again_is_known_by_its_new_life():
    mesh = with_edges()
    replies = mesh.client("e1").receiver("rpc", credit=5)
    sender = mesh.client("e3").sender("rpc")
    mesh.send(sender)
    mesh.run(0.3)
    assert replies.taken
    mesh.kill("e1")
    mesh.run(3)
    assert sender.link.credit == 0
    mesh.start("e1")
    mesh.link("e1", "r1"), mesh.link("e1", "r2")
    mesh.run(2)
    again = mesh.client("e1").receiver("rpc", credit=5)
    mesh.run(0.5)
    mesh.send(sender, b"2")
    mesh.run(0.5)
    assert again.taken == [b"2"]


def test_at_its_start_an_edge_waits_a_moment_for_the_uplink_it_prefers():
    mesh = with_edges()
    mesh.kill("e1")
    mesh.start("e1")
    mesh.link("e1", "r2")
    mesh.run(0.5)
    assert uplink(mesh) is None
    mesh.link("e1", "r1")
    mesh.run(0.2)
    assert uplink(mesh) == "r1"


def test_at_its_start_an_edge_does_not_wait_for_long():
    mesh = with_edges()
    mesh.kill("e1")
    mesh.start("e1")
    mesh.link("e1", "r2")
    mesh.run(1.2)
    assert uplink(mesh) == "r2"


def test_a_large_message_under_way_is_aborted_and_its_producer_hears_of_it():
    mesh = with_edges()
    receiver = mesh.client("e3").receiver("rpc", credit=10)
    sender = mesh.client("e1").sender("rpc")
    mesh.run(0.5)
    sender.begin()
    sender.link.send(b"x" * 500_000)
    mesh.run(0.5)
    lose(mesh, "dies")
    mesh.run(0.5)
    sender.link.send(b"x" * 500_000)
    sender.link.finish()
    mesh.run(1)
    assert receiver.aborted == 1
    assert sender.outcomes[1].kind in (OutcomeCode.RELEASED, OutcomeCode.MODIFIED)
    mesh.send(sender, b"small")
    mesh.run(1)
    assert receiver.messages == [b"small"]
