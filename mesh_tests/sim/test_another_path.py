"""A router on the path dies: how long does nothing come? A few trips over the new path, each hop taking 1 ms.

Where it only falls silent, its neighbors have to notice first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import told
from mesh_tests.sim.line import ADDRESSES
from mesh_tests.sim.test_fallback import body, kept, wait_for_brokers
from router.circuits.circuits import Circuits
from router.circuits.spec import PATH_LOST
from wire.delivery import ACCEPTED, MODIFIED_FAILED
from wire.errors import AmqpError
from wire.link import Link

MOST_S = 0.02
STEP_S = 0.0005
RING: dict[str, Any] = {
    "r1": {"connect": ["r2", "r6"]},
    "r2": {"connect": ["r3"]},
    "r3": {"connect": ["r4"]},
    "r4": {"connect": ["r5"]},
    "r5": {"connect": ["r6"]},
    "r6": {},
}


def longest_gap_s(
    mesh: SimMesh,
    sender: SimSender,
    count: Callable[[], int],
    lose: Callable[[], None],
    step_s: float = STEP_S,
    *,
    settled: bool = False,
) -> float:
    """The longest time in which ``count`` of what came stays as it is, a message being sent each step."""
    came_at, seen = [mesh.now], count()
    for n in range(400):
        if n == 100:
            lose()
        if sender.link.credit > 0:
            sender.send(body("x"), settled=settled)
        mesh.run(step_s)
        if count() > seen:
            seen = count()
            came_at.append(mesh.now)
    assert len(came_at) > 200
    return max(later - earlier for earlier, later in pairwise(came_at))


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
@pytest.mark.parametrize("address", ["rpc", "again", "prices"])
def test_an_anycast_or_multicast_goes_on_at_once(address: str, victim: str):
    mesh = SimMesh({"mesh": "ring", "node_tls": False, "routers": RING, "addresses": ADDRESSES})
    mesh.converge()
    receiver = mesh.client("r4").receiver(address, credit=1000)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(0.2)
    assert longest_gap_s(mesh, sender, lambda: len(receiver.messages), lambda: mesh.kill(victim)) < MOST_S
    mesh.run(1)
    assert len(sender.outcomes) == sender.count
    # Somebody takes it all the time: what was on the way is in doubt, or is sent again, and nothing is given back.
    allowed = [ACCEPTED] if address == "again" else [ACCEPTED, MODIFIED_FAILED]
    assert all(told(outcome) in map(told, allowed) for outcome in sender.outcomes.values())


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
def test_what_nobody_takes_goes_on_to_its_queue_at_once(tmp_path: Path, victim: str):
    mesh = SimMesh(
        {
            "mesh": "ring",
            "node_tls": False,
            "routers": RING,
            "brokers": {"b1": {"data": "b1", "routers": ["r4"]}},
            "addresses": {"rpc": {"type": "anycast", "fallback": "rpc.kept"}, "rpc.kept": "queue"},
        },
        tmp_path,
    )
    mesh.converge()
    wait_for_brokers(mesh)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(0.2)
    assert longest_gap_s(mesh, sender, lambda: kept(mesh).enqueued_total, lambda: mesh.kill(victim)) < MOST_S


def queue_ring(folder: Path) -> SimMesh:
    """The queue `orders` is at r4."""
    mesh = SimMesh(
        {
            "mesh": "ring",
            "node_tls": False,
            "routers": RING,
            "brokers": {"b1": {"data": "b1", "routers": ["r4"]}},
            "addresses": {"orders": "queue"},
        },
        folder,
    )
    mesh.converge()
    wait_for_brokers(mesh)
    return mesh


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
@pytest.mark.parametrize("ends", [("r1", "r4"), ("r4", "r1")], ids=["producer", "consumer"])
def test_a_queues_clients_go_on_at_once(tmp_path: Path, ends: tuple[str, str], victim: str):
    mesh = queue_ring(tmp_path)
    producer_at, consumer_at = ends
    receiver = mesh.client(consumer_at, "c").receiver("orders", credit=1000)
    sender = mesh.client(producer_at, "p").sender("orders")
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(0.2)
    assert longest_gap_s(mesh, sender, lambda: len(receiver.messages), lambda: mesh.kill(victim)) < MOST_S
    assert (sender.error, receiver.error) == (None, None)


def test_a_route_that_is_refused_over_a_lost_path_takes_another_at_once(tmp_path: Path):
    mesh = queue_ring(tmp_path)
    sender = mesh.client("r1", "p").sender("orders")
    mesh.run(0.0025)  # the attach is past r2
    mesh.kill("r3")
    mesh.run_until(lambda: sender.link.credit > 0, 2 * MOST_S)


def test_a_route_that_is_refused_over_the_only_path_tries_again_ever_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mesh = queue_ring(tmp_path)
    tried_at: list[float] = []

    def pass_on(circuits: Circuits, near: Link, spec: Any) -> None:
        tried_at.append(mesh.now)
        raise AmqpError(PATH_LOST, "not here")

    monkeypatch.setattr(Circuits, "pass_on", pass_on)
    sender = mesh.client("r1", "p").sender("orders")
    mesh.run(1)
    assert 5 < len(tried_at) < 10
    monkeypatch.undo()
    mesh.run_until(lambda: sender.link.credit > 0, 0.3)


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
@pytest.mark.parametrize(("interval_s", "max_age_s"), [(1.0, 3.0), (0.1, 0.3)], ids=["default", "fast"])
@pytest.mark.parametrize("address", ["rpc", "again", "prices"])
def test_a_router_that_falls_silent_is_left_when_its_neighbors_notice(
    address: str, interval_s: float, max_age_s: float, victim: str
):
    mesh = SimMesh(
        {"mesh": "ring", "node_tls": False, "routers": RING, "addresses": ADDRESSES, "hello_interval_s": interval_s}
    )
    mesh.converge()
    receiver = mesh.client("r4").receiver(address, credit=1000)
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(5)

    def fall_silent() -> None:
        for pair, pipe in mesh.trunks.items():
            if victim in pair:
                mesh.cut(pipe, silently=True)

    step_s = max_age_s / 50
    gap_s = longest_gap_s(mesh, sender, lambda: len(receiver.messages), fall_silent, step_s)
    assert max_age_s / 2 < gap_s < max_age_s + 2 * step_s
    if address == "again":
        mesh.run_until(lambda: set(sender.outcomes.values()) == {ACCEPTED})
