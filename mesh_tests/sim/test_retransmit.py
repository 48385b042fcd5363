"""With ``retransmit``: is what was on its way to a lost taker sent again, and does its producer see no failure?"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import told
from mesh_tests.sim.line import line, ring
from mesh_tests.sim.test_fallback import body, body_of, decoded, kept, mesh_of, numbered, send
from mesh_tests.sim.test_recall import TWICE_S, unsettled
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, OutcomeCode

RETRANSMIT_WAIT_S = 5.0
LARGE_BYTES = 200_000


def counts(receiver: SimReceiver) -> list[tuple[bytes, int]]:
    """What it saw, and how often that was sent before."""
    return [(body_of(message), decoded(message).delivery_count) for message in receiver.messages]


def holding(mesh: SimMesh, router: str, *, credit: int = 1, address: str = "again") -> tuple[SimClient, SimReceiver]:
    """A consumer that settles nothing."""
    client = mesh.client(router, "holding")
    receiver = client.receiver(address, credit=credit)
    receiver.accepts = False
    return client, receiver


def test_what_a_lost_consumer_had_goes_to_another_in_order(egress: str):
    mesh = line()
    client, lost = holding(mesh, egress, credit=3)
    sender = mesh.client("r1").sender("again")
    for n in range(4):
        mesh.send(sender, body(f"m{n}"))
        mesh.run(0.05)
    assert len(lost.held) == 3
    other = mesh.client("r2", "other").receiver("again", credit=10)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 5), ACCEPTED))
    resent = [seen for seen in counts(other) if seen[1]]
    assert resent == [(b"m0", 1), (b"m1", 1), (b"m2", 1)]
    assert [seen for seen in counts(other) if not seen[1]] == [(b"m3", 0)]


@pytest.mark.parametrize("after_s", [0.0, 1.0, 4.8])
def test_it_waits_for_a_consumer_that_comes_in_time(egress: str, after_s: float):
    mesh = line()
    client, _ = holding(mesh, egress, credit=3)
    sender = mesh.client("r1").sender("again")
    for n in range(4):
        mesh.send(sender, body(f"m{n}"))
        mesh.run(0.05)
    mesh.cut(client.pipe)
    mesh.run(after_s)
    assert sender.outcomes == {}
    again = mesh.client(egress, "again").receiver("again", credit=10)
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 5), ACCEPTED))
    assert sorted(counts(again)) == [(b"m0", 1), (b"m1", 1), (b"m2", 1), (b"m3", 0)]


def test_when_nobody_comes_its_producer_hears_that_it_is_in_doubt(egress: str):
    mesh = line()
    client, _ = holding(mesh, egress)
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, body("had")), mesh.send(sender, body("never had"))
    mesh.run(0.5)
    mesh.cut(client.pipe)
    mesh.run(RETRANSMIT_WAIT_S - 0.2)
    assert sender.outcomes == {}
    mesh.run(2.5)
    assert told(sender.outcomes[1]) == told(MODIFIED_FAILED)
    assert told(sender.outcomes[2]) == told(RELEASED)


def test_what_was_in_doubt_is_not_released_when_the_next_consumer_does(egress: str):
    mesh = line()
    client, lost = holding(mesh, egress)
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, body("x"))
    mesh.run_until(lambda: bool(lost.held))
    mesh.cut(client.pipe)
    again = mesh.client(egress, "again").receiver("again", credit=1)
    again.accepts = False
    mesh.run_until(lambda: bool(again.held))
    again.settle(RELEASED)
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes), RETRANSMIT_WAIT_S + 1)
    assert told(sender.outcomes[1]) == told(MODIFIED_FAILED)


@pytest.mark.parametrize("outcome", [MODIFIED_FAILED, Outcome(OutcomeCode.MODIFIED, annotations={"why": "mine"})])
def test_what_a_consumer_calls_failed_reaches_the_producer(egress: str, outcome: Outcome):
    mesh = line()
    receiver = mesh.client(egress).receiver("again")
    receiver.accepts = False
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, body("x"))
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(outcome)
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes))
    assert told(sender.outcomes[1]) == told(outcome)
    assert len(receiver.messages) == 1


def test_it_is_sent_again_each_time_and_tells_how_often():
    mesh = line()
    sender = mesh.client("r1").sender("again")
    for n in range(4):
        client, receiver = holding(mesh, "r3")
        if n == 0:
            mesh.send(sender, body("x"))
        mesh.run_until(lambda receiver=receiver: bool(receiver.held))
        assert counts(receiver) == [(b"x", n)]
        mesh.cut(client.pipe)
        mesh.run(0.1)
    mesh.client("r3", "last").receiver("again")
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED})


@pytest.mark.parametrize("victim", ["r2", "r4"])
def test_a_router_dies_under_traffic_and_no_producer_sees_a_failure(victim: str):
    mesh = ring()
    receiver = mesh.client("r3", "c").receiver("again", credit=50)
    senders = [mesh.client("r1", f"p{n}").sender("again") for n in range(3)]
    for n in range(40):
        for sender in senders:
            mesh.send(sender, body(f"{n}"))
        mesh.run(0.0007)
    mesh.kill(victim)
    for n in range(40, 60):
        for sender in senders:
            mesh.send(sender, body(f"{n}"))
        mesh.run(0.0007)
    mesh.run_until(lambda: all(len(sender.outcomes) == 60 for sender in senders))
    for sender in senders:
        assert set(sender.outcomes.values()) == {ACCEPTED}
    assert {count for _, count in counts(receiver)} <= {0, 1}
    assert unsettled(mesh) == 0


def test_what_was_seen_before_has_its_count_raised():
    """A consumer's outcome is lost with the router between."""
    mesh = ring()
    receiver = mesh.client("r3", "c").receiver("again", credit=50)
    receiver.accepts = False
    sender = mesh.client("r1").sender("again")
    for n in range(10):
        mesh.send(sender, body(f"m{n}"))
    mesh.run_until(lambda: len(receiver.held) == 10)
    mesh.kill("r2")
    mesh.run_until(lambda: len(receiver.held) == 20)
    assert counts(receiver)[10:] == [(b"m%d" % n, 1) for n in range(10)]
    receiver.settle()
    mesh.flush()
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 11), ACCEPTED))
    assert unsettled(mesh) == 0


