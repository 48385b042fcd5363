"""What do nodes tell of neighbors, paths, credit and themselves?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from addressing.link_log import STOPPED, Event, Kind
from addressing.topology import Topology
from mesh.link_logs.epochs import Epochs
from mesh.link_logs.hops import Trunks
from mesh.link_logs.registry import Entry, Row, Run, Told
from mesh.link_logs.starving import Span

CREDIT = 250
OLD_US = 60_000_000


def neighbors(topology: Topology, trunks: Trunks) -> Iterator[tuple[int, Told]]:
    """Each with the place of the run that tells it."""
    for edge in topology.edges():
        for _, near, far in trunks.all_of(edge.dialer, edge.to):
            for entry, neighbor in ((near, edge.to), (far, edge.dialer)):
                yield from _neighbor(entry, neighbor, edge.cost)


def _neighbor(entry: Entry, neighbor: str, cost: int) -> Iterator[tuple[int, Told]]:
    common: Row = {"kind": Kind.NEIGHBOR.value, "neighbor": neighbor, "cost": cost}
    opened: Row = {**common, "event": Event.OPENED.value, "at_us": entry.opens_us}
    yield entry.run.place, Told(opened, entry.closes_us)
    closed_us = entry.run.told_us(entry.closes_us)
    if closed_us is not None:
        closed: Row = {**common, "event": Event.CLOSED.value, "at_us": closed_us, "cause": entry.cause}
        yield entry.run.place, Told(closed, closed_us)


def paths(topology: Topology, epochs: Epochs, run: Run) -> Iterator[Told]:
    """Of one run of a router to every other, whenever it changes."""
    for target in topology.routers:
        if target != run.node:
            yield from _path(epochs, run, target)


def _path(epochs: Epochs, run: Run, target: str) -> Iterator[Told]:
    changes: list[tuple[int, str, int]] = []
    for epoch in epochs.epochs:
        known = epochs.shortest(epoch, run.node) if run.begins_us <= epoch.from_us < run.ends_us else None
        path = ">".join(known.paths.get(target, ())) if known is not None else ""
        if path != (changes[-1][1] if changes else ""):
            changes.append((epoch.from_us, path, known.costs.get(target, 0) if known is not None else 0))
    last = ""
    for (at_us, path, cost), (until_us, _, _) in pairwise([*changes, (run.ends_us, "", 0)]):
        # A router that is there again later has another run.
        if at_us >= run.ends_us:
            return
        event = Event.CLOSED if not path else Event.CHANGED if last else Event.OPENED
        is_first = epochs.bounds[0] == at_us
        row: Row = {"kind": Kind.PATH.value, "event": event.value, "at_us": at_us - OLD_US if is_first else at_us,
               "egress": target, "path": path or None, "cost": cost or None}  # fmt: skip
        yield Told(row, until_us if path else at_us)
        last = path


def credit(entry: Entry, spans: Sequence[Span]) -> Iterator[Told]:
    """Of one producer's link: ``spans`` without credit, in order."""
    # The end of one and the beginning of the next may be one moment: its two records are then one after the other.
    changes: list[tuple[int, int, int, str | None]] = [(entry.opens_us, CREDIT, 0, None)]
    for span in spans:
        changes.append((span.from_us, 0, 0, span.cause))
        changes.append((span.to_us, CREDIT, span.to_us - span.from_us, span.cause))
    for change, following in pairwise([*changes, (entry.closes_us, 0, 0, None)]):
        at_us, has, starved_us, cause = change
        row: Row = {"kind": Kind.CREDIT.value, "event": Event.CHANGED.value, "at_us": at_us, "link": entry.number,
               "credit": has, "starved_us": starved_us, "cause": cause}  # fmt: skip
        yield Told(row, following[0])


def clock_set(steps: Sequence[tuple[int, int]], clock_us: int) -> Iterator[Told]:
    """``clock_us``: what it was ahead of the monotonic one before."""
    for at_us, by_us in steps:
        clock_us += by_us
        row: Row = {"kind": Kind.NODE.value, "event": Event.CHANGED.value, "at_us": at_us, "clock_us": clock_us}
        yield Told(row, at_us)


def stopped(run: Run) -> Iterator[Told]:
    """The last that it tells; of one that is killed nothing."""
    if run.is_stopped:
        at_us = run.ends_us - 1
        row: Row = {"kind": Kind.NODE.value, "event": Event.CLOSED.value, "at_us": at_us, "cause": STOPPED}
        yield Told(row, at_us)


def started(run: Run, topology: str, version: str, clock_us: int) -> Told:
    row: Row = {"kind": Kind.NODE.value, "event": Event.OPENED.value, "at_us": run.begins_us, "role": run.role,
           "clock_us": clock_us, "topology": topology, "version": version}  # fmt: skip
    return Told(row, run.begins_us)
