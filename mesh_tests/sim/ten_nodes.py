"""Eight simulated routers in a line and two brokers, each with a ring of its own, and the link logs that they leave."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from addressing.topology.model import Topology
from linklogs.writer.intake import IntakeTime
from linklogs.writer.settings import Settings
from linklogs.writer.writer import Writer
from mesh.simulation.sim_mesh import SimMesh
from recording.recorder import recording
from recording.records import Recorder
from wire.delivery import ACCEPTED
from wire.message import Message, encode

ROUTERS = [f"r{number}" for number in range(1, 9)]
BROKERS = {"b1": "r8", "b2": "r4"}
NODES = frozenset({*ROUTERS, *BROKERS})
SENT = 5
"""Messages to each address, from r1: over all routers to r8, and to the queue at b1, which keeps them."""
_SECONDS = 4


def neighbors_of(router: str) -> set[str]:
    at = ROUTERS.index(router)
    return {ROUTERS[other] for other in (at - 1, at + 1) if 0 <= other < len(ROUTERS)}


def leave_link_logs(folder: Path) -> Path:
    """Let the mesh live for some seconds, and return the directory of the link logs' files."""
    rings, logs = folder / "rings", folder / "logs"
    topology = Topology.model_validate(_model())
    with ExitStack() as recorded:
        started_us = time.time_ns() // 1000

        def recorder_of(name: str) -> Recorder:
            role = "broker" if name in BROKERS else "router"
            recorder, _ = recorded.enter_context(recording(topology, name, role, rings, lambda event: None))
            recorder.set_clock(started_us, 0)
            return recorder

        mesh = SimMesh(topology, folder / "stores", recorder_of=recorder_of)
        _live(mesh)
        mesh.close()
    # Kept apart from the nodes, as the writer's process is: nothing but rings comes from them.
    writer = Writer(Settings(rings, logs), lambda event: None)
    writer.finish(IntakeTime(time.time_ns() // 1000 + 60_000_000, 0.0))
    writer.close()
    return logs


def _model() -> dict[str, Any]:
    pairs = zip(ROUTERS, [*ROUTERS[1:], None], strict=True)
    return {
        "mesh": "ten",
        "node_tls": False,
        "routers": {name: {"connect": [other] if other else []} for name, other in pairs},
        "brokers": {name: {"data": name, "routers": [router]} for name, router in BROKERS.items()},
        "addresses": {"rpc": "anycast", "orders": {"type": "queue", "broker": "b1"}},
        "link_logs": {"level": "full", "ring_bytes": 1 << 20},
    }


def _live(mesh: SimMesh) -> None:
    mesh.converge()
    mesh.client("r8").receiver("rpc")
    client = mesh.client("r1")
    senders = [client.sender("rpc"), client.sender("orders")]
    for sender in senders:
        for _ in range(SENT):
            mesh.send(sender, encode(Message(body="x")))
    mesh.run_until(lambda: all(list(sender.outcomes.values()) == [ACCEPTED] * SENT for sender in senders))
    for _ in range(_SECONDS):
        mesh.run(1.0)
        for name in NODES:
            mesh.tell_second(name)
