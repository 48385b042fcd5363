"""The priority that the topology gives an address is that of its groups, at every router."""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line

ADDRESSES = {
    "urgent": {"type": "anycast", "priority": 9},
    "news": {"type": "multicast", "priority": 0},
    "rpc": "anycast",
}


@pytest.mark.parametrize(("address", "priority"), [("urgent", 9), ("news", 0), ("rpc", 4)])
def test_an_address_has_its_priority_where_it_enters_and_where_it_leaves_the_mesh(address: str, priority: int):
    mesh = line(addresses=ADDRESSES)
    receiver = mesh.client("r3").receiver(address)
    sender = mesh.client("r1").sender(address)
    mesh.send(sender)
    mesh.run_until(lambda: len(receiver.messages) == 1)
    for router in ("r1", "r3"):
        snapshot = mesh.routers[router].snapshot()
        assert {each.address: each.priority for each in snapshot.addresses} == {address: priority}
