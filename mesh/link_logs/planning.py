"""From a topology and a traffic profile to a plan of link logs. One seed, one plan."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

import numpy
from numpy.random import Generator

from addressing.book import AddressKind
from addressing.topology import Topology
from linklogs.generating.plan import (
    NO_LIFE,
    NO_QUEUE,
    Day,
    Life,
    Links,
    Outage,
    Plan,
    Queues,
    Starvation,
    Traffic,
)
from linklogs.generating.run import expected_records
from linklogs.parquet import batch_of_rows
from mesh.link_logs import telling
from mesh.link_logs.epochs import Epochs
from mesh.link_logs.flows import NEVER_TOLD_US, Flows
from mesh.link_logs.hops import Hops, Trunks
from mesh.link_logs.outages import outages
from mesh.link_logs.own_links import Scene
from mesh.link_logs.population import Client, Session, Spoken, addresses, clients, sessions, treatment
from mesh.link_logs.profile import Profile, Stalled, Starved, log_us
from mesh.link_logs.registry import FOREVER, Entry, Registry, Run, Told, in_time
from mesh.link_logs.routing import Table
from mesh.link_logs.starving import Span
from mesh.version import read_version

LONG_AGO_US = 3 * 3_600_000_000
SETTLED_US = 100_000
"""Until a link is closed after the last of its messages may have been settled."""


@dataclass(frozen=True, slots=True)
class Times:
    begins_us: int
    ends_us: int


class Planner:
    """Each step needs those before it; ``plan`` takes them in order."""

    def __init__(self, topology: Topology, profile: Profile, times: Times, seed: int) -> None:
        self._topology = topology
        self._profile = profile
        self._times = times
        self._random: Generator = numpy.random.default_rng([seed, 0])
        self._registry = Registry()
        self._outages: tuple[Outage, ...] = outages(topology, profile, times.begins_us, times.ends_us, self._random)
        reroute_us = int(profile.reroute * 1e6)
        self._epochs = Epochs(topology, self._outages, times.begins_us, times.ends_us, reroute_us)
        self._spoken: list[Spoken] = addresses(topology, profile, self._random)
        self._links: dict[Session, Entry] = {}
        self._hungry: dict[Session, list[Span]] = {}
        self._stalled: list[Span] = []

    def plan(self, records: int | None) -> Plan:
        """``records``: about so many deliveries at level full; else as many as the rate of the profile makes."""
        self._add_runs()
        trunks = Trunks(self._topology, self._epochs, self._registry, self._times.begins_us, self._times.ends_us)
        everybody = clients(self._topology, self._profile, self._spoken, self._random)
        connected = [session for client in everybody for session in self._connect(client)]
        starved, stalled = self._profile.starved, self._profile.stalled
        self._hungry = {each: self._starve(each, starved) for each in connected if each.client.is_producer}
        self._stalled = [span for each in connected if self._may_stall(each) for span in self._starve(each, stalled)]
        queues = self._queues(everybody)
        table = self._lay(trunks, connected, {key: i for i, key in enumerate(queues)})
        self._registry.number()
        plan = self._collect(trunks, table, list(queues))
        return plan if records is None else dataclasses.replace(plan, rate_factor=records / expected_records(plan))

    def _add_runs(self) -> None:
        """Routers first, then brokers; those that record nothing last."""
        for name, router in self._topology.routers.items():
            self._add_runs_of(name, "edge" if router.is_edge else "router")
        for name in sorted(self._topology.brokers, key=lambda name: not self._topology.brokers[name].is_embedded):
            self._add_runs_of(name, "broker")

    def _add_runs_of(self, node: str, role: str) -> None:
        stopped = {(each.what[0], each.from_us) for each in self._outages if each.is_orderly}
        for from_us, to_us in self._epochs.up((node,)):
            begins_us = from_us - self._age_us() if from_us == self._times.begins_us else from_us
            ends_us = FOREVER if to_us == self._times.ends_us else to_us
            self._registry.add_run(node, role, begins_us, ends_us, (node, to_us) in stopped)

    def _age_us(self) -> int:
        return LONG_AGO_US + int(self._random.integers(LONG_AGO_US))

    def _connect(self, client: Client) -> Iterator[Session]:
        up = self._epochs.up((client.router,))
        for session in sessions(client, up, self._times.begins_us, self._profile.churn, self._random):
            if session.to_us > self._times.begins_us:
                self._links[session] = self._attach(session)
                yield session

    def _attach(self, session: Session) -> Entry:
        client = session.client
        run = self._registry.run_at(client.router, max(session.from_us, self._times.begins_us))
        opens_us = max(session.from_us, run.begins_us)
        closes_us = FOREVER if session.to_us >= self._times.ends_us else session.to_us
        # What is not lost is closed by its client, which waits for what it sent.
        closes_us += 0 if session.is_lost or closes_us == FOREVER else SETTLED_US
        cause = "amqp:connection:forced" if session.is_lost else None
        port = int(self._random.integers(32_768, 61_000))
        connection = self._registry.connect(
            run, opens_us, closes_us, cause, role="client", container=client.container, user=client.user,
            remote_address=f"{client.host}:{port}",
        )  # fmt: skip
        spoken = self._spoken[client.address]
        link = self._registry.attach(
            connection, opens_us, role="producer" if client.is_producer else "consumer",
            direction="incoming" if client.is_producer else "outgoing", address=spoken.name,
            treatment=treatment(spoken), name=f"{client.container}/{spoken.name}",
        )  # fmt: skip
        link.user = client.user
        return link

    def _may_stall(self, session: Session) -> bool:
        spoken = self._spoken[session.client.address]
        return not session.client.is_producer and spoken.policy.kind is AddressKind.MULTICAST

    def _starve(self, session: Session, starved: Starved | Stalled) -> list[Span]:
        found: list[Span] = []
        at_us = max(session.from_us, self._times.begins_us)
        # Of one client the same again each time that it comes back.
        if sha256(session.client.container.encode()).digest()[0] / 256 >= starved.links:
            return []
        while True:
            at_us += 1 + int(self._random.exponential(starved.every) * 1e6)
            to_us = at_us + 1000 + int(self._random.exponential(starved.duration) * 1e6)
            if to_us >= min(session.to_us, self._times.ends_us):
                return found
            found.append(Span(session, at_us, to_us, "takers"))
            at_us = to_us

    def _queues(self, everybody: Sequence[Client]) -> dict[tuple[int, str], tuple[str, str]]:
        """The broker and the subscriber of each; by address, and broker or subscriber."""
        found: dict[tuple[int, str], tuple[str, str]] = {}
        for place, spoken in enumerate(self._spoken):
            if spoken.policy.kind is AddressKind.QUEUE:
                found |= {(place, broker): (broker, "") for broker in spoken.policy.brokers}
            if spoken.policy.kind is AddressKind.TOPIC:
                takers = [each for each in everybody if each.address == place and not each.is_producer]
                broker = spoken.policy.brokers[0]
                found |= {(place, each.container): (broker, f"{each.container}|{each.container}/{spoken.name}")
                          for each in takers}  # fmt: skip
        return found

    def _lay(self, trunks: Trunks, connected: Sequence[Session], queues: Mapping[tuple[int, str], int]) -> Table:
        profile, times = self._profile, self._times
        hops, table = Hops(trunks, self._registry, times.begins_us), Table()
        scene = Scene(
            self._topology, self._epochs, trunks, hops, self._registry, self._links, queues, table,
            times.begins_us, times.ends_us, profile.hop * 1e6, profile.rate,
        )  # fmt: skip
        by_address: dict[int, list[Session]] = defaultdict(list)
        for session in connected:
            by_address[session.client.address].append(session)
        for place, spoken in enumerate(self._spoken):
            hungry = [span for each in by_address[place] for span in self._hungry.get(each, ())]
            flows = Flows(scene, place, spoken, by_address[place], hungry)
            flows.lay()
            for span in flows.without_takers:
                if span.to_us - span.from_us >= NEVER_TOLD_US:
                    self._hungry[span.session].append(span)
        return table

    def _collect(self, trunks: Trunks, table: Table, queues: Sequence[tuple[int, str]]) -> Plan:
        profile, times = self._profile, self._times
        return Plan(
            mesh=self._topology.mesh,
            begins_us=times.begins_us,
            ends_us=times.ends_us,
            lives=self._lives(trunks),
            links=self._link_table(),
            traffic=self._traffic(),
            routes=table.to_routes(),
            pieces=table.to_pieces(),
            queues=self._queue_table(queues),
            starvation=self._starvation([span for each in self._hungry.values() for span in each]),
            stalls=self._starvation(self._stalled),
            outages=self._outages,
            day=Day(profile.day.depth, (profile.day.peak.hour * 60 + profile.day.peak.minute) * 60_000_000),
            rate_factor=1.0,
            file_us=int(profile.file_every * 1e6),
        )

    def _lives(self, trunks: Trunks) -> tuple[Life, ...]:
        told = self._registry.told()
        for place, each in telling.neighbors(self._topology, trunks):
            told[place].append(each)
        for session, spans in self._hungry.items():
            link = self._links[session]
            told[link.run.place] += telling.credit(link, sorted(spans, key=lambda span: span.from_us))
        return tuple(self._life(i, told[i]) for i in range(len(self._registry.runs)) if self._is_recorded(i))

    def _is_recorded(self, place: int) -> bool:
        node = self._registry.runs[place].node
        return node not in self._topology.brokers or self._topology.brokers[node].is_embedded

    def _life(self, place: int, told: list[Told]) -> Life:
        run, topology = self._registry.runs[place], self._digest()
        version = read_version()
        earlier, steps = self._steps(run)
        skew_us = int(self._profile.clock_skew.get(run.node, 0.0) * 1e6) + sum(by_us for _, by_us in earlier)
        clock_us = self._times.begins_us - 20 * 86_400_000_000 + skew_us
        told.append(telling.started(run, topology, version, clock_us))
        told += telling.clock_set(steps, clock_us)
        told += telling.stopped(run)
        if run.node in self._topology.routers:
            told += telling.paths(self._topology, self._epochs, run)
        ordered = in_time(told)
        lost = self._profile.lost_records.get(run.node, ())
        return Life(
            node=run.node,
            role=run.role,
            begins_us=run.begins_us,
            ends_us=min(run.ends_us, self._times.ends_us),
            skew_us=skew_us,
            clock_us=clock_us,
            topology=topology,
            version=version,
            rows=batch_of_rows([each.row for each in ordered]),
            until_us=numpy.array([each.until_us for each in ordered], numpy.int64),
            lost=tuple((self._at(each.at), self._at(each.at + each.duration)) for each in lost),
            steps=tuple(steps),
        )

    def _steps(self, run: Run) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """When the clock of its node is set, and by how much: before it starts, and while it is there."""
        told = self._profile.clock_steps.get(run.node, ())
        steps = sorted((self._at(each.at), int(each.by * 1e6)) for each in told)
        earlier = [each for each in steps if each[0] <= run.begins_us]
        return earlier, [each for each in steps if run.begins_us < each[0] < min(run.ends_us, self._times.ends_us)]

    def _at(self, offset_s: float) -> int:
        return self._times.begins_us + int(offset_s * 1e6)

    def _digest(self) -> str:
        file = self._topology.file
        return sha256(file.read_bytes() if file is not None else self._topology.model_dump_json().encode()).hexdigest()

    def _link_table(self) -> Links:
        entries, names = self._registry.links, {each.name: i for i, each in enumerate(self._spoken)}
        return Links(
            life=numpy.array([-1, *(each.run.place for each in entries)], numpy.int64),
            number=numpy.array([0, *(each.number for each in entries)], numpy.int64),
            address=numpy.array([-1, *(names[str(each.columns["address"])] for each in entries)], numpy.int64),
            role=("", *(str(each.columns["role"]) for each in entries)),
            user=("", *(each.user for each in entries)),
        )

    def _traffic(self) -> Traffic:
        spoken = self._spoken
        parts = [each.traffic for each in spoken]
        return Traffic(
            address=tuple(each.name for each in spoken),
            treatment=tuple(treatment(each) for each in spoken),
            size_log=numpy.log([max(1, each.size) for each in parts]),
            size_spread=numpy.array([each.size_spread for each in parts]),
            took_log=numpy.array([log_us(each.latency) for each in parts]),
            took_spread=numpy.array([each.latency_spread for each in parts]),
            slow_share=numpy.array([each.slow for each in parts]),
            slow_factor=numpy.array([each.slow_factor for each in parts]),
            rejected=numpy.array([each.rejected for each in parts]),
            released=numpy.array([each.released for each in parts]),
            modified=numpy.array([each.modified for each in parts]),
        )

    def _queue_table(self, queues: Sequence[tuple[int, str]]) -> Queues:
        """Numbered from 1 at each broker."""
        runs: dict[str, list[Run]] = defaultdict(list)
        for run in self._registry.runs:
            runs[run.node].append(run)
        numbers: dict[str, int] = defaultdict(int)
        life, number, names = [], [], []
        for place, key in queues:
            spoken = self._spoken[place]
            is_topic = spoken.policy.kind is AddressKind.TOPIC
            broker = spoken.policy.brokers[0] if is_topic else key
            numbers[broker] += 1
            number.append(numbers[broker])
            life.append(runs[broker][0].place if self._topology.brokers[broker].is_embedded else NO_LIFE)
            names.append(f"{key}|{key}/{spoken.name}" if is_topic else "")
        parts = [self._spoken[place].traffic for place, _ in queues]
        return Queues(
            life=numpy.array(life, numpy.int64),
            number=numpy.array(number, numpy.int64),
            address=numpy.array([place for place, _ in queues], numpy.int64),
            name=tuple(names),
            wait_log=numpy.array([log_us(each.wait) for each in parts]),
            wait_spread=numpy.array([each.wait_spread for each in parts]),
            expired=numpy.array([each.expired for each in parts]),
            dead_lettered=numpy.array([each.dead_lettered for each in parts]),
            grave=numpy.array([self._grave(queues, *each) for each in queues], numpy.int64),
            later=tuple((each[0].place, run.place, run.begins_us) for each in runs.values() for run in each[1:]),
            away=tuple(
                (each[0].place, before.ends_us, after.begins_us)
                for each in runs.values()
                for before, after in pairwise(each)
            ),
        )

    def _grave(self, queues: Sequence[tuple[int, str]], place: int, key: str) -> int:
        """Where its dead letters go: a queue at the same broker that has traffic of its own, or NO_QUEUE."""
        policy = self._spoken[place].policy
        broker = policy.brokers[0] if policy.kind is AddressKind.TOPIC else key
        name = policy.queue.dead_letter
        named = [i for i, each in enumerate(self._spoken) if name in (each.policy.broker_address, each.name)]
        return next((queues.index((i, broker)) for i in named if name and (i, broker) in queues), NO_QUEUE)

    def _starvation(self, spans: Sequence[Span]) -> Starvation:
        return Starvation(
            link=numpy.array([self._links[span.session].place for span in spans], numpy.int64),
            from_us=numpy.array([span.from_us for span in spans], numpy.int64),
            to_us=numpy.array([span.to_us for span in spans], numpy.int64),
            cause=tuple(span.cause for span in spans),
        )


def make_plan(topology: Topology, profile: Profile, times: Times, seed: int, records: int | None) -> Plan:
    return Planner(topology, profile, times, seed).plan(records)
