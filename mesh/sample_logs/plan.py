"""Plans sample link logs to generate, from a topology and a traffic profile; the same seed makes the same plan."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy
from numpy.random import Generator

from addressing.topology.model import Topology
from linklogs.generating.plan import DailyCycle, LogPlan, PlannedOutage
from linklogs.generating.run import expected_records
from mesh.sample_logs.arrays import link_table, traffic_table
from mesh.sample_logs.epochs import Epochs
from mesh.sample_logs.flows import NEVER_TOLD_US, Flows
from mesh.sample_logs.hops import Hops, Trunks
from mesh.sample_logs.node_runs import NodeRuns
from mesh.sample_logs.outages import outages
from mesh.sample_logs.own_links import SampleMesh
from mesh.sample_logs.population import (
    AddressShare,
    SampleClient,
    SampleSession,
    addresses,
    clients,
    sessions,
    treatment,
)
from mesh.sample_logs.profile import Profile
from mesh.sample_logs.queues import kept, queue_table
from mesh.sample_logs.registry import FOREVER, Registry, RegistryEntry
from mesh.sample_logs.routing import RouteTable
from mesh.sample_logs.starvation import StarvedSpan, starvation, starve
from mesh.sample_logs.times import Times

LONG_AGO_US = 3 * 3_600_000_000
SETTLED_US = 100_000
"""Time in us after which a client that has stopped closes its link, so that its last messages can be settled."""


class Planner:
    """Plans the link logs to generate, in steps; `plan` runs the steps in the order in which they need each other."""

    def __init__(self, topology: Topology, profile: Profile, times: Times, seed: int) -> None:
        self._topology = topology
        self._profile = profile
        self._times = times
        self._random: Generator = numpy.random.default_rng([seed, 0])
        self._registry = Registry()
        self._outages: tuple[PlannedOutage, ...] = outages(
            topology, profile, times.begins_us, times.ends_us, self._random
        )
        reroute_us = int(profile.reroute * 1e6)
        self._epochs = Epochs(topology, self._outages, times.begins_us, times.ends_us, reroute_us)
        self._spoken: list[AddressShare] = addresses(topology, profile, self._random)
        self._links: dict[SampleSession, RegistryEntry] = {}
        self._hungry: dict[SampleSession, list[StarvedSpan]] = {}
        self._stalled: list[StarvedSpan] = []

    def plan(self, records: int | None) -> LogPlan:
        """Make the plan.

        ``records``: the approximate number of delivery and message records at record level full, to which all rates are
        scaled; None: the profile's rate is kept.
        """
        self._add_runs()
        trunks = Trunks(self._topology, self._epochs, self._registry, self._times.begins_us, self._times.ends_us)
        everybody = clients(self._topology, self._profile, self._spoken, self._random)
        connected = [session for client in everybody for session in self._connect(client)]
        starved, stalled = self._profile.starved, self._profile.stalled
        self._hungry = {
            each: starve(each, starved, self._times, self._random) for each in connected if each.client.is_producer
        }
        self._stalled = [
            span
            for each in connected
            if self._may_stall(each)
            for span in starve(each, stalled, self._times, self._random)
        ]
        queues = kept(self._spoken, everybody)
        table = self._lay(trunks, connected, {key: i for i, key in enumerate(queues)})
        self._registry.number()
        plan = self._collect(trunks, table, queues)
        return plan if records is None else dataclasses.replace(plan, rate_factor=records / expected_records(plan))

    def _add_runs(self) -> None:
        """Add the runs of all nodes: first routers, then embedded brokers, and last brokers that record nothing."""
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

    def _connect(self, client: SampleClient) -> Iterator[SampleSession]:
        up = self._epochs.up((client.router,))
        for session in sessions(client, up, self._times.begins_us, self._profile.churn, self._random):
            if session.to_us > self._times.begins_us:
                self._links[session] = self._attach(session)
                yield session

    def _attach(self, session: SampleSession) -> RegistryEntry:
        client = session.client
        run = self._registry.run_at(client.router, max(session.from_us, self._times.begins_us))
        opens_us = max(session.from_us, run.begins_us)
        closes_us = FOREVER if session.to_us >= self._times.ends_us else session.to_us
        # A client closes a connection that is not lost only after it has waited for the settlement of its deliveries.
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

    def _may_stall(self, session: SampleSession) -> bool:
        spoken = self._spoken[session.client.address]
        return not session.client.is_producer and spoken.policy.kind.is_copied_by_routers

    def _lay(
        self, trunks: Trunks, connected: Sequence[SampleSession], queues: Mapping[tuple[int, str], int]
    ) -> RouteTable:
        profile, times = self._profile, self._times
        hops, table = Hops(trunks, self._registry, times.begins_us), RouteTable()
        scene = SampleMesh(
            self._topology, self._epochs, trunks, hops, self._registry, self._links, queues, table,
            times.begins_us, times.ends_us, profile.hop * 1e6, profile.rate,
        )  # fmt: skip
        by_address: dict[int, list[SampleSession]] = defaultdict(list)
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

    def _collect(self, trunks: Trunks, table: RouteTable, queues: Sequence[tuple[int, str]]) -> LogPlan:
        profile, times = self._profile, self._times
        lives = NodeRuns(self._topology, profile, times, self._epochs, self._registry)
        return LogPlan(
            mesh=self._topology.mesh,
            begins_us=times.begins_us,
            ends_us=times.ends_us,
            lives=lives.make(trunks, self._without_credit()),
            links=link_table(self._registry, self._spoken),
            traffic=traffic_table(self._spoken),
            routes=table.to_routes(),
            pieces=table.to_pieces(),
            queues=queue_table(self._topology, self._registry, self._spoken, queues),
            starvation=starvation([span for each in self._hungry.values() for span in each], self._links),
            stalls=starvation(self._stalled, self._links),
            outages=self._outages,
            day=DailyCycle(profile.day.depth, (profile.day.peak.hour * 60 + profile.day.peak.minute) * 60_000_000),
            rate_factor=1.0,
            file_us=int(profile.file_every * 1e6),
        )

    def _without_credit(self) -> Iterator[tuple[RegistryEntry, Sequence[StarvedSpan]]]:
        stalled: dict[SampleSession, list[StarvedSpan]] = defaultdict(list)
        for span in self._stalled:
            stalled[span.session].append(span)
        for session, spans in (*self._hungry.items(), *stalled.items()):
            yield self._links[session], spans


def make_plan(topology: Topology, profile: Profile, times: Times, seed: int, records: int | None) -> LogPlan:
    return Planner(topology, profile, times, seed).plan(records)
