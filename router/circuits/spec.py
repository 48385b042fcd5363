"""The spec of a circuit: one property of the link, sent with the attach to every router on the path.

The ingress computes the whole path. Transit routers follow the path and choose nothing, so routers that disagree for
a moment make no loops.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from addressing.address import Address
from addressing.priority import DEFAULT_PRIORITY, MAX_PRIORITY
from router.routing.spf import Branch
from wire.errors import AmqpError, LinkError

CIRCUIT = "amqpmesh.circuit"
BY_CONTROL = ""
"""Value of the property when the attach has no room for the spec, which a control message carries (`ANNOUNCED`)."""
PATH_LOST = "amqpmesh:path-lost"
"""Condition of a detach or refusal: the circuit's path is broken. The ingress tries another path at once."""
NO_TAKER = "amqpmesh:no-taker"
"""Condition of a refusal or detach: the dynamic address has no taker. The ingress releases the deliveries."""

Tree = Mapping[str, "Tree"]


class CircuitKind(StrEnum):
    ANYCAST = "anycast"
    STREAM = "stream"
    """Anycast for deliveries that are too large to share a link, in a session of its own."""
    MULTICAST = "multicast"
    MULTICAST_SETTLED = "multicast-settled"
    """Multicast for pre-settled deliveries, which do not wait for a stalled taker; deliveries of other circuits do."""
    MULTICAST_STREAM = "multicast-stream"
    """Multicast for deliveries that are too large to share links, in sessions of its own."""
    ROUTE = "route"
    """A link route: a client's own link on its way to a broker."""

    @property
    def has_tree(self) -> bool:
        return self in (CircuitKind.MULTICAST, CircuitKind.MULTICAST_SETTLED, CircuitKind.MULTICAST_STREAM)


@dataclass(frozen=True, slots=True)
class CircuitSpec:
    """Everything that a router on the way has to know of a circuit, as sent with the attach.

    ``path``: router ids from ingress to egress. The path of a multicast branch has only the sender and the receiver;
    ``tree`` has the routers behind the receiver.

    ``broker``, ``client`` and ``link_name`` are for link routes: the broker, the client that owns the link, and the
    link's name at the broker. ``user`` is the user of that client, or of the client that used the queue first; ""
    stands for an operator, who may use any owner's queue.
    """

    kind: CircuitKind
    address: Address
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
    """The priority of the address, 0 to 9. Transit routers learn the priority only from here."""

    @property
    def egress(self) -> str:
        """The last router of the circuit's path, where the circuit ends. Raises LinkError when the path is empty."""
        if not self.path:
            raise LinkError(
                "amqp:invalid-field", f"property {CIRCUIT} of the attach: the path is empty, expected router ids"
            )
        return self.path[-1]

    def next_hop(self, router_id: str) -> str:
        """Return the router after ``router_id`` on the path. Raises LinkError if the path has no router after it."""
        try:
            return self.path[self.path.index(router_id) + 1]
        except (ValueError, IndexError):
            path = "-".join(self.path)
            raise LinkError(
                "amqp:invalid-field",
                f"router {router_id} is the last of the circuit's path {path}, or not in it: expected a next router",
            ) from None

    def to_text(self) -> str:
        """Return the spec as one JSON string, without the fields that have their default values.

        An AMQP map would take 2 KB of the engine's memory for each link.
        """
        fields = {
            "kind": self.kind.value,
            "address": self.address.text,
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
        """Parse the text of a spec, as `to_text` makes it. Raises LinkError for a malformed text."""
        try:
            value = {**_ABSENT, **json.loads(text)}
            return cls(
                kind=CircuitKind(value["kind"]),
                address=Address.parse(str(value["address"])),
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
            raise LinkError("amqp:invalid-field", f"property {CIRCUIT} of the attach is malformed: {error!r}") from None


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
        raise ValueError(f"the address priority is {value}, expected 0 to {MAX_PRIORITY}")
    return int(value)


def tree_of(branch: Branch) -> Tree:
    """Return the routers behind the first router of ``branch``, as nested maps: router id -> the tree behind it."""
    return {router: tree_of(child) for router, child in branch.children.items()}


def path_lost(why: str) -> AmqpError:
    return AmqpError(PATH_LOST, why)


def _plain(tree: Any) -> dict[str, Any]:
    return {str(router): _plain(child) for router, child in tree.items()}
