"""What does the recorder of deliveries hear? One record each, however it ends; of a multicast one for each copy too."""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import REFUSED
from mesh_tests.rings import Record, Ring
from mesh_tests.sim.line import line
from recording.records import Recorder
from recording.ring_format import DROPPED_AT
from router.forwarding.settings import ForwardingSettings
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode
from wire.message import Message, encode

NONE, ABORTED, SENDER_LOST = 0, 1, 2
WHOLE_WAY, MANY_COPIES, ONE_COPY = 0, 1, 2
LARGE_BYTES = 200_000
S = 1_000_000
LEAVING_S = ForwardingSettings().path_wait_s + 0.1
"""A router waits for a taker so long before it answers a detach."""


@pytest.fixture
def ring(request: pytest.FixtureRequest) -> Ring:
    return Ring(getattr(request, "param", 1000))


def recorded(ring: Ring, count: int = 1) -> SimMesh:
    """A line of routers that share one recorder, so that all records are in ``ring``."""
    recorder = Recorder(ring.memory, "full")
    return line(count, recorder_of=lambda name: recorder)


def records(ring: Ring) -> list[Record]:
    return ring.take()[0]


def pair(ring: Ring, address: str = "rpc") -> tuple[SimMesh, SimReceiver, SimClient, SimSender]:
    """One router, a consumer that holds what it gets, and a producer."""
    mesh = recorded(ring)
    receiver = mesh.client("r1").receiver(address)
    receiver.accepts = False
    client = mesh.client("r1")
    return mesh, receiver, client, client.sender(address)


def test_each_settled_delivery_leaves_a_record_with_size_time_and_outcome(ring: Ring):
    mesh = recorded(ring)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(5):
        mesh.send(sender, bytes(100))
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    found = records(ring)
    assert len(found) == 5
    assert {(each.size_bytes, each.outcome, each.part) for each in found} == {(100, OutcomeCode.ACCEPTED, WHOLE_WAY)}
    # There and back to the consumer, 1 ms each way.
    assert all(1_000 <= each.took_us <= 5_000 for each in found)
    assert len({(each.incoming, each.outgoing) for each in found}) == 1
    assert records(ring) == []


def test_what_was_kept_for_longer_than_a_slot_can_tell_is_told_when_it_was_settled(ring: Ring):
    mesh, receiver, _, sender = pair(ring)
    mesh.send(sender, bytes(100))
    mesh.run_until(lambda: bool(receiver.held))
    for _ in range(45):
        mesh.run(100)
    receiver.settle(ACCEPTED)
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes))
    (found,) = records(ring)
    assert found.took_us == 2**32 - 1
    assert abs(found.start_us + found.took_us - mesh.now * S) < S


@pytest.mark.parametrize("ring", [8], indirect=True)
def test_records_that_have_no_room_are_dropped_and_counted(ring: Ring):
    mesh = recorded(ring)
    mesh.client("r1").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    ring.take()
    before = ring.number(DROPPED_AT)
    for _ in range(11):
        mesh.send(sender, b"x")
    mesh.run_until(lambda: len(sender.outcomes) == 11)
    assert ring.number(DROPPED_AT) == before + 3
    assert len(records(ring)) == 8


def test_a_pre_settled_delivery_leaves_a_record_without_an_outcome(ring: Ring):
    mesh, receiver, _, sender = pair(ring)
    mesh.send(sender, bytes(100), settled=True)
    mesh.run_until(lambda: bool(receiver.messages))
    (found,) = records(ring)
    assert (found.size_bytes, found.outcome, found.part) == (100, NONE, WHOLE_WAY)


