"""Plans for generated link logs the links over which an address's messages pass, and the one-way times over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from addressing.topology.model import Topology
from mesh.sample_logs.epochs import Epochs, PathPeriod
from mesh.sample_logs.hops import Hops, RecordedEnds, Trunks
from mesh.sample_logs.population import AddressShare, SampleSession, treatment
from mesh.sample_logs.registry import Registry, RegistryEntry
from mesh.sample_logs.routing import WHOLE, RouteStep, RouteTable


@dataclass(frozen=True, slots=True)
class SampleMesh:
    """The state that the planning of all addresses shares.

    ``links``: the link of each client session.

    ``queues``: places of queues, by place of the address and broker, or by place of the address and container of the
    subscriber.
    """

    topology: Topology
    epochs: Epochs
    trunks: Trunks
    hops: Hops
    registry: Registry
    links: Mapping[SampleSession, RegistryEntry]
    queues: Mapping[tuple[int, str], int]
    table: RouteTable
    begins_us: int
    ends_us: int
    hop_us: float
    rate_per_s: float


class OwnLinks:
    """Finds the planned links of one address; links of circuits, link routes and brokers are made on first use."""

    def __init__(self, scene: SampleMesh, place: int, spoken: AddressShare) -> None:
        self._scene = scene
        self._place = place
        self._is_sharded = spoken.policy.is_sharded
        self._columns = {"address": spoken.name, "treatment": treatment(spoken)}

    def of(self, session: SampleSession) -> RegistryEntry:
        """Return the link between a client and its router in this session of the client."""
        return self._scene.links[session]

    def along(self, way: PathPeriod, owner: object, kind: str, from_us: int, ends_us: int) -> list[RecordedEnds]:
        """Return the links between the routers along a path, with the path's ends as ingress and egress in their
        records.
        """
        columns = {**self._columns, "ingress": way.path[0], "egress": way.path[-1]}
        return self._scene.hops.along(way, from_us, owner, kind, ends_us, **columns)

    def to_broker(
        self, session: SampleSession, way: PathPeriod, broker: str, from_us: int, ends_us: int
    ) -> tuple[list[RecordedEnds], RecordedEnds]:
        """Return the links between the routers of ``way``, and the link between the broker and the router next to it.

        All producers, and all consumers, of a queue on several brokers share these links; otherwise each session has
        its own.
        """
        is_put, is_sharded = session.client.is_producer, self._is_sharded
        router = way.path[-1] if is_put else way.path[0]
        kind, owner = ("anycast", broker) if is_sharded else ("route", session)
        key = (self._place, owner, is_put)
        hops = self.along(way, key, kind, from_us, ends_us)
        pair = (router, broker) if is_put else (broker, router)
        at_broker = (self._place, broker, router, is_put, None if is_sharded else session)
        last = self._scene.hops.over(pair, pair, at_broker, from_us, "broker", ends_us, way.is_cut, **self._columns)
        return hops, last

    def branch(
        self, pair: tuple[str, str], path: tuple[str, ...], since: int, from_us: int, ends_us: int
    ) -> RecordedEnds:
        """Return the link of a multicast's tree between two routers; ``path`` leads from the ingress to the link's
        end.
        """
        key = (self._place, "multicast", path, since)
        columns = {**self._columns, "ingress": path[0]}
        return self._scene.hops.over(pair, pair, key, from_us, "multicast", ends_us, False, **columns)

    def chain(
        self, way: PathPeriod, first: RegistryEntry, hops: Sequence[RecordedEnds], last: RegistryEntry
    ) -> list[RouteStep]:
        """Return a step for each router of ``way``: a message enters by the link ``first``, and leaves by ``last``."""
        incoming = [first, *(each.far for each in hops)]
        outgoing = [*(each.near for each in hops), last]
        gone_us = self._gone_us(way.path)
        return [
            RouteStep(came.run.place, came, went, WHOLE, gone, gone_us[-1] - gone)
            for came, went, gone in zip(incoming, outgoing, gone_us, strict=True)
        ]

    def hop_us(self, one: str, other: str) -> float:
        return self._scene.hop_us * self._scene.topology.costs_at(one)[other]

    def _gone_us(self, path: Sequence[str]) -> list[float]:
        gone_us = [0.0]
        for one, other in pairwise(path):
            gone_us.append(gone_us[-1] + self.hop_us(one, other))
        return gone_us
