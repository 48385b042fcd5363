"""UPDATE over $management of a cost between routers of two hosts: both ends, or neither and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from proton.utils import LinkDetached

from mesh.deploy.workdir import OBSERVER
from mesh_tests.live.management_client import managing
from mesh_tests.live.several_hosts import SeveralHosts
from mesh_tests.waiting import wait_until

TOPOLOGY = """
mesh: spread
routers:
  r1: {connect: [r2], listeners: [{authentication: none}]}
  r2: {}
addresses:
  work/#: anycast
users:
  anonymous: {send: "#", receive: "#", manage: "#"}
"""
HOSTS = {"h1": ("r1",), "h2": ("r2",)}
LONG_S = 60.0


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[SeveralHosts]:
    mesh = SeveralHosts(TOPOLOGY, HOSTS, tmp_path)
    try:
        mesh.start()
        yield mesh
    finally:
        mesh.down()


def is_managed(url: str) -> bool:
    try:
        with managing(url) as client:
            return bool(client.query("router"))
    except LinkDetached:
        return False


def costs(mesh: SeveralHosts, host: str = "h1") -> list[int]:
    found = mesh[host].observed("/api/neighbors")["items"]
    return [each["cost"] for each in found]


def test_an_update_of_a_cost_is_made_at_both_hosts_or_at_none(mesh: SeveralHosts) -> None:
    for host in HOSTS:
        mesh.wait_states(host, dict.fromkeys(("r1", "r2"), "running"))
        wait_until(lambda host=host: costs(mesh, host) == [1, 1], LONG_S, "both ends of the connection")
    url = f"amqp://127.0.0.1:{mesh.ports['r1']}"
    wait_until(lambda: is_managed(url), LONG_S, "management at r1")
    with managing(url) as client:
        asked = {"type": "connector", "name": "r2"}
        assert client.call("UPDATE", {"cost": 7}, **asked)["cost"] == 7
        wait_until(lambda: costs(mesh) == [7, 7], LONG_S, "the cost at both routers")
        # Nobody is left who could set the cost at r2.
        mesh["h2"].kill(OBSERVER)
        status, sentence = client.error("UPDATE", {"cost": 9}, **asked)
        assert status in (503, 504)
        assert "at r1 is as before" in sentence

        def cost() -> int:
            return int(client.call("READ", **asked)["cost"])

        wait_until(lambda: cost() == 7, LONG_S, "the cost of before")