def test_a_multicast_leaves_a_record_of_its_own_and_one_for_each_copy_with_the_outcome_of_that(ring: Ring):
    mesh, refusing, _, sender = pair(ring, "prices")
    accepting = mesh.client("r1").receiver("prices")
    accepting.accepts = False
    mesh.send(sender, bytes(100))
    mesh.run_until(lambda: bool(refusing.held and accepting.held))
    accepting.settle(ACCEPTED)
    mesh.flush()
    mesh.run(0.1)
    refusing.settle(REFUSED)
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes))
    first, second, whole = records(ring)
    assert [(each.part, each.outcome) for each in (first, second, whole)] == [
        (ONE_COPY, OutcomeCode.ACCEPTED),
        (ONE_COPY, OutcomeCode.REJECTED),
        (MANY_COPIES, OutcomeCode.REJECTED),
    ]
    assert {each.size_bytes for each in (first, second, whole)} == {100}
    assert len({each.incoming for each in (first, second, whole)}) == 1
    assert len({first.outgoing, second.outgoing, 0}) == 3
    assert whole.outgoing == 0
    assert first.took_us < second.took_us <= whole.took_us


def test_a_pre_settled_multicast_leaves_records_without_an_outcome(ring: Ring):
    mesh, receiver, _, sender = pair(ring, "prices")
    mesh.send(sender, bytes(100), settled=True)
    mesh.run_until(lambda: bool(receiver.messages))
    assert [(each.part, each.outcome) for each in records(ring)] == [(ONE_COPY, NONE), (MANY_COPIES, NONE)]


def test_the_copy_of_a_consumer_that_is_lost_counts_as_modified(ring: Ring):
    mesh = recorded(ring)
    client = mesh.client("r1")
    receiver = client.receiver("prices")
    receiver.accepts = False
    sender = mesh.client("r1").sender("prices")
    mesh.send(sender, bytes(100))
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut(client.pipe)
    mesh.run_until(lambda: bool(sender.outcomes))
    copy, whole = records(ring)
    assert (copy.part, copy.outcome) == (ONE_COPY, OutcomeCode.MODIFIED)
    assert (whole.part, whole.outcome) == (MANY_COPIES, OutcomeCode.MODIFIED)
    assert copy.outgoing != 0


@pytest.mark.parametrize(
    ("address", "parts"), [("rpc", [WHOLE_WAY]), ("prices", [ONE_COPY, MANY_COPIES])], ids=["anycast", "multicast"]
)
def test_what_its_sender_aborts_leaves_a_record_of_what_came(ring: Ring, address: str, parts: list[int]):
    mesh, receiver, _, sender = pair(ring, address)
    mesh.run_until(lambda: sender.link.credit > 0)
    delivery = sender.begin()
    sender.link.send(bytes(LARGE_BYTES))
    mesh.flush()
    mesh.run_until(lambda: len(receiver.partial) == LARGE_BYTES)
    sender.abort(delivery)
    mesh.flush()
    mesh.run_until(lambda: receiver.aborted == 1)
    assert [(each.part, each.outcome, each.size_bytes) for each in records(ring)] == [
        (part, ABORTED, LARGE_BYTES) for part in parts
    ]


@pytest.mark.parametrize(
    ("address", "parts"),
    [("rpc", {WHOLE_WAY: SENDER_LOST}), ("prices", {MANY_COPIES: SENDER_LOST, ONE_COPY: OutcomeCode.ACCEPTED})],
    ids=["anycast", "multicast"],
)
def test_what_its_sender_leaves_unsettled_leaves_a_record(ring: Ring, address: str, parts: dict[int, int]):
    mesh, receiver, client, sender = pair(ring, address)
    mesh.send(sender, bytes(100))
    mesh.run_until(lambda: bool(receiver.held))
    mesh.cut(client.pipe)
    mesh.run(0.1)
    receiver.settle(ACCEPTED)
    mesh.flush()
    mesh.run(0.1)
    found = records(ring)
    assert {each.part: each.outcome for each in found} == parts
    assert len(found) == len(parts)
    assert {each.size_bytes for each in found} == {100}