@pytest.mark.parametrize("message", [bytes(LARGE_BYTES), b"\x01no message"], ids=["too large", "no message"])
def test_what_cannot_be_sent_again_is_in_doubt(egress: str, message: bytes):
    """It is too large to be kept, or has no header to raise a count in."""
    mesh = line()
    client, lost = holding(mesh, egress)
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, message)
    mesh.run_until(lambda: bool(lost.held))
    mesh.client("r2", "other").receiver("again", credit=10)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes))
    assert told(sender.outcomes[1]) == told(MODIFIED_FAILED)


@pytest.mark.parametrize(("head_start_s", "within_s"), [(1.0, 0.5), (0.0, TWICE_S)], ids=["before", "after"])
def test_a_busy_consumer_beside_the_lost_one_does_not_keep_it_from_others(head_start_s: float, within_s: float):
    """Nor does one that the ingress does not know when it sends again: it has it back."""
    mesh = line()
    client, lost = holding(mesh, "r3")
    mesh.client("r3", "busy").receiver("again", credit=0)
    sender = mesh.client("r1").sender("again")
    mesh.send(sender, body("x"))
    mesh.run_until(lambda: bool(lost.held))
    other = mesh.client("r2", "other").receiver("again", credit=10)
    mesh.run(head_start_s)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, within_s)
    assert counts(other) == [(b"x", 1)]


def test_what_a_fallback_fed_is_back_in_its_queue_at_once(tmp_path: Path):
    """The queue has its own limit of attempts, and knows each message's place."""
    rpc = {"type": "anycast", "fallback": "rpc.kept", "retransmit": True}
    mesh = mesh_of(tmp_path, ["r1"], addresses={"rpc": rpc, "rpc.kept": "queue"})
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 3))
    mesh.run_until(lambda: len(sender.outcomes) == 3)
    client, lost = holding(mesh, "r3", credit=3, address="rpc")
    mesh.run_until(lambda: len(lost.held) == 3)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: kept(mesh).available_count == 3, 0.5)


@pytest.mark.parametrize("address", ["rpc", "again"])
def test_a_producer_hears_no_word_of_the_routers(egress: str, address: str):
    mesh = line()
    client, lost = holding(mesh, egress, address=address)
    sender = mesh.client("r1").sender(address)
    mesh.send(sender, body("x"))
    mesh.run_until(lambda: bool(lost.held))
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes), RETRANSMIT_WAIT_S + 1)
    assert told(sender.outcomes[1]) == told(MODIFIED_FAILED)
