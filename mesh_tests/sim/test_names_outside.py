"""Are all names that others see those that they were before addresses had a space? The literals are of that version.

Others are brokers, neighbors, the disk, link logs and the logs of nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker.store.read_store import reading
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from recording.records import Recorder
from router.circuits.spec import CircuitSpec
from router.events import AttachRefused
from wire.terminus import Durability, Expiry

DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
ADDRESSES: dict[str, Any] = {
    "rpc": {"type": "anycast", "fallback": "orders"},
    "prices/eu": "multicast",
    "orders": {"type": "queue", "broker": "b1", "dead_letter": "dead"},
    "dead": {"type": "queue", "broker": "b1", "broker_address": "graveyard"},
    "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
    "news.#": {"type": "topic", "broker": "b1"},
}
CIRCUIT = '{"kind":"anycast","address":"prices/eu","ingress":"r1","path":["r1","r2"]}'


class Names:
    """r1 - r2, brokers b1 and b2 at r1; each node has a ring of its own."""

    def __init__(self, folder: Path) -> None:
        self.rings = {name: Ring(10_000) for name in ("r1", "r2", "b1", "b2")}
        topology = {
            "mesh": "mesh",
            "node_tls": False,
            "routers": {"r1": {}, "r2": {"connect": ["r1"]}},
            "brokers": {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r1"]}},
            "addresses": ADDRESSES,
        }
        self.folder = folder
        self.mesh = SimMesh(topology, folder, recorder_of=lambda name: Recorder(self.rings[name].memory, "full"))
        self.mesh.converge()
        self.mesh.run(0.5)
        self.dynamic = self._live()
        self.keys = self._keys()
        for name in self.rings:
            self.mesh.tell_second(name)
        self.rows = {name: ring.take()[1] for name, ring in self.rings.items()}
        self.mesh.close()

    def _live(self) -> str:
        mesh, far = self.mesh, self.mesh.client("r2", "app")
        for address in ("rpc", "prices/eu", "sharded", "amqp:orders", "dead"):
            far.receiver(address, name=f"from {address}")
        far.receiver("news.#", name="own", **DURABLE)
        shared = {**DURABLE, "capabilities": ("shared",)}
        anybodys = {**DURABLE, "capabilities": ("shared", "global")}
        far.receiver("news.eu", name="both|2", **shared)
        mesh.client("r2", "a|b%").receiver("news.eu", name="all|global", **anybodys)
        replies = far.receiver(None, name="replies", dynamic=True)
        mesh.run(0.5)
        near = mesh.client("r1", "app")
        near.sender("amqp:nobody", name="refused")
        senders = [near.sender(address) for address in ("rpc", "prices/eu", "sharded", "orders", "news.eu", None)]
        mesh.run(0.5)
        for sender in senders[:-1]:
            mesh.send(sender, b"\x00\x53\x77\xa1\x01x")
        mesh.run(0.5)
        address: str = replies.link.remote_source.address
        return address

    def _keys(self) -> set[str]:
        known = self.mesh.routers["r1"]._routing.snapshot().routers
        return {f"{router} {key}" for router in known for key in known[router].addresses}

    def links(self, node: str, *columns: str) -> set[tuple[Any, ...]]:
        rows = [row for row in self.rows[node] if row["kind"] == "link" and row["event"] == "opened"]
        return {tuple(row.get(column) for column in columns) for row in rows}


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    return Names(tmp_path_factory.mktemp("names"))


def test_brokers_see_these_addresses_and_link_names(names: Names) -> None:
    assert names.links("b1", "address", "name") == {
        ("graveyard", "app|from dead|r2/2/2"),
        ("news.#", "app|own"),
        ("news.eu", "all|global|r2/2/3"),
        ("news.eu", "app%7Cboth|2|r2/2/2"),
        ("news.eu", "app|s5|r1/1/5"),
        ("orders", "app|from amqp:orders|r2/2/2"),
        ("orders", "app|s4|r1/1/5"),
        ("orders", "feed/r1/1/orders"),
        ("sharded", "in/r1/2/sharded"),
        ("sharded", "out/r1/4/sharded"),
    }
    assert names.links("b2", "address", "name") == {
        ("sharded", "in/r1/3/sharded"),
        ("sharded", "out/r1/5/sharded"),
    }


def test_routers_advertise_these_keys(names: Names) -> None:
    assert names.keys == {"r1 B:b1", "r1 B:b2", "r1 P0prices/eu", "r2 M0rpc", "r2 M1sharded", "r2 X0prices/eu"}


def test_a_circuit_has_this_text() -> None:
    assert CircuitSpec.from_text(CIRCUIT).to_text() == CIRCUIT


def test_link_logs_have_these_addresses(names: Names) -> None:
    circuits = {"dead", "news.#", "news.eu", "orders", "prices/eu", "rpc", "sharded"}
    assert names.links("r2", "role", "address") == {
        *(("circuit", address) for address in circuits),
        *(("consumer", address) for address in (circuits - {"orders"}) | {"amqp:orders", "_topo/0/r2/temp.t1"}),
    }
    at_brokers = {"graveyard", "news.#", "news.eu", "orders", "rpc", "sharded"}
    assert names.links("r1", "role", "address") == {
        *(("circuit", address) for address in circuits),
        *(("broker", address) for address in at_brokers),
        *(("producer", address) for address in ("news.eu", "orders", "prices/eu", "rpc", "sharded")),
    }
    queues = [row for row in names.rows["b1"] if row["kind"] == "queue" and row["event"] == "opened"]
    assert {(row["address"], row.get("name")) for row in queues} == {
        ("graveyard", None),
        ("orders", None),
        ("sharded", None),
        ("news.#", "mesh|app|own"),
        ("news.eu", "app|both (shared)"),
        ("news.eu", "all (shared, global)"),
    }


def test_stores_have_these_rows_and_files(names: Names) -> None:
    with reading(names.folder / "b1") as store:
        found = {(row.kind.value, row.address, row.container_id, row.link_name) for row in store.queues()}
    assert found == {
        ("queue", "graveyard", "", ""),
        ("queue", "orders", "", ""),
        ("queue", "sharded", "", ""),
        ("subscription", "news.#", "mesh", "app|own"),
        ("subscription", "news.eu", "|shared|app", "both"),
        ("subscription", "news.eu", "|shared", "all"),
    }
    assert {path.name for path in (names.folder / "b1").iterdir() if path.is_file()} == {
        "anchor",
        "first-page",
        "lock",
        "store.db",
    }


def test_clients_and_events_have_these_addresses(names: Names) -> None:
    assert names.dynamic == "amqp:/_topo/0/r2/temp.t1"
    refused = [event for _, _, event in names.mesh.log if isinstance(event, AttachRefused)]
    assert [(event.address, event.description) for event in refused] == [
        ("amqp:nobody", "the topology declares no address 'nobody'"),
    ]
