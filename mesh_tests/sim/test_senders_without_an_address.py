"""A client that sends to many addresses over one link, as brokers' queues behind routers fill up."""

from pathlib import Path

from proton import Message

from mesh.simulation.clients import Sender
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED, RELEASED

LIMIT = 50


def mesh_of(folder: Path) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r2"]}},
            "addresses": {"full": {"type": "queue", "max_messages": LIMIT}, "orders": "queue"},
        },
        folder,
    )
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    return mesh


def send(mesh: SimMesh, sender: Sender, address: str, body: str) -> object:
    mesh.run_until(lambda: sender.link.credit > 0)
    return sender.send(Message(address=address, body=body).encode())


def test_a_full_queue_holds_up_nothing_that_goes_elsewhere_for_long(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path)
    sender = mesh.client("r1", "p").sender(None)
    for number in range(400):
        send(mesh, sender, "full", str(number))
    for number in range(400):
        send(mesh, sender, "orders", str(number))
    mesh.run(1)
    outcomes = list(sender.outcomes.values())
    assert outcomes.count(ACCEPTED) >= LIMIT + 400
    assert outcomes.count(ACCEPTED) + outcomes.count(RELEASED) + len(sender.open) == 800
    held = mesh.client("r2", "c").receiver("full", credit=1000)
    mesh.run_until(lambda: len(sender.open) == 0)
    mesh.run(1)
    assert len(held.messages) + 400 == list(sender.outcomes.values()).count(ACCEPTED)
