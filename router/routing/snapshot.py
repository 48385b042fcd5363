"""Frozen views of a router's routing state, for people and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.routing.spf import Path


@dataclass(frozen=True, slots=True)
class NeighborSnapshot:
    connection: int
    cost: int


@dataclass(frozen=True, slots=True)
class RouterSnapshot:
    """A router of the mesh, as the router that made the snapshot knows it.

    ``path`` and ``cost`` are of the cheapest path from that router; both are None while the router described here is
    out of reach.
    """

    instance: int
    ls_seq: int
    mobile_seq: int
    peers: Mapping[str, int]
    addresses: frozenset[str]
    path: Path | None
    cost: int | None


@dataclass(frozen=True, slots=True)
class RoutingSnapshot:
    router_id: str
    instance: int
    neighbors: Mapping[str, NeighborSnapshot]
    routers: Mapping[str, RouterSnapshot]
    edges: Mapping[tuple[str, str], int]
