"""An observer that changes a mesh: over a host that a test fills, with nodes that a test answers for."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from addressing.address import OBSERVER_PREFIX, OBSERVERS
from addressing.topology.credentials import make_secret
from addressing.topology.loader import parse_topology
from mesh.client.errors import MeshError
from mesh.watch.access import Access
from mesh.watch.audit import AuditLog
from mesh.watch.console import Console
from mesh.watch.host_answers import HostAnswers
from mesh.watch.host_changes import HostChanges
from mesh.watch.host_model import HostModel
from mesh.watch.idempotency import WriteKeys
from mesh.watch.node_events import NodeEvents
from mesh.watch.operator_views import OperatorViews, handlers_of
from mesh.watch.other_hosts import OtherHosts
from mesh.watch.pattern_lookup import declared_patterns, pattern_lookup
from mesh.watch.rest import ObserverState, application, routes_of
from mesh.watch.visible_rows import RowsByOperator
from mesh.watch.writes import MeshWrites
from mesh_tests.unit.mesh.watch.memory_link import MemoryLink, MemoryMesh
from mesh_tests.unit.mesh.watch.sample_host import SampleHost

URL = "http://127.0.0.1:15680"
TOKEN = "the-token-of-the-owner"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PASSWORD = "hers"
SECRET = make_secret(PASSWORD, iterations=4096)
PLAIN = """
mesh: shop
routers: {r1: {connect: [r2]}, r2: {}, e1: {mode: edge, connect: [r1]}}
brokers:
  b1: {data: ./b1, routers: [r1]}
  rabbit: {url: "amqp://127.0.0.1:5699", routers: [r1]}
default_broker: b1
addresses:
  orders: queue
  orders.dead: queue
  returns: {type: queue, broker: b1, broker_address: its.name.there}
  news.#: topic
  rpc: anycast
"""
USERS = f"""
users:
  nobody: {{password: "{SECRET}"}}
  viewer: {{password: "{SECRET}", view: ["orders.#"]}}
  browser: {{password: "{SECRET}", browse: ["orders.#"]}}
  keeper: {{password: "{SECRET}", manage: ["orders.#"]}}
  oncall: {{password: "{SECRET}", view: ["#"]}}
  admin: {{password: "{SECRET}", manage: ["#"]}}
  steward: {{password: "{SECRET}", manage: ["#"]}}
"""
Answer = Any


class FakeRequests:
    """The nodes. ``answers``: by name of the operation, the answer, or an exception to raise, or a function."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[tuple[str, bytes]] = []
        self.answers: dict[str, Answer] = {
            "show": lambda request: {"queues": [{"address": request["address"], "available_count": 12}]},
            "browse": {"messages": [], "next": None, "last": 20, "scanned": 0},
            "log_levels": {"": "info"},
            "cost": 1,
        }

    async def ask_broker(self, broker: str, request: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        parts.append(self._answer(broker, dict(request), {"messages": 3}))

    async def ask_node(self, node: str, op: str, **arguments: Any) -> Any:
        return self._answer(node, {"op": op, **arguments}, {})

    async def send(self, routers: Sequence[str], address: str, message: bytes) -> str:
        self.sent.append((address, message))
        found = self.answers.get("send", routers[0])
        if isinstance(found, Exception):
            raise found
        return str(found)

    def ops(self) -> list[str]:
        """The operations that were asked for, but for those that only look."""
        return [request["op"] for _, request in self.asked if request["op"] not in ("show", "browse", "log_levels")]

    def _answer(self, node: str, request: dict[str, Any], default: Any) -> Any:
        self.asked.append((node, request))
        found = self.answers.get(request["op"], default)
        if isinstance(found, (MeshError, OSError)):
            raise found
        return found(request) if callable(found) else found


class WritingHost:
    """An observer over ``folder``, its work directory. ``users``: lines of YAML; empty for a mesh without users.

    ``mesh``: the mesh over which it asks the observers of other hosts, as the host with the name of the folder.
    """

    def __init__(self, folder: Path, users: str = USERS, mesh: MemoryMesh | None = None) -> None:
        topology = parse_topology(PLAIN + users)
        self.folder, self.requests = folder, FakeRequests()
        self.sample = SampleHost({})
        self.host = self.sample.model = HostModel(pattern_lookup(topology), declared_patterns(topology))
        self.host.on_time(4_000_000_000.0)
        self.troubles: list[str] = []
        self.access = Access(topology, TOKEN, lambda: self.host.utc_s)
        rows = RowsByOperator(self.host, topology)
        self.keys, self.audit = (
            WriteKeys(folder / "audit" / "keys.jsonl", lambda: self.host.utc_s),
            AuditLog(folder / "audit"),
        )
        self.link = MemoryLink(mesh or MemoryMesh())
        self.name = self.host.host = folder.name
        self.others = OtherHosts(self.link, self.name, HostAnswers(self.host), lambda: self.host.nodes)
        elsewhere = HostChanges(self.others) if mesh is not None else None
        self.writes = MeshWrites(
            topology, self.host, rows, self.requests, self.keys, self.audit, self.troubles.append, elsewhere
        )
        asyncio.run(self.writes.settle_interrupted())
        (folder / "log").mkdir(exist_ok=True)
        views = OperatorViews(topology, self.host, rows, self.writes, self.audit, NodeEvents(folder / "log"), elsewhere)
        self.others.answer_by(handlers_of(self.writes, views))
        state = ObserverState("shop", "1.0", self.host, self.access, rows, is_complete=True)
        self.stopping = state.stopping
        self.console = state.console = Console(topology, self.host, self.access, rows)
        state.operations = [*self.writes.routes(), *views.routes()]
        self.routes = routes_of(state)
        self.app = application(state)
        self.client = TestClient(self.app, base_url=URL)
        self._keys = (f"key-{number}" for number in itertools.count())

    def join(self) -> None:
        """Say hello to the other hosts of the mesh, and answer them."""

        async def say_hello() -> None:
            await self.link.serve(OBSERVERS, self.others._on_said_to_all)
            await self.link.serve(OBSERVER_PREFIX + self.name, self.others._on_asked)
            await self.others._say("hello")

        asyncio.run(say_hello())

    def ask(self, method: str, path: str, user: str | None = "owner", **more: Any) -> Any:
        """Return the answer. ``user`` None: without a login; "owner": by the token; else by the password."""
        if user == "owner":
            more["headers"] = {**BEARER, **more.get("headers", {})}
        elif user is not None:
            more["auth"] = (user, PASSWORD)
        return self.client.request(method, path, **more)

    def write(
        self, path: str, body: Any = None, user: str | None = "owner", *, method: str = "POST", **headers: str
    ) -> Any:
        named = {"Content-Type": "application/json", "Idempotency-Key": next(self._keys), **headers}
        named = {name.replace("_", "-"): value for name, value in named.items()}
        return self.ask(method, path, user, json={} if body is None else body, headers=named)

    def audited(self) -> list[dict[str, Any]]:
        return list(self.ask("GET", "/api/audit").json()["items"])
