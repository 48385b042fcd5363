"""Which addresses does a router settle after an input, and how often?"""

from __future__ import annotations

import pytest

from mesh.simulation.sim_mesh import SimMesh


def line() -> SimMesh:
    routers = {"r1": {}, "r2": {"connect": ["r1"]}, "r3": {"connect": ["r2"]}}
    mesh = SimMesh({"mesh": "line", "node_tls": False, "routers": routers, "addresses": {"#": "anycast"}})
    mesh.converge()
    return mesh


def settled_at(monkeypatch: pytest.MonkeyPatch, mesh: SimMesh, router: str) -> list[str]:
    """The addresses that ``router`` settles from now on."""
    found: list[str] = []
    addresses = mesh.routers[router]._addresses
    settle = addresses._settle

    def watched(key, entry):
        found.append(entry.policy.address.name)
        settle(key, entry)

    monkeypatch.setattr(addresses, "_settle", watched)
    return found


def test_a_change_of_paths_settles_the_addresses_that_a_path_concerns(monkeypatch: pytest.MonkeyPatch):
    mesh = line()
    client = mesh.client("r1")
    client.receiver("consumed here")
    client.sender("produced here")
    mesh.client("r2").receiver("produced here")
    mesh.run(1)
    found = settled_at(monkeypatch, mesh, "r1")
    mesh.cut_trunk("r2", "r3")
    mesh.run(0.01)
    assert set(found) == {"produced here"}


def test_a_message_settles_no_address(monkeypatch: pytest.MonkeyPatch):
    mesh = line()
    client = mesh.client("r1")
    receiver, sender = client.receiver("orders"), client.sender("orders")
    mesh.run(1)
    found = settled_at(monkeypatch, mesh, "r1")
    sender.send(b"1")
    mesh.run(0.1)
    assert receiver.messages == [b"1"]
    assert found == []


def test_a_lost_connection_settles_an_address_once_however_many_consumers_are_lost(monkeypatch: pytest.MonkeyPatch):
    mesh = line()
    client, other = mesh.client("r1"), mesh.client("r1")
    for _ in range(3):
        client.receiver("orders")
    other.receiver("orders")
    mesh.run(1)
    found = settled_at(monkeypatch, mesh, "r1")
    mesh.cut(client.pipe)
    mesh.run(0.01)
    assert found == ["orders"]
