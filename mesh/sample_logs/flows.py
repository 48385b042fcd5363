"""Plans, for generated link logs, the routes and rates of an address's messages.

The plan is made anew after each change of clients, credit or outages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from addressing.kinds import Distribution
from mesh.sample_logs.epochs import PathPeriod
from mesh.sample_logs.multicast import MulticastTree
from mesh.sample_logs.own_links import OwnLinks, SampleMesh
from mesh.sample_logs.population import AddressShare, SampleSession
from mesh.sample_logs.routing import Route
from mesh.sample_logs.starvation import StarvedSpan
from router.routing.spf import tree

NEVER_TOLD_US = 2_000_000
"""Time in us for which a mesh holds messages until a path or taker is back; a producer does not starve in a shorter
gap.
"""


class Flows:
    """The planned message flows of one address.

    ``without_takers`` collects the spans in which a producer had no path to any consumer or broker.
    """

    def __init__(
        self,
        scene: SampleMesh,
        place: int,
        spoken: AddressShare,
        sessions: Sequence[SampleSession],
        hungry: Sequence[StarvedSpan],
    ):
        self._scene = scene
        self._place = place
        self._spoken = spoken
        self._links = OwnLinks(scene, place, spoken)
        self._producers = [each for each in sessions if each.client.is_producer]
        self._consumers = [each for each in sessions if not each.client.is_producer]
        self._hungry = hungry
        self.without_takers: list[StarvedSpan] = []

    def lay(self) -> None:
        """Add all routes of this address, and their rates in each span of time, to the mesh's table of routes."""
        for from_us, to_us in self._segments():
            producers = [each for each in _now(self._producers, from_us) if not self._is_hungry(each, from_us)]
            consumers = list(_now(self._consumers, from_us))
            if self._spoken.policy.kind.is_stored:
                self._put(producers, from_us, to_us)
                self._fetch(consumers, from_us, to_us)
            elif self._spoken.policy.kind.is_copied_by_routers:
                self._spread(producers, consumers, from_us, to_us)
            else:
                self._pass_on(producers, consumers, from_us, to_us)

    def _segments(self) -> Iterator[tuple[int, int]]:
        scene = self._scene
        spans: Iterable[SampleSession | StarvedSpan] = (*self._producers, *self._consumers, *self._hungry)
        times = {at_us for each in spans for at_us in (each.from_us, each.to_us)}
        times |= {*scene.epochs.bounds, scene.begins_us, scene.ends_us}
        return pairwise(sorted(at_us for at_us in times if scene.begins_us <= at_us <= scene.ends_us))

    def _is_hungry(self, session: SampleSession, at_us: int) -> bool:
        return any(each.session is session and each.from_us <= at_us < each.to_us for each in self._hungry)

    def _rate(self, producer: SampleSession) -> float:
        return self._scene.rate_per_s * self._spoken.share * producer.client.share

    def _pass_on(
        self, producers: list[SampleSession], consumers: list[SampleSession], from_us: int, to_us: int
    ) -> None:
        for producer in producers:
            ways = [
                (consumer, way)
                for consumer in consumers
                if (way := self._scene.epochs.way(from_us, producer.client.router, (consumer.client.router,)))
            ]
            if not ways:
                self._starve(producer, from_us, to_us)
                continue
            shares = self._shares(ways)
            for (consumer, way), share in zip(ways, shares, strict=True):
                if share:
                    place = self._anycast(producer, consumer, way, from_us)
                    self._scene.table.use(place, from_us, to_us, self._rate(producer) * share)

    def _shares(self, ways: Sequence[tuple[SampleSession, PathPeriod]]) -> list[float]:
        is_closest = self._spoken.policy.distribution is Distribution.CLOSEST
        nearest = min(way.cost for _, way in ways)
        weights = [
            float(way.cost == nearest) if is_closest else consumer.client.share / (1 + way.cost)
            for consumer, way in ways
        ]
        return [weight / sum(weights) for weight in weights]

    def _anycast(self, producer: SampleSession, consumer: SampleSession, way: PathPeriod, from_us: int) -> int:
        ends_us, is_cut = _end((producer, consumer), (way,))
        hops = self._links.along(way, (self._place, "anycast"), "anycast", from_us, ends_us)
        key = (producer, consumer, way.path, way.from_us)
        if key in self._scene.table.places:
            return self._scene.table.places[key]
        steps = self._links.chain(way, self._links.of(producer), hops, self._links.of(consumer))
        return self._scene.table.add(key, Route(self._place, ends_us, is_cut, producer.client.is_settled, steps))

    def _put(self, producers: list[SampleSession], from_us: int, to_us: int) -> None:
        brokers = self._spoken.policy.brokers
        for producer in producers:
            reached = [(broker, way) for broker in brokers if (way := self._to_broker(producer, broker, from_us))]
            if not reached:
                self._starve(producer, from_us, to_us)
            for broker, way in reached:
                place = self._to_queue(producer, broker, way, from_us)
                self._scene.table.use(place, from_us, to_us, self._rate(producer) / len(reached))

    def _to_queue(self, producer: SampleSession, broker: str, way: PathPeriod, from_us: int) -> int:
        ends_us, is_cut = _end((producer,), (way,))
        hops, last = self._links.to_broker(producer, way, broker, from_us, ends_us)
        key = (producer, broker, way.path, way.from_us)
        if key in self._scene.table.places:
            return self._scene.table.places[key]
        steps = self._links.chain(way, self._links.of(producer), hops, last.near)
        into = self._queues_at(broker)
        route = Route(self._place, ends_us, is_cut, producer.client.is_settled, steps, into=into)
        return self._scene.table.add(key, route)

    def _fetch(self, consumers: list[SampleSession], from_us: int, to_us: int) -> None:
        for consumer in consumers:
            for broker in self._spoken.policy.brokers:
                way = self._to_broker(consumer, broker, from_us)
                if way is not None:
                    place = self._from_queue(consumer, broker, way, from_us)
                    self._scene.table.use(place, from_us, to_us, consumer.client.share)

    def _from_queue(self, consumer: SampleSession, broker: str, way: PathPeriod, from_us: int) -> int:
        ends_us, is_cut = _end((consumer,), (way,))
        back = PathPeriod(way.path[::-1], way.from_us, way.to_us, way.is_cut, way.cost)
        hops, first = self._links.to_broker(consumer, back, broker, from_us, ends_us)
        key = (consumer, broker, way.path, way.from_us)
        if key in self._scene.table.places:
            return self._scene.table.places[key]
        steps = self._links.chain(back, first.far, hops, self._links.of(consumer))
        is_topic = self._spoken.policy.kind.has_subscriptions
        source = self._scene.queues[self._place, consumer.client.container if is_topic else broker]
        return self._scene.table.add(key, Route(self._place, ends_us, is_cut, False, steps, source=source))

    def _to_broker(self, session: SampleSession, broker: str, at_us: int) -> PathPeriod | None:
        epochs, routers = self._scene.epochs, tuple(self._scene.topology.routers_of(broker))
        return epochs.to_broker(epochs.way(at_us, session.client.router, routers), broker, at_us)

    def _queues_at(self, broker: str) -> list[int]:
        if self._spoken.policy.kind.has_queues:
            return [self._scene.queues[self._place, broker]]
        return [queue for (address, _), queue in self._scene.queues.items() if address == self._place]

    def _spread(self, producers: list[SampleSession], consumers: list[SampleSession], from_us: int, to_us: int) -> None:
        for producer in producers:
            ways = {
                consumer: way
                for consumer in consumers
                if (way := self._scene.epochs.way(from_us, producer.client.router, (consumer.client.router,)))
            }
            if not ways:
                self._starve(producer, from_us, to_us)
                continue
            place = self._multicast(producer, ways, from_us)
            self._scene.table.use(place, from_us, to_us, self._rate(producer))

    def _multicast(self, producer: SampleSession, ways: Mapping[SampleSession, PathPeriod], from_us: int) -> int:
        ends_us, is_cut = _end((producer, *ways), tuple(ways.values()))
        by_target = {way.path[-1]: way for way in ways.values()}
        branches = tree({target: way.path for target, way in by_target.items()}, by_target)
        growing = MulticastTree(self._links, ways, by_target, from_us, ends_us, producer.client.router)
        takers = growing.takers(producer.client.router)
        steps, _ = growing.grow(producer.client.router, self._links.of(producer), takers, branches, (), 0.0)
        key = (producer, tuple(ways), tuple((way.path, way.from_us) for way in ways.values()))
        if key in self._scene.table.places:
            return self._scene.table.places[key]
        return self._scene.table.add(key, Route(self._place, ends_us, is_cut, producer.client.is_settled, steps))

    def _starve(self, producer: SampleSession, from_us: int, to_us: int) -> None:
        found = self.without_takers
        if found and found[-1].session is producer and found[-1].to_us == from_us:
            found[-1] = StarvedSpan(producer, found[-1].from_us, to_us, "no_taker")
        else:
            found.append(StarvedSpan(producer, from_us, to_us, "no_taker"))


def _now(sessions: Iterable[SampleSession], at_us: int) -> Iterator[SampleSession]:
    return (each for each in sessions if each.from_us <= at_us < each.to_us)


def _end(sessions: Sequence[SampleSession], ways: Sequence[PathPeriod]) -> tuple[int, bool]:
    """Return the earliest end among ``sessions`` and ``ways``, and whether deliveries in flight come in doubt then.

    They do if a connection is lost, or a path breaks, at this time.
    """
    ends = [(each.to_us, each.is_lost) for each in sessions] + [(each.to_us, each.is_cut) for each in ways]
    ends_us = min(at_us for at_us, _ in ends)
    return ends_us, any(is_cut for at_us, is_cut in ends if at_us == ends_us)
