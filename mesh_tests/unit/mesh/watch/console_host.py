"""An observer without rings and sockets: a host model that a test fills with records, and requests to its pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from addressing.topology.credentials import make_secret
from addressing.topology.loader import load_topology, parse_topology
from mesh.watch.access import Access
from mesh.watch.console import Console
from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.mesh_plan import MeshState, mesh_plan
from mesh.watch.node_summary import summary_of
from mesh.watch.observer import pattern_lookup
from mesh.watch.rest import ObserverState, application
from mesh.watch.slots import RingRecords
from mesh.watch.visible_rows import RowsByOperator
from mesh_tests.unit.mesh.watch.memory_link import MemoryHost
from recording.columns import RecordEvent, RecordKind

if TYPE_CHECKING:
    from starlette.routing import Route

    from addressing.topology.model import Topology

NOW_S = 1_800_000_000.0
PORT = 15680
TRIANGLE = """
mesh: shop
routers:
  r1: {listeners: [5672], connect: [r2, r3]}
  r2: {connect: [{to: r3, cost: 2}]}
  r3: {}
brokers:
  b1: {data: ./data/b1, routers: [r3]}
addresses:
  rpc.#: anycast
  orders: queue
"""
TOKEN = "the-token-of-the-owner"
"""The owner's token of a mesh without users, unless a test has another one."""
USERS = f"""
users:
  alice: {{password: "{make_secret("hers", iterations=4096)}"}}
"""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


class ConsoleHost:
    """The observer of ``topology``, a text or a file.

    With ``token``, the owner's, the mesh has the users USERS unless it has others. ``neighbor``: another host, with its
    own observer, which this one sees once ``neighbor`` has joined.
    """

    def __init__(
        self, topology: str | Path = TRIANGLE, token: str | None = None, neighbor: MemoryHost | None = None
    ) -> None:
        if isinstance(topology, Path):
            parsed = load_topology(topology)
        elif token is not None and "\nusers:" not in topology:
            parsed = parse_topology(topology + USERS)
        else:
            parsed = parse_topology(topology)
        self.plan = mesh_plan(parsed)
        self.model = HostModel(
            pattern_lookup(parsed), [(name, each.type.value) for name, each in parsed.addresses.items()]
        )
        self.model.on_time(NOW_S)
        self.runs: dict[str, NodeRecords] = {}
        access = self.access = Access(parsed, token or TOKEN, lambda: self.model.utc_s)
        rows = RowsByOperator(self.model, parsed)
        self.neighbor = neighbor
        self.seen = MemoryHost(neighbor.mesh, "h1", self.model, self.plan.roles) if neighbor is not None else None
        view = self.seen.view if self.seen is not None else None
        state = ObserverState("shop", "0.1.0", self.model, access, rows, view=view)
        state.console = Console(parsed, self.model, access, rows, view=view)
        state.operations = self.operations(parsed, rows)
        self.app = application(state)

    def operations(self, _: Topology, __: RowsByOperator) -> Sequence[Route]:
        """Return the routes of changes, of which a host of its own has none."""
        return ()

    @property
    def state(self) -> MeshState:
        return MeshState(self.plan, {name: summary_of(node) for name, node in self.model.nodes.items()})

    def start(self, name: str, role: str = "router") -> NodeRecords:
        run = self.runs[name] = NodeRecords(self.model, self.model.node(name), NOW_S - 60)
        run.set_role(role)
        return run

    def start_all(self) -> None:
        """Start all nodes of TRIANGLE, with all connections."""
        for name in ("r1", "r2", "r3"):
            self.start(name)
        self.start("b1", "broker")
        for name, others in (("r1", "23"), ("r2", "13"), ("r3", "12")):
            for other in others:
                self.add(name, RecordKind.NEIGHBOR, neighbor=f"r{other}", cost=1)
        self.add("r3", RecordKind.CONNECTION, connection=1, role="broker", container="b1")

    def add(self, node: str, kind: RecordKind, event: RecordEvent = RecordEvent.OPENED, **columns: Any) -> None:
        row = {"kind": kind.value, "event": event.value, **columns}
        self.runs[node].add(RingRecords(rows=[(int(NOW_S * 1e6), row)]))

    def connect(self, node: str, number: int, user: str | None = None, container: str = "app") -> None:
        self.add(node, RecordKind.CONNECTION, connection=number, role="client", user=user, container=container)

    def produce(self, node: str, number: int, connection: int, address: str) -> None:
        self.add(node, RecordKind.LINK, link=number, connection=connection, role="producer", direction="incoming",
                 address=address)  # fmt: skip

    def starve(self, node: str, link: int, cause: str) -> None:
        self.add(node, RecordKind.CREDIT, RecordEvent.CHANGED, link=link, credit=0, cause=cause, starved_us=1_000_000)

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answer:
        """Return the answer to a request; underscores in names of headers stand for hyphens."""
        return asyncio.run(self._ask(path, method, b"" if body is None else json.dumps(body).encode(), headers))

    async def _ask(self, path: str, method: str, body: bytes, headers: dict[str, str]) -> Answer:
        path, _, query = path.partition("?")
        named = {"host": f"127.0.0.1:{PORT}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "server": ("127.0.0.1", PORT), "scheme": "http", "http_version": "1.1", "root_path": "",
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start = sent[0]
        found = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))
