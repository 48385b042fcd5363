"""The limits of a topology beside whose values the observer shows them. Sans-IO."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The most messages and bytes of each queue of a pattern; None for any number."""

    max_messages: int | None = None
    max_bytes: int | None = None


NO_LIMITS = QueueLimits()


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """Limits by declared pattern, by user (connections to one router), and by router (connections of clients)."""

    queues: Mapping[str, QueueLimits] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)
    routers: Mapping[str, int] = field(default_factory=dict)


def declared_limits(topology: Topology) -> DeclaredLimits:
    return DeclaredLimits(
        {
            pattern: QueueLimits(address.max_messages, address.max_bytes)
            for pattern, address in topology.addresses.items()
        },
        {name: user.max_connections for name, user in topology.users.items() if user.max_connections is not None},
        {
            name: sum(listener.max_connections for listener in router.listeners)
            for name, router in topology.routers.items()
        },
    )
