"""A consumer has credit, and nothing can be written to it. Does what waits for it come to one that is free?

Its session's window is shut, or its socket is full. Such credit is worth nothing: the ingress has back what waits at
that consumer's router, and sends nothing more there until something can be written again.
"""

from __future__ import annotations

import pytest

from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from wire.delivery import ACCEPTED

COUNT = 100
WITHIN_S = 8.0


def router_end(mesh: SimMesh, router: str, client: SimClient):
    return next(endpoint for node, endpoint in client.pipe.ends if node is mesh.routers[router])


class Stuck:
    """``way``: "window" or "socket"."""

    def __init__(self, mesh: SimMesh, router: str, address: str, way: str, credit: int = 1000) -> None:
        self.mesh, self.router, self.way = mesh, router, way
        self.client = mesh.client(router, window_frames=1)
        self.receiver: SimReceiver = self.client.receiver(address, credit=credit)
        mesh.run_until(lambda: self.receiver.link.is_open)
        if way == "socket":
            router_end(mesh, router, self.client).is_output_blocked = True
        else:
            self.receiver.reads = False

    def get_going(self) -> None:
        """No flow of the link's: nothing but the window, or the socket, tells that it reads again."""
        if self.way == "socket":
            end = router_end(self.mesh, self.router, self.client)
            end.is_output_blocked = False
            self.mesh.routers[self.router].on_writable(end, self.mesh.now)
            self.mesh.touch(self.mesh.routers[self.router])
            self.mesh.settle()
        else:
            self.receiver.tops_up = False
            self.client.resume(self.receiver)


@pytest.mark.parametrize("way", ["window", "socket"])
@pytest.mark.parametrize(("stuck", "free"), [("r2", "r1"), ("r3", "r1"), ("r3", "r2"), ("r2", "r3"), ("r1", "r2")])
@pytest.mark.parametrize("settled", [False], ids=["unsettled"])
def test_a_free_consumer_gets_what_waits_for_a_stuck_one(stuck: str, free: str, way: str, settled: bool):
    mesh = line()
    held_up = Stuck(mesh, stuck, "rpc", way)
    receiver = mesh.client(free).receiver("rpc", credit=1000)
    mesh.run(0.5)
    sender = mesh.client("r1").sender("rpc")
    for _ in range(COUNT):
        mesh.send(sender, bytes(1000), settled=settled)
    # The window has room for one, which may be written.
    most = 1 if way == "window" else 0
    mesh.run_until(lambda: len(sender.outcomes) >= COUNT - most, WITHIN_S)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    assert len(receiver.messages) >= COUNT - most
    assert len(receiver.messages) + len(held_up.receiver.messages) <= COUNT


@pytest.mark.parametrize("way", ["window", "socket"])
def test_a_consumer_that_reads_again_gets_messages_again(way: str):
    mesh = line()
    held_up = Stuck(mesh, "r2", "rpc", way)
    receiver = mesh.client("r3").receiver("rpc", credit=1000)
    mesh.run(0.5)
    sender = mesh.client("r1").sender("rpc")
    for _ in range(COUNT):
        mesh.send(sender, bytes(1000))
    mesh.run_until(lambda: len(sender.outcomes) >= COUNT - 1, WITHIN_S)
    mesh.run(3)
    held_up.get_going()
    mesh.run(1)
    before, taken = len(held_up.receiver.messages), len(receiver.messages)
    for _ in range(COUNT):
        mesh.send(sender, bytes(1000))
    mesh.run_until(lambda: len(sender.outcomes) == 2 * COUNT, WITHIN_S)
    assert len(held_up.receiver.messages) - before > COUNT // 4
    assert len(held_up.receiver.messages) + len(receiver.messages) == 2 * COUNT
    assert taken <= COUNT


def test_nobody_gets_anything_twice_and_all_of_it_once_when_both_are_stuck_for_a_while():
    mesh = line()
    both = [Stuck(mesh, router, "rpc", "window") for router in ("r2", "r3")]
    mesh.run(0.5)
    sender = mesh.client("r1").sender("rpc")
    for number in range(COUNT):
        mesh.send(sender, b"%d" % number + bytes(1000))
    mesh.run(10)
    for each in both:
        each.get_going()
    mesh.run_until(lambda: len(sender.outcomes) == COUNT, WITHIN_S)
    assert set(sender.outcomes.values()) == {ACCEPTED}
    seen = [message for each in both for message in each.receiver.messages]
    assert len(seen) == len(set(seen)) == COUNT
