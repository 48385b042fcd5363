"""Does virtual time keep its order, and does a step look only at what it touches?"""

from __future__ import annotations

from typing import Any

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh.simulation.world import World
from mesh_tests.sim.line import line
from wire.core import DirtyEndpoints


class Sleeper:
    """A node that wants to be called at certain moments."""

    def __init__(self, world: World, *moments: float) -> None:
        self.dirty = DirtyEndpoints()
        self.calls: list[float] = []
        self.asked = 0
        self._moments = list(moments)
        world.add(self)

    def next_deadline(self) -> float | None:
        self.asked += 1
        return self._moments[0] if self._moments else None

    def on_time(self, now: float) -> None:
        self.calls.append(now)
        self._moments.pop(0)


def test_what_is_due_happens_in_order_of_time_and_nothing_at_the_end_itself() -> None:
    world = World()
    seen: list[tuple[str, float]] = []
    for name, after in (("late", 0.3), ("early", 0.1), ("end", 0.5), ("also early", 0.1)):
        world.at(world.now + after, lambda name=name: seen.append((name, world.now)))  # type: ignore[misc]
    world.run(0.5)
    assert seen == [("early", 1000.1), ("also early", 1000.1), ("late", 1000.3)]
    assert world.now == 1000.5
    world.run(0.001)
    assert seen[-1][0] == "end"


def test_a_node_is_called_at_each_of_its_deadlines() -> None:
    world = World()
    node, other = Sleeper(world, 1000.2, 1000.4), Sleeper(world, 1000.3)
    world.run(1)
    assert node.calls == [1000.2, 1000.4]
    assert other.calls == [1000.3]


def test_a_node_that_nothing_touches_is_not_looked_at() -> None:
    world = World()
    idle = Sleeper(world)
    busy = Sleeper(world, *(1000 + n / 1000 for n in range(1, 500)))
    world.run(1)
    assert len(busy.calls) == 499
    assert idle.asked <= 2


def test_bytes_keep_their_order_when_a_connection_becomes_faster() -> None:
    mesh = line(2)
    receiver = mesh.client("r2").receiver("rpc")
    sender = mesh.client("r1").sender("rpc")
    trunk = mesh.trunks[frozenset({"r1", "r2"})]
    mesh.run_until(lambda: sender.link.credit > 3)
    trunk.delay_s = 0.5
    sender.send(b"first")
    mesh.run(0.1)
    trunk.delay_s = 0.001
    sender.send(b"second")
    mesh.run(1)
    assert receiver.messages == [b"first", b"second"]


def test_a_slow_connection_lets_others_overtake() -> None:
    mesh = line(3)
    near, far = mesh.client("r2").receiver("work.near"), mesh.client("r3").receiver("work.far")
    client = mesh.client("r1")
    to_near, to_far = client.sender("work.near"), client.sender("work.far")
    mesh.run_until(lambda: to_near.link.credit > 0 and to_far.link.credit > 0)
    mesh.trunks[frozenset({"r2", "r3"})].delay_s = 0.2
    to_far.send(b"x")
    to_near.send(b"x")
    mesh.run(0.1)
    assert (near.messages, far.messages) == ([b"x"], [])


@pytest.mark.parametrize("router", ["r1", "r2"])
def test_a_silent_cut_is_noticed_by_hello_alone(router: str) -> None:
    mesh = line(2)
    mesh.cut(mesh.trunks[frozenset({"r1", "r2"})], silently=True)
    mesh.run(1.5)
    assert mesh.routers[router].edges()
    mesh.run(2)
    assert not mesh.routers[router].edges()


def test_what_an_outsider_does_to_a_node_is_seen_by_the_next_run() -> None:
    mesh: SimMesh = line(2)
    costs: list[Any] = []
    for router, other in (("r1", "r2"), ("r2", "r1")):
        mesh.routers[router].set_cost(other, 5, mesh.now)
    mesh.run(0.1)
    costs += mesh.routers["r1"].edges().values()
    assert costs == [5]
