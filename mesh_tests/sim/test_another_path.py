"""A router on the path dies: how long does nothing come? A few trips over the new path, each hop taking 1 ms."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mesh_tests.sim.clients import Sender
from mesh_tests.sim.line import ADDRESSES
from mesh_tests.sim.test_fallback import body, kept, wait_for_brokers
from mesh_tests.sim.world import SimMesh

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


def longest_gap_s(mesh: SimMesh, sender: Sender, count: Callable[[], int], victim: str) -> float:
    """The longest time in which ``count`` of what came stays as it is, a message being sent each half millisecond."""
    came_at, seen = [mesh.now], count()
    for n in range(400):
        if n == 100:
            mesh.kill(victim)
        if sender.link.credit > 0:
            sender.send(body("x"))
        mesh.run(STEP_S)
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
    assert longest_gap_s(mesh, sender, lambda: len(receiver.messages), victim) < MOST_S


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
    assert longest_gap_s(mesh, sender, lambda: kept(mesh).enqueued_total, victim) < MOST_S
