"""Makes the runs of all nodes in generated link logs: the state records of each run, and the errors of its clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

import numpy

from addressing.topology.model import Topology
from linklogs.generating.plan import PlannedRun
from linklogs.parquet import batch_of_rows
from mesh.sample_logs import state_records as telling
from mesh.sample_logs.epochs import Epochs
from mesh.sample_logs.hops import Trunks
from mesh.sample_logs.profile import Profile
from mesh.sample_logs.registry import Registry, RegistryEntry, SampleRun, TimedRecord, in_time
from mesh.sample_logs.starvation import StarvedSpan
from mesh.sample_logs.times import Times
from mesh.terminal.version import read_version


class NodeRuns:
    """Makes the runs of all nodes that record, which leaves out brokers that are not embedded."""

    def __init__(self, topology: Topology, profile: Profile, times: Times, epochs: Epochs, registry: Registry) -> None:
        self._topology = topology
        self._profile = profile
        self._times = times
        self._epochs = epochs
        self._registry = registry

    def make(
        self, trunks: Trunks, starved: Iterable[tuple[RegistryEntry, Sequence[StarvedSpan]]]
    ) -> tuple[PlannedRun, ...]:
        """Make the runs, with records of neighbors, links and credit.

        ``starved``: links with the spans in which each had no credit; every other link always had credit.
        """
        told = self._registry.told()
        for place, each in telling.neighbors(self._topology, trunks):
            told[place].append(each)
        without = {link.place: sorted(spans, key=lambda span: span.from_us) for link, spans in starved}
        for link in self._registry.links:
            told[link.run.place] += telling.credit(link, without.get(link.place, ()), self._times.ends_us)
        return tuple(self._life(i, told[i]) for i in range(len(self._registry.runs)) if self._is_recorded(i))

    def _life(self, place: int, told: list[TimedRecord]) -> PlannedRun:
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
        return PlannedRun(
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
            lost=tuple((self._times.at_us(each.at), self._times.at_us(each.at + each.duration)) for each in lost),
            steps=tuple(steps),
        )

    def _steps(self, run: SampleRun) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the steps of the node's clock, as pairs of time and size in us: those before the run, and those during
        it.
        """
        told = self._profile.clock_steps.get(run.node, ())
        steps = sorted((self._times.at_us(each.at), int(each.by * 1e6)) for each in told)
        earlier = [each for each in steps if each[0] <= run.begins_us]
        return earlier, [each for each in steps if run.begins_us < each[0] < min(run.ends_us, self._times.ends_us)]

    def _digest(self) -> str:
        file = self._topology.file
        return sha256(file.read_bytes() if file is not None else self._topology.model_dump_json().encode()).hexdigest()

    def _is_recorded(self, place: int) -> bool:
        node = self._registry.runs[place].node
        return node not in self._topology.brokers or self._topology.brokers[node].is_embedded
