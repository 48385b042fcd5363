"""Observations of a running mesh that a plan counts with: clients, queues, and what differs from the topology."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from addressing.names import ANONYMOUS


class Absence(StrEnum):
    """Why a node was not observed, as a predicate of the node's name."""

    DOWN = "does not run"
    SILENT = "does not answer"
    """Its process runs."""
    ELSEWHERE = "is on another host by the file"

    @property
    def plural(self) -> str:
        """The predicate of several nodes."""
        verb, _, rest = self.value.partition(" ")
        return f"{'do' if verb == 'does' else 'are'} {rest}"


@dataclass(frozen=True, slots=True)
class CountedConnection:
    """A connection of a client to a router. ``listener``: host and port of the
    listener that accepted the connection; None if the listener is unknown.
    """

    node: str
    id: str
    user: str = ANONYMOUS
    listener: str | None = None


@dataclass(frozen=True, slots=True)
class CountedLink:
    """A link of a client at a router; ``connection`` is the id of its connection. ``address`` None: it has none."""

    node: str
    connection: str
    user: str
    is_producer: bool
    address: str | None


@dataclass(frozen=True, slots=True)
class CountedQueue:
    """A queue, or a subscription of a topic, at an embedded broker. ``address`` is its name in the mesh."""

    broker: str
    address: str
    messages: int
    size_bytes: int
    is_subscription: bool = False


@dataclass(frozen=True, slots=True)
class DriftedValue:
    """A value of a running node that an operator set, and that differs from the file and from what `up` started.

    ``subject`` is a connection between routers, or a module of a node's log; ``command`` sets the declared value again.
    """

    subject: str
    declared: str
    running: str
    command: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.running}, declared {self.declared}; `{self.command}` sets it back"


@dataclass(frozen=True, slots=True)
class Observations:
    """All that a plan counts with. ``nodes``: the nodes that were observed; of others, every number is unknown.

    ``absent``: why nodes were not observed. ``unknown_because`` says in a plan why numbers of other nodes are unknown.
    """

    nodes: frozenset[str] = frozenset()
    connections: tuple[CountedConnection, ...] = ()
    links: tuple[CountedLink, ...] = ()
    queues: tuple[CountedQueue, ...] = ()
    drift: tuple[DriftedValue, ...] = ()
    absent: Mapping[str, Absence] = field(default_factory=dict)
    unknown_because: str = "the mesh does not run"

    @property
    def names(self) -> frozenset[str]:
        """The addresses that are in use, or are stored in brokers."""
        linked = {link.address for link in self.links if link.address is not None}
        return frozenset(linked | {queue.address for queue in self.queues})

    def are_observed(self, nodes: Iterable[str]) -> bool:
        """Tell whether all of ``nodes`` were observed."""
        return self.nodes.issuperset(nodes)

    def queues_of(self, names: Collection[str], brokers: Collection[str]) -> tuple[CountedQueue, ...] | None:
        """Return the queues and subscriptions of addresses at some brokers; None if not all brokers were observed."""
        if not self.are_observed(brokers):
            return None
        return tuple(queue for queue in self.queues if queue.address in names and queue.broker in brokers)


NONE_OBSERVED: Final = Observations()
"""The observations of a mesh that does not run."""
