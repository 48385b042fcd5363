"""What a circuit's attach says to every router on its path: link properties under one key.

The ingress computes the whole path; transit routers obey it and choose nothing, so routers that disagree for a moment
make no loops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from addressing.book import DEFAULT_PRIORITY, MAX_PRIORITY
from router.routing.spf import Branch
from wire.errors import AmqpError, LinkError

CIRCUIT = "amqpmesh.circuit"
BY_CONTROL = ""
"""In its place, where an attach has no room for it: the control link says it, by the name of the link."""
PATH_LOST = "amqpmesh:path-lost"
"""Condition of a detach or refusal that says: this way is broken, another may do."""
NO_TAKER = "amqpmesh:no-taker"
"""Condition of a refusal that says: there is nobody behind a dynamic address."""

Tree = Mapping[str, "Tree"]


class CircuitKind(StrEnum):
    ANYCAST = "anycast"
    STREAM = "stream"
    """Anycast for deliveries that are too large to share a link, in a session of its own."""
    MULTICAST = "multicast"
    MULTICAST_SETTLED = "multicast-settled"
    """Multicast for what its producers send settled: it does not wait for who stalls, as the others do."""
    MULTICAST_STREAM = "multicast-stream"
    """Multicast for deliveries that are too large to share links, in sessions of its own."""
    ROUTE = "route"
    """A client's own link on its way to a broker."""

    @property
    def has_tree(self) -> bool:
        return self in (CircuitKind.MULTICAST, CircuitKind.MULTICAST_SETTLED, CircuitKind.MULTICAST_STREAM)


@dataclass(frozen=True, slots=True)
class CircuitSpec:
    """``path``: router ids from ingress to egress (a multicast has ``tree`` instead, of what lies behind the receiver).

    ``broker``, ``client`` and ``link_name`` are for routes: whose link it is, by what name the broker knows it.
    ``user`` is that client's, or the one who used the queue first; "" for an operator, who may have what is anybody's.
    """

    kind: CircuitKind
    address: str
    ingress: str
    phase: int = 0
    path: tuple[str, ...] = ()
    tree: Tree = field(default_factory=dict)
    broker: str = ""
    client: str = ""
    link_name: str = ""
    user: str = ""
    outlives_link: bool = False
    priority: int = DEFAULT_PRIORITY
    """The address's, 0 to 9. Who passes the circuit on knows it by this alone."""

    @property
    def egress(self) -> str:
        """The last router of the path. Raises LinkError when the path is empty."""
        if not self.path:
            raise LinkError("amqp:invalid-field", f"{CIRCUIT} of the attach has an empty path, expected router ids")
        return self.path[-1]

    def next_hop(self, router_id: str) -> str:
        """Who comes after ``router_id``. Raises LinkError when it is not on the path, or at its end."""
        try:
            return self.path[self.path.index(router_id) + 1]
        except (ValueError, IndexError):
            path = "-".join(self.path)
            raise LinkError("amqp:invalid-field", f"{router_id} has no next hop on the path {path}") from None

    def to_text(self) -> str:
        """JSON. One string: as an AMQP map it would take two kilobytes of the engine at each link for good."""
        fields = {
            "kind": self.kind.value,
            "address": self.address,
            "ingress": self.ingress,
            "phase": self.phase,
            "path": list(self.path),
            "tree": _plain(self.tree),
            "broker": self.broker,
            "client": self.client,
            "link_name": self.link_name,
            "user": self.user,
            "outlives_link": self.outlives_link,
            "priority": self.priority,
        }
        said = {name: value for name, value in fields.items() if value != _ABSENT.get(name)}
        return json.dumps(said, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: Any) -> CircuitSpec:
        """Raises LinkError for anything a router would not have sent."""
        try:
            value = {**_ABSENT, **json.loads(text)}
            return cls(
                kind=CircuitKind(value["kind"]),
                address=str(value["address"]),
                ingress=str(value["ingress"]),
                phase=int(value["phase"]),
                path=tuple(str(router) for router in value["path"]),
                tree=_plain(value["tree"]),
                broker=str(value["broker"]),
                client=str(value["client"]),
                link_name=str(value["link_name"]),
                user=str(value["user"]),
                outlives_link=bool(value["outlives_link"]),
                priority=_level(value["priority"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise LinkError("amqp:invalid-field", f"{CIRCUIT} of the attach is malformed: {error!r}") from None


_ABSENT: dict[str, Any] = {
    "address": "",
    "phase": 0,
    "path": [],
    "tree": {},
    "broker": "",
    "client": "",
    "link_name": "",
    "user": "",
    "outlives_link": False,
    "priority": DEFAULT_PRIORITY,
}


def _level(value: Any) -> int:
    if not 0 <= int(value) <= MAX_PRIORITY:
        raise ValueError(f"priority {value}")
    return int(value)


def tree_of(branch: Branch) -> Tree:
    """What lies behind the neighbor that a branch belongs to."""
    return {router: tree_of(child) for router, child in branch.children.items()}


def path_lost(why: str) -> AmqpError:
    return AmqpError(PATH_LOST, why)


def _plain(tree: Any) -> dict[str, Any]:
    return {str(router): _plain(child) for router, child in tree.items()}
