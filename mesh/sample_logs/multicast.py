"""Plans, for generated link logs, the tree of a multicast message.

At each router there is a copy for each local consumer, and one for each branch to another router.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mesh.sample_logs.epochs import PathPeriod
from mesh.sample_logs.own_links import OwnLinks
from mesh.sample_logs.population import SampleSession
from mesh.sample_logs.registry import RegistryEntry
from mesh.sample_logs.routing import COPY, MANY, RouteStep
from router.routing.spf import Branch


@dataclass(frozen=True, slots=True)
class MulticastTree:
    """The tree of routers along which the copies of a multicast go, from its ingress to all routers with consumers."""

    own: OwnLinks
    ways: Mapping[SampleSession, PathPeriod]
    by_target: Mapping[str, PathPeriod]
    from_us: int
    ends_us: int
    ingress: str

    def takers(self, router: str) -> list[SampleSession]:
        return [each for each in self.ways if each.client.router == router]

    def grow(
        self,
        router: str,
        incoming: RegistryEntry,
        takers: Sequence[SampleSession],
        branches: Mapping[str, Branch],
        before: tuple[str, ...],
        gone_us: float,
    ) -> tuple[list[RouteStep], float]:
        """Return the steps of a message from ``router`` on, and the one-way time in us to the furthest consumer behind
        it.

        The steps of ``router`` itself come first, then those of the routers behind it.
        """
        path, run = (*before, router), incoming.run.place
        copies = [RouteStep(run, incoming, self.own.of(each), COPY, gone_us, 0.0, each.client.pace) for each in takers]
        behind: list[RouteStep] = []
        furthest_us = 0.0
        for child, branch in branches.items():
            hop_us = self.own.hop_us(router, child)
            ends = self.own.branch((router, child), (*path, child), self._since(child), self.from_us, self.ends_us)
            own = self.takers(child) if branch.deliver else []
            grown, ahead_us = self.grow(child, ends.far, own, branch.children, path, gone_us + hop_us)
            copies.append(RouteStep(run, incoming, ends.near, COPY, gone_us, hop_us + ahead_us))
            furthest_us = max(furthest_us, hop_us + ahead_us)
            behind += grown
        return [RouteStep(run, incoming, None, MANY, gone_us, furthest_us), *copies, *behind], furthest_us

    def _since(self, router: str) -> int:
        """Return the latest time at which one of the paths that lead over ``router`` came into use."""
        found = [way.from_us for way in self.by_target.values() if router in way.path]
        return max(found)
