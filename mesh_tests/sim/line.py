"""How does a test get routers in a line, or in a ring, that know each other?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mesh.simulation.clients import SimClient, SimSender
from mesh.simulation.sim_mesh import SimMesh
from recording.records import Recorder
from wire.delivery import ACCEPTED
from wire.endpoint import Endpoint

ADDRESSES: dict[str, Any] = {
    "rpc": "anycast",
    "near": {"type": "anycast", "distribution": "closest"},
    "spilling": {"type": "anycast", "distribution": "closest", "spill": True},
    "again": {"type": "anycast", "retransmit": True},
    "prices": "multicast",
    "work.#": "anycast",
    "closed": "unavailable",
}


def line(
    count: int = 3,
    *,
    listener: dict[str, Any] | None = None,
    recorder_of: Callable[[str], Recorder] | None = None,
    **more: Any,
) -> SimMesh:
    """r1 - r2 - r3. ``listener``: what each grants its clients; ``more``: other keys of the topology."""
    routers = {f"r{n}": {"connect": [f"r{n + 1}"] if n < count else []} for n in range(1, count + 1)}
    return _converged("line", routers, listener, more, recorder_of)


def ring(*, listener: dict[str, Any] | None = None, **more: Any) -> SimMesh:
    """r1 - r2 - r3 - r4 - r1."""
    routers = {"r1": {"connect": ["r2", "r4"]}, "r2": {"connect": ["r3"]}, "r3": {"connect": ["r4"]}, "r4": {}}
    return _converged("ring", routers, listener, more)


def _converged(
    name: str,
    routers: dict[str, Any],
    listener: dict[str, Any] | None,
    more: dict[str, Any],
    recorder_of: Callable[[str], Recorder] | None = None,
) -> SimMesh:
    if listener is not None:
        routers = {router: {**model, "listeners": [listener]} for router, model in routers.items()}
    model = {"mesh": name, "node_tls": False, "routers": routers, "addresses": ADDRESSES, **more}
    mesh = SimMesh(model, recorder_of=recorder_of)
    mesh.converge()
    return mesh


def end_towards(mesh: SimMesh, router: str, other: str) -> Endpoint:
    """The router's end of the connection to the other."""
    ends = mesh.trunks[frozenset({router, other})].ends
    return next(endpoint for node, endpoint in ends if node is mesh.routers[router])


def one_written_and_one_not(egress: str) -> tuple[SimMesh, SimClient, SimSender]:
    """A consumer at ``egress`` holds delivery 2 of the producer; 3 came as far as it can without credit of his."""
    mesh = line()
    client = mesh.client(egress)
    receiver = client.receiver("rpc", credit=2)
    receiver.accepts = False
    sender = mesh.client("r1").sender("rpc")
    mesh.send(sender), mesh.send(sender, b"written")
    mesh.run_until(lambda: len(receiver.held) == 2)
    receiver.answer(*receiver.held.pop(0), ACCEPTED)
    mesh.send(sender, b"unwritten")
    mesh.run(0.1)
    assert sender.outcomes == {1: ACCEPTED}
    return mesh, client, sender
