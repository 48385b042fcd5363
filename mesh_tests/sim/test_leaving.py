"""Does what a producer sent and settled go on when it leaves at once?"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.clients import SimClient
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.vanishing import addressed
from router.forwarding import ties

SIZES = [(10, 5), (60_000, 20), (200_000, 1), (1_000_000, 3)]
BROKERS = {
    "brokers": {name: {"data": name, "routers": ["r3"]} for name in ("b1", "b2")},
    "addresses": {"orders": {"type": "queue", "broker": "b1"}, "jobs": {"type": "queue", "brokers": ["b1", "b2"]}},
}


def data_section(size: int) -> bytes:
    return b"\x00\x53\x75\xb0" + size.to_bytes(4) + bytes(size)


@pytest.fixture(params=["link", "connection"])
def what(request: pytest.FixtureRequest) -> str:
    """Is closed."""
    return str(request.param)


def send_and_leave(mesh: SimMesh, client: SimClient, address: str | None, messages: list[bytes], what: str) -> None:
    """Its goodbye is in the same breath as what it sends, and its socket closed once it is answered."""
    sender = client.sender(address)
    mesh.run_until(lambda: sender.link.credit >= len(messages))
    for message in messages:
        sender.send(message, settled=True)
    if what == "link":
        sender.link.close()
        mesh.flush()
        return
    client.endpoint.close()
    mesh.run_until(lambda: client.endpoint.is_finished)
    mesh.cut(client.pipe)


@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_consumers_get_what_it_sent(what: str, egress: str, address: str, size: int, count: int) -> None:
    ties_before = ties.count()
    mesh = line()
    receiver = mesh.client(egress).receiver(address, credit=100)
    mesh.run(0.1)
    send_and_leave(mesh, mesh.client("r1"), address, [bytes(size)] * count, what)
    mesh.run_until(lambda: len(receiver.messages) == count)
    assert receiver.aborted == 0
    mesh.run(15)
    assert ties.count() == ties_before


@pytest.mark.parametrize(("size", "count"), SIZES, ids=[f"{count} x {size}" for size, count in SIZES])
@pytest.mark.parametrize("router", ["r1", "r2", "r3"])
@pytest.mark.parametrize("address", ["orders", "jobs"])
def test_queues_get_what_it_sent(what: str, tmp_path: Path, address: str, router: str, size: int, count: int) -> None:
    routers = {"r1": {"connect": ["r2"]}, "r2": {"connect": ["r3"]}, "r3": {}}
    mesh = SimMesh({"mesh": "leaving", "node_tls": False, "routers": routers, **BROKERS}, tmp_path)
    mesh.converge()
    mesh.run(0.5)
    send_and_leave(mesh, mesh.client(router), address, [data_section(size)] * count, what)
    mesh.run(0.5)
    receiver = mesh.client("r1").receiver(address, credit=100)
    mesh.run_until(lambda: len(receiver.messages) == count)


def test_consumers_get_what_it_sent_without_an_address(what: str, egress: str) -> None:
    mesh = line()
    receiver = mesh.client(egress).receiver("rpc", credit=1 if what == "link" else 10)
    mesh.run(0.1)
    send_and_leave(
        mesh, mesh.client("r1"), None, [addressed("rpc") + data_section(size) for size in (1, 2, 300_000)], what
    )
    mesh.run(1.0)
    receiver.link.grant(10)
    mesh.run_until(lambda: len(receiver.messages) == 3)


def test_nobody_is_waited_for_who_takes_nothing() -> None:
    mesh = line(1)
    receiver = mesh.client("r1").receiver("rpc", credit=0)
    client = mesh.client("r1")
    sender = client.sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0)
    sender.send(b"x", settled=True)
    sender.link.close()
    mesh.run(1.0)
    assert not sender.link.is_gone
    mesh.run(2.0)
    assert sender.link.is_gone
    receiver.link.grant(10)
    mesh.run(1.0)
    assert receiver.messages == []