def test_what_nobody_took_leaves_a_record_without_a_taker(ring: Ring):
    mesh, receiver, _, sender = pair(ring)
    receiver.tops_up = False
    receiver.link.set_credit(1)
    mesh.flush()
    for _ in range(2):
        mesh.send(sender, bytes(100))
    mesh.run_until(lambda: bool(receiver.held))
    receiver.settle(ACCEPTED)
    receiver.link.close()
    mesh.flush()
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    taken, untaken = records(ring)
    assert (taken.outcome, untaken.outcome) == (OutcomeCode.ACCEPTED, OutcomeCode.RELEASED)
    assert (taken.size_bytes, untaken.size_bytes) == (100, 100)
    assert taken.incoming == untaken.incoming
    assert (untaken.outgoing, untaken.took_us) == (0, 0)


@pytest.mark.parametrize("leaves", ["detached", "cut"])
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_what_waits_for_a_taker_when_its_sender_leaves_is_recorded_and_counted(ring: Ring, leaves: str, settled: bool):
    mesh, receiver, client, sender = pair(ring)
    receiver.tops_up = False
    receiver.link.set_credit(1)
    mesh.flush()
    mesh.send(sender, bytes(100), settled=settled)
    mesh.run_until(lambda: bool(receiver.messages))
    for size in (200, 300):
        mesh.send(sender, bytes(size), settled=settled)
    mesh.run(0.1)
    if leaves == "cut":
        mesh.cut(client.pipe)
    else:
        sender.link.close()
        mesh.flush()
    mesh.run(0.1 if leaves == "cut" else LEAVING_S)
    first, *left = sorted(records(ring), key=lambda each: each.size_bytes)
    assert (first.size_bytes, first.outcome) == (100, NONE if settled else SENDER_LOST)
    assert [(each.size_bytes, each.outgoing, each.outcome, each.part) for each in left] == [
        (200, 0, SENDER_LOST, WHOLE_WAY),
        (300, 0, SENDER_LOST, WHOLE_WAY),
    ]
    assert sum(each.deliveries_in for each in mesh.routers["r1"].snapshot().addresses) == 3


def test_what_a_consumer_takes_no_more_of_is_recorded_with_all_that_came(ring: Ring):
    mesh, receiver, _, sender = pair(ring)
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.begin()
    sender.link.send(bytes(LARGE_BYTES))
    mesh.flush()
    mesh.run_until(lambda: len(receiver.partial) == LARGE_BYTES)
    receiver.answer(receiver.link.current, b"", RELEASED)
    mesh.flush()
    mesh.run(0.1)
    sender.link.send(bytes(LARGE_BYTES))
    sender.link.finish()
    mesh.flush()
    mesh.run_until(lambda: bool(sender.outcomes))
    (found,) = records(ring)
    assert (found.outcome, found.size_bytes) == (OutcomeCode.RELEASED, 2 * LARGE_BYTES)
    assert found.outgoing != 0


def test_what_a_sender_without_an_address_sends_nowhere_is_recorded_without_links(ring: Ring):
    mesh = recorded(ring)
    sender = mesh.client("r1").sender(None)
    message = encode(Message(to="unheard.of", body="x"))
    mesh.send(sender, message)
    mesh.run_until(lambda: bool(sender.outcomes))
    (found,) = records(ring)
    assert (found.incoming, found.outgoing) == (0, 0)
    assert (found.outcome, found.size_bytes) == (OutcomeCode.REJECTED, len(message))


def test_each_router_on_the_way_leaves_a_record_of_its_own(ring: Ring, egress: str):
    mesh = recorded(ring, 3)
    mesh.client(egress).receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    for _ in range(5):
        mesh.send(sender, bytes(100))
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    found = records(ring)
    routers = ["r1", "r2", "r3"].index(egress) + 1
    assert len(found) == 5 * routers
    assert {(each.outcome, each.part) for each in found} == {(OutcomeCode.ACCEPTED, WHOLE_WAY)}
    assert len({each.incoming for each in found}) == routers
