"""Plans, for generated link logs, the connections between nodes, and the links over these connections.

The links are those of circuits and link routes, and links to brokers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import count, pairwise

from addressing.topology.model import Topology
from mesh.sample_logs.epochs import Epochs, PathPeriod
from mesh.sample_logs.registry import CONNECTION_LOST, FOREVER, PATH_LOST, Registry, RegistryEntry
from router.routing.spf import Path

SETTLING_US = 50_000
"""Time in us until an unused circuit is closed, and until a connection is up again."""
OLD_US = 60_000_000
"""Age in us, at the beginning of the logs, of links that exist then; connections are ten times as old."""
ROLES = {"route": "route", "broker": "broker"}
"""Role of a link by the kind in its name; links of other kinds have the role circuit."""


@dataclass(frozen=True, slots=True)
class RecordedEnds:
    """A link or connection as recorded by the nodes at both ends; messages go from the end ``near`` to ``far``."""

    near: RegistryEntry
    far: RegistryEntry


class Trunks:
    """All connections that the sample logs show between two routers, or a router and a broker, over time."""

    def __init__(self, topology: Topology, epochs: Epochs, registry: Registry, begins_us: int, ends_us: int) -> None:
        self._topology = topology
        self._epochs = epochs
        self._registry = registry
        self._begins_us = begins_us
        self._ends_us = ends_us
        self._found: dict[frozenset[str], list[tuple[str, RegistryEntry, RegistryEntry]]] = defaultdict(list)
        for edge in topology.edges():
            self._connect(edge.dialer, edge.to, (edge.dialer, edge.to))
        for broker in topology.brokers:
            for router in topology.routers_of(broker):
                self._connect(router, broker, (router, broker))

    def between(self, one: str, other: str, at_us: int) -> tuple[RegistryEntry, RegistryEntry]:
        """Return the connection between two nodes at ``at_us``, as recorded by ``one`` and as recorded by ``other``."""
        for dialer, near, far in reversed(self._found[frozenset((one, other))]):
            if near.opens_us <= at_us:
                return (near, far) if dialer == one else (far, near)
        raise ValueError(
            f"a bug in the plan: a path leads over {one} and {other}, which have no connection at {at_us} us"
        )

    def all_of(self, one: str, other: str) -> list[tuple[str, RegistryEntry, RegistryEntry]]:
        return self._found[frozenset((one, other))]

    def _connect(self, dialer: str, to: str, path: Path) -> None:
        for from_us, to_us in self._epochs.up(path):
            closes_us = FOREVER if to_us >= self._ends_us else to_us
            opens_us = from_us - 10 * OLD_US if from_us <= self._begins_us else from_us + SETTLING_US
            near, far = (
                self._half(here, there, opens_us, closes_us, max(from_us, self._begins_us))
                for here, there in ((dialer, to), (to, dialer))
            )
            self._found[frozenset((dialer, to))].append((dialer, near, far))

    def _half(self, here: str, there: str, opens_us: int, closes_us: int, at_us: int) -> RegistryEntry:
        run = self._registry.run_at(here, at_us)
        host, port = self._place(there)
        cause = CONNECTION_LOST if closes_us != FOREVER else None
        role = self._role(there)
        container = there if role in ("router", "edge") or here in self._topology.routers else self._topology.mesh
        return self._registry.connect(
            run, opens_us, closes_us, cause, role=role, container=container, remote_address=f"{host}:{port}"
        )

    def _role(self, there: str) -> str:
        if there in self._topology.brokers:
            return "broker"
        return "edge" if self._topology.routers[there].is_edge else "router"

    def _place(self, there: str) -> tuple[str, int]:
        if there in self._topology.routers:
            return self._topology.routers[there].host, self._topology.routers[there].port
        broker = self._topology.brokers[there]
        location = broker.location
        return (location.host, location.port) if location is not None else (broker.host, broker.port)


class Hops:
    """The links between nodes along paths; a link is made on first use, and closed when its path or owner is gone."""

    def __init__(self, trunks: Trunks, registry: Registry, begins_us: int) -> None:
        self._begins_us = begins_us
        self._trunks = trunks
        self._registry = registry
        self._made: dict[object, RecordedEnds] = {}
        self._counters: dict[str, count[int]] = defaultdict(lambda: count(1))

    def along(
        self, way: PathPeriod, from_us: int, owner: object, kind: str, ends_us: int, **columns: str
    ) -> list[RecordedEnds]:
        """Return the links from the first router of the path ``way`` to the last.

        Equal ``owner`` values share the links of a path. ``kind`` is the first part of the names of the links.
        """
        return [
            self.over(pair, way.path[i:], (owner, way.path, way.from_us), from_us, kind, ends_us, way.is_cut, **columns)
            for i, pair in enumerate(pairwise(way.path))
        ]

    def over(
        self,
        pair: tuple[str, str],
        path: Path,
        key: object,
        from_us: int,
        kind: str,
        ends_us: int,
        is_cut: bool,
        **columns: str,
    ) -> RecordedEnds:
        """Return the link from a node to its neighbor, made on first use. The link stays open until shortly after
        ``ends_us``, but no longer than its connection.

        The link's records have ``path`` in the column of that name.
        """
        near, far = self._trunks.between(*pair, from_us)
        found = (key, pair, near.opens_us)
        if found not in self._made:
            name = self._name(kind, pair[0], near.run.begins_us)
            common = {"name": name, "role": ROLES.get(kind, "circuit"), "path": ">".join(path), **columns}
            self._made[found] = RecordedEnds(
                self._attach(near, from_us, direction="outgoing", **common),
                self._attach(far, from_us, direction="incoming", **common),
            )
        ends = self._made[found]
        for entry in (ends.near, ends.far):
            self._keep(entry, ends_us, is_cut)
        return ends

    def _attach(self, connection: RegistryEntry, from_us: int, **columns: str) -> RegistryEntry:
        opens_us = from_us - OLD_US if from_us <= self._begins_us else from_us
        if connection.run.role == "broker":
            # A broker knows no paths: its records name the router as peer of the link, wherever deliveries come from.
            columns = {name: columns[name] for name in ("direction", "name", "address", "treatment")}
            columns["role"] = "router"
        entry = self._registry.attach(connection, opens_us, **columns)
        entry.closes_us = opens_us
        return entry

    def _keep(self, entry: RegistryEntry, ends_us: int, is_cut: bool) -> None:
        """Extend the life of a link until shortly after ``ends_us``, or until its connection closes before.

        The cause of the link's end is that of its connection, or a lost path if the path was cut.
        """
        assert entry.connection is not None
        entry.closes_us = min(max(entry.closes_us, ends_us + SETTLING_US), entry.connection.closes_us)
        is_with_connection = entry.closes_us == entry.connection.closes_us
        entry.cause = entry.connection.cause if is_with_connection else PATH_LOST if is_cut else None

    def _name(self, kind: str, router: str, run_us: int) -> str:
        return f"{kind}/{router}/{run_us // 1_000_000}/{next(self._counters[router])}"
