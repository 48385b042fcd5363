"""Does a queue catch what an anycast address cannot deliver, and is each producer's order kept?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.queue import QueueSnapshot
from mesh_tests.sim.clients import Receiver, Sender
from mesh_tests.sim.world import SimMesh
from wire.delivery import ACCEPTED, RELEASED

PATH_WAIT_S = 2.0


def mesh_of(folder: Path, keepers: list[str], routers: int = 3, **more: Any) -> SimMesh:
    """A line of routers; ``keepers`` are connected to b1, which has the fallback of rpc."""
    mesh = SimMesh(
        {
            "mesh": "fallback",
            "node_tls": False,
            "routers": {f"r{n}": {"connect": [f"r{n + 1}"] if n < routers else []} for n in range(1, routers + 1)},
            "brokers": {"b1": {"data": "b1", "routers": keepers}},
            "addresses": {"rpc": {"type": "anycast", "fallback": "rpc.kept"}, "rpc.kept": "queue"},
            **more,
        },
        folder,
    )
    mesh.converge()
    wait_for_brokers(mesh)
    return mesh


def wait_for_brokers(mesh: SimMesh) -> None:
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    mesh.run(0.2)


def body(text: str) -> bytes:
    """An AMQP message whose body is this text."""
    data = text.encode()
    return b"\x00\x53\x75\xa0" + bytes([len(data)]) + data


def text_of(message: bytes) -> str:
    start = message.index(b"\x00\x53\x75\xa0")
    return message[start + 5 :].decode()


def texts(receiver: Receiver) -> list[str]:
    return [text_of(message) for message in receiver.messages]


def send(mesh: SimMesh, sender: Sender, *names: str) -> None:
    for name in names:
        mesh.send(sender, body(name))


def numbered(prefix: str, count: int, first: int = 1) -> list[str]:
    return [f"{prefix}{n}" for n in range(first, first + count)]


def is_falling_back(mesh: SimMesh, router: str) -> bool:
    return any(each.is_falling_back for each in mesh.routers[router].snapshot().addresses if each.address == "rpc")


def kept(mesh: SimMesh) -> QueueSnapshot:
    """What the queue holds."""
    return next(each.queue for each in mesh.brokers["b1"].snapshot().queues if each.address == "rpc.kept")


@pytest.fixture(params=["r1", "r2", "r3"], ids=["keeper r1", "keeper r2", "keeper r3"])
def keeper(request: pytest.FixtureRequest) -> str:
    return request.param


def test_what_nobody_takes_is_accepted_once_the_queue_has_it(tmp_path: Path, keeper: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 5))
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 6), ACCEPTED), 1.0)
    assert kept(mesh).available_count == 5


def test_a_taker_gets_the_backlog_first_and_then_what_is_sent(tmp_path: Path, keeper: str, egress: str):
    mesh = mesh_of(tmp_path, [keeper])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 20))
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    receiver = mesh.client(egress, "c").receiver("rpc", credit=5)
    send(mesh, sender, *numbered("m", 20, first=21))
    mesh.run_until(lambda: len(receiver.messages) == 40)
    assert texts(receiver) == numbered("m", 40)
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"), 1.0)
    stored = kept(mesh).enqueued_total
    send(mesh, sender, "direct")
    mesh.run_until(lambda: texts(receiver)[40:] == ["direct"])
    assert kept(mesh).enqueued_total == stored
