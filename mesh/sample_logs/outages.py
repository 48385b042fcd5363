"""Plans the outages of nodes and links that generated link logs show: those of the profile, or else random ones."""

from __future__ import annotations

from collections.abc import Iterator

import networkx
from numpy.random import Generator

from addressing.topology.model import Topology
from linklogs.generating.plan import PlannedOutage
from mesh.sample_logs.profile import OutageProfile, Profile


def outages(
    topology: Topology, profile: Profile, begins_us: int, ends_us: int, random: Generator
) -> tuple[PlannedOutage, ...]:
    """Return the planned outages in order of time; drawn at random if the profile has no key `outages`."""
    if profile.outages is None:
        return tuple(_drawn(topology, begins_us, ends_us, random))
    told = [
        PlannedOutage(
            kind="router" if each.router else "broker" if each.broker else "link",
            what=(each.node,) if each.node else each.link or (),
            from_us=begins_us + int(each.at * 1e6),
            to_us=begins_us + int((each.at + each.duration) * 1e6),
            cause=each.cause or _usual_cause(each),
            is_orderly=each.stopped,
        )
        for each in profile.outages
    ]
    return tuple(sorted(told, key=lambda outage: outage.from_us))


def _usual_cause(outage: OutageProfile) -> str:
    return "stopped" if outage.stopped else "crash" if outage.node else "connection lost"


def _drawn(topology: Topology, begins_us: int, ends_us: int, random: Generator) -> Iterator[PlannedOutage]:
    """Draw an outage of a link in the first half of the logs, and one of an interior router in the second.

    Only a link or router without which the rest of the mesh stays connected is drawn; without any, there is no outage.
    """
    length_us = ends_us - begins_us
    graph = networkx.Graph((edge.dialer, edge.to) for edge in topology.edges())
    bridges = {frozenset(pair) for pair in networkx.bridges(graph)}
    links = [(edge.dialer, edge.to) for edge in topology.edges() if frozenset((edge.dialer, edge.to)) not in bridges]
    if links:
        link = links[int(random.integers(len(links)))]
        yield _outage("link", link, begins_us + int(0.2 * length_us), length_us, "connection lost")
    cuts = set(networkx.articulation_points(graph))
    routers = [name for name in topology.interior_routers if name in graph and name not in cuts and len(graph) > 2]
    if routers:
        router = routers[int(random.integers(len(routers)))]
        yield _outage("router", (router,), begins_us + int(0.6 * length_us), length_us, "crash")


def _outage(kind: str, what: tuple[str, ...], from_us: int, length_us: int, cause: str) -> PlannedOutage:
    return PlannedOutage(kind, what, from_us, from_us + min(90_000_000, length_us // 20), cause)
