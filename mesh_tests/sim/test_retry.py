"""Is what was never written, or what a taker RELEASED, offered to the next-best taker before its producer hears of it?

At most once for each taker; RELEASED when none takes it within ``path_wait_s``.
"""

from __future__ import annotations

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.egress import egress_at
from mesh_tests.sim.line import line, one_written_and_one_not
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED
from wire.endpoint import EndpointSettings

PATH_WAIT_S = 2.0
ELSEWHERE = {"r1": "r2", "r2": "r3", "r3": "r1"}
LARGE_BYTES = 200_000
WINDOW_FRAMES = EndpointSettings("any").window_frames


def held_by_one_of_two(egress: str, body: bytes = b"x") -> tuple[SimMesh, SimReceiver, SimReceiver, SimSender]:
    """The first consumer, at ``egress``, holds a delivery; the second came later, elsewhere."""
    mesh = line()
    first = mesh.client(egress).receiver("rpc", credit=10)
    first.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender, body)
    mesh.run_until(lambda: bool(first.held))
    second = mesh.client(ELSEWHERE[egress]).receiver("rpc", credit=10)
    mesh.run(0.5)
    return mesh, first, second, sender


def test_what_a_taker_released_is_offered_to_the_next_and_its_producer_never_knows(egress: str):
    mesh, first, second, sender = held_by_one_of_two(egress, b"wanted")
    first.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, PATH_WAIT_S)
    assert second.messages == [b"wanted"]
    assert first.messages == [b"wanted"]


def test_what_every_taker_released_was_offered_to_each_once_and_is_released(egress: str):
    mesh, first, second, sender = held_by_one_of_two(egress, b"unwanted")
    second.accepts = False
    first.settle(RELEASED)
    mesh.run_until(lambda: bool(second.held), PATH_WAIT_S)
    second.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert first.messages == second.messages == [b"unwanted"]


def test_a_taker_is_not_offered_again_what_it_released(egress: str):
    mesh = line()
    only = mesh.client(egress).receiver("rpc", credit=10)
    only.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender)
    mesh.run_until(lambda: bool(only.held))
    only.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert len(only.messages) == 1


def test_what_a_taker_modified_or_rejected_is_not_offered_to_another(egress: str):
    mesh, first, second, sender = held_by_one_of_two(egress)
    first.settle(MODIFIED_FAILED)
    mesh.run_until(lambda: sender.outcomes == {1: MODIFIED_FAILED})
    mesh.run(PATH_WAIT_S + 1)
    assert second.messages == []


def test_a_large_delivery_that_is_released_is_not_kept_to_be_offered_again(egress: str):
    mesh, first, second, sender = held_by_one_of_two(egress, bytes(LARGE_BYTES))
    first.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert second.messages == []


def test_what_a_lost_consumer_never_got_goes_to_a_consumer_at_another_router(egress: str):
    mesh, client, sender = one_written_and_one_not(egress)
    other = mesh.client(ELSEWHERE[egress]).receiver("rpc")
    mesh.run(0.1)
    mesh.cut(client.pipe)
    mesh.run_until(lambda: sender.outcomes.get(3) == ACCEPTED, PATH_WAIT_S + 1)
    mesh.run_until(lambda: sender.outcomes.get(2) == MODIFIED_FAILED, 0.1)
    assert other.messages == [b"unwritten"]


def test_what_a_lost_consumer_never_got_waits_for_a_consumer_that_comes_at_another_router_in_time(egress: str):
    mesh, client, sender = one_written_and_one_not(egress)
    mesh.cut(client.pipe)
    mesh.run(PATH_WAIT_S / 2)
    late = mesh.client(ELSEWHERE[egress]).receiver("rpc")
    mesh.run_until(lambda: sender.outcomes.get(3) == ACCEPTED, PATH_WAIT_S + 1)
    assert late.messages == [b"unwritten"]


@egress_at("r2", "r3")
def test_what_was_never_written_to_a_circuit_that_broke_goes_to_another_taker(egress: str):
    mesh = line()
    consumer = mesh.client(egress)
    lost = [consumer.receiver(address, credit=1000) for address in ("rpc", "spilling")]
    other = mesh.client("r1")
    takers = [other.receiver(address, credit=0) for address in ("rpc", "spilling")]
    senders = [mesh.client("r1").sender(address) for address in ("rpc", "spilling")]
    mesh.run_until(lambda: all(sender.link.credit == 1000 for sender in senders))
    trunk = mesh.trunks[frozenset({"r1", "r2"})]
    mesh.cut(trunk, silently=True)
    for sender in senders:
        for _ in range(250):
            sender.send(b"x")
    mesh.run(0.1)  # both circuits are in one session, whose window is shut before all is written
    for taker in takers:
        taker.link.grant(1000)
    mesh.cut(trunk)
    mesh.run_until(lambda: not any(sender.open for sender in senders), PATH_WAIT_S + 1)
    outcomes = [outcome for sender in senders for outcome in sender.outcomes.values()]
    assert lost[0].messages == lost[1].messages == []
    assert outcomes.count(MODIFIED_FAILED) <= WINDOW_FRAMES
    assert outcomes.count(MODIFIED_FAILED) + outcomes.count(ACCEPTED) == 500
