"""Ten interior routers and a thousand edges, in one process: everybody reaches everybody, and an uplink may die."""

from __future__ import annotations

from typing import Any

from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED

INTERIOR, EDGES = 10, 1000


def thousand() -> SimMesh:
    """A ring of interior routers with chords; each edge may use two neighbors."""
    routers: dict[str, Any] = {
        f"r{n}": {"connect": [f"r{n + 1}"] if n < INTERIOR - 1 else ["r0"]} for n in range(INTERIOR)
    }
    for n in range(EDGES):
        uplinks = [f"r{n % INTERIOR}", f"r{(n + 1) % INTERIOR}"]
        routers[f"e{n}"] = {"mode": "edge", "connect": uplinks}
    addresses = {"rpc": "anycast", "prices": "multicast", "to.*": "anycast"}
    # HELLO of two thousand connections is not what is tried here.
    slow = {"hello_interval_s": 30, "hello_max_age_s": 90}
    return SimMesh({"mesh": "thousand", "node_tls": False, "routers": routers, "addresses": addresses, **slow})


def test_a_thousand_edges_reach_each_other_and_lose_an_uplink():
    mesh = thousand()
    mesh.converge()
    assert sum(len(mesh.routers[f"r{n}"].snapshot().edges) for n in range(INTERIOR)) == EDGES

    receivers = [mesh.client(f"e{n}").receiver("prices", credit=10) for n in range(EDGES)]
    callee = mesh.client("e555").receiver("to.e555", credit=10)
    own = [mesh.client(f"e{n}").receiver(f"to.e{n}", credit=10) for n in range(0, EDGES, 100)]
    mesh.run(1)
    prices, caller = mesh.client("e3").sender("prices"), mesh.client("e998").sender("to.e555")
    mesh.send(prices, b"1"), mesh.send(caller, b"1")
    mesh.run_until(lambda: bool(prices.outcomes) and bool(caller.outcomes))
    assert [receiver.taken for receiver in receivers] == [[b"1"]] * EDGES
    assert callee.taken == [b"1"]

    # A hundred edges lose their uplink at once.
    mesh.kill("r5")
    mesh.run_until(lambda: all(mesh.routers[f"e{n}"].snapshot().active_uplink == "r6" for n in range(5, EDGES, 10)))
    mesh.run(2)
    mesh.send(prices, b"2"), mesh.send(caller, b"2")
    mesh.run_until(lambda: len(prices.outcomes) == 2 and len(caller.outcomes) == 2)
    assert [receiver.taken for receiver in receivers] == [[b"1", b"2"]] * EDGES
    assert callee.taken == [b"1", b"2"]
    assert prices.outcomes == caller.outcomes == {1: ACCEPTED, 2: ACCEPTED}
    assert all(not receiver.messages for receiver in own)
