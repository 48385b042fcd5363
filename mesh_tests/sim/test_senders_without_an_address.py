"""A client that sends to many addresses over one link, as brokers' queues behind routers fill up."""

from pathlib import Path

import pytest
from proton import Message

from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED, RELEASED

LIMIT = 50


def mesh_of(folder: Path) -> SimMesh:
    mesh = SimMesh(
        {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
            "brokers": {"b1": {"data": "b1", "routers": ["r2"]}, "b2": {"data": "b2", "routers": ["r1"]}},
            "default_broker": "b1",
            "addresses": {
                "full": {"type": "queue", "max_messages": LIMIT},
                "orders": "queue",
                "near": {"type": "queue", "broker": "b2"},
                "rpc": "anycast",
                "prices": "multicast",
                "kept": {"type": "anycast", "fallback": "orders"},
                "work.#": "anycast",
            },
        },
        folder,
    )
    mesh.converge()
    mesh.run_until(lambda: all(broker.is_up for node in mesh.routers.values() for broker in node.snapshot().brokers))
    return mesh


def send(mesh: SimMesh, sender: SimSender, address: str, body: str) -> object:
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


def streams(mesh: SimMesh) -> list[str]:
    """The links of routers and brokers that carry the large messages of one inlet."""
    nodes = mesh.routers.values()
    links = [link for node in nodes for each in node._connections.values() for link in each.endpoint.links]
    return sorted({link.name for link in links if "stream" in link.name})


LARGE = "x" * 200_000


@pytest.mark.parametrize("ends", ["detaches", "is cut", "ends its session"])
@pytest.mark.parametrize("address", ["rpc", "prices", "orders", "near", "kept"])
def test_streams_end_with_the_sender_that_they_were_made_for(tmp_path: Path, address: str, ends: str) -> None:
    mesh = mesh_of(tmp_path)
    receiver = mesh.client("r2", "c").receiver(address, credit=100)
    client = mesh.client("r1", "goes")
    stays, goes = mesh.client("r1", "stays").sender(None), client.sender(None)
    mesh.run(1)
    send(mesh, stays, address, "before")
    send(mesh, goes, address, LARGE)
    mesh.run_until(lambda: len(receiver.messages) == 2 and not goes.open and not stays.open)
    assert streams(mesh)
    if ends == "detaches":
        goes.link.close()
    elif ends == "ends its session":
        goes.link.session.end()
    else:
        mesh.cut(client.pipe)
    mesh.flush()
    mesh.run(2)
    assert streams(mesh) == []
    send(mesh, stays, address, "after")
    mesh.run_until(lambda: len(receiver.messages) == 3 and not stays.open)


def test_a_stream_ends_when_its_sender_has_sent_to_many_other_addresses(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path)
    receiver = mesh.client("r2", "c").receiver("rpc", credit=100)
    sender = mesh.client("r1", "p").sender(None)
    stays = mesh.client("r1", "stays").sender("rpc")
    mesh.run_until(lambda: stays.link.credit > 0)
    send(mesh, sender, "rpc", LARGE)
    mesh.run_until(lambda: len(receiver.messages) == 1 and not sender.open)
    assert streams(mesh)
    for number in range(1100):
        send(mesh, sender, f"work.{number}", "small")
    mesh.run_until(lambda: not sender.open)
    mesh.run(1)
    assert streams(mesh) == []
    send(mesh, sender, "rpc", LARGE)
    mesh.run_until(lambda: len(receiver.messages) == 2 and not sender.open)
