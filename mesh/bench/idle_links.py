"""Runs `bench links` and `bench connections`: measures the cost of idle links or connections.

The cost of making a link or connection is the server's CPU time until the server is idle again, the cost of holding one
is the growth of the server's resident memory by then: each divided by the number of links or connections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mesh.bench.dial import BenchServer
from mesh.bench.loopback_mesh import LoopbackPlan, running_line
from mesh.bench.meter import Meter
from mesh.bench.open_files import make_room
from mesh.bench.processes import BenchProcess, BenchProcesses
from mesh.bench.rows import BenchRow
from mesh.bench.target import BenchTarget
from mesh.terminal.output import Output

MODE = "idle"
TRANSIT = 1
# Open files beside those of the measured connections, for log, control socket, neighbors and threads.
SPARE_FILES = 200


@dataclass(frozen=True, slots=True)
class LinksBenchRequest:
    links: int
    per_session: int
    connections: int
    is_tls: bool
    stall_s: float


def measure_our_links(order: LinksBenchRequest, out: Output) -> Iterator[BenchRow]:
    limits: dict[str, Any] = {"max_connections": order.connections + SPARE_FILES, "max_links": order.links}
    for shared in (True, False):
        # A new router for each row: memory that the first row has freed would make the second row look cheap.
        with running_line(LoopbackPlan(1, order.is_tls, **limits), out) as target:
            yield measure_links(target, "1 router", order, out, is_shared=shared)
    with running_line(LoopbackPlan(3, order.is_tls, **limits), out) as target:
        yield measure_circuits(target, order, out)


def measure_links(
    target: BenchTarget, line: str, order: LinksBenchRequest, out: Output, *, is_shared: bool
) -> BenchRow:
    work = f"{line}, {order.links:,} receivers, {'one address' if is_shared else 'an address each'}"
    out.say(work)
    addresses = target.addresses.anycast if is_shared else target.addresses.more("%d")
    with BenchProcesses() as sides:
        holder = sides.start("hold_links", plan_of(order, target.receiving_place, addresses, is_receiver=True))
        holder.step()
        attached = Growth(target.meter)
        rate = order.links / go_on(holder)["seconds"]
        attached.stop()
        detached = Growth(target.meter)
        detach_rate = order.links / go_on(holder)["seconds"]
        detached.stop()
        go_on(holder)
        holder.end()
    return BenchRow(
        work,
        MODE,
        {
            "bytes_each": attached.bytes_each(order.links),
            "cpu_us_each": attached.cpu_us_each(order.links),
            "attaches_per_s": rate,
            "cpu_us_per_detach": detached.cpu_us_each(order.links),
            "detaches_per_s": detach_rate,
        },
    )


def measure_circuits(target: BenchTarget, order: LinksBenchRequest, out: Output) -> BenchRow:
    """Measure the cost of circuits, for each of their links, at the middle one of three routers in line; each circuit
    runs from a sender at one end to a receiver at the other.
    """
    work = f"transit router of 3, {order.links // 2:,} circuits, per link (two each)"
    out.say(work)
    pairs = LinksBenchRequest(order.links // 2, order.per_session, order.connections, order.is_tls, order.stall_s)
    addresses = target.addresses.more("%d")
    assert target.meter is not None
    transit = target.meter.only(TRANSIT)
    with BenchProcesses() as sides:
        takers = sides.start("hold_links", plan_of(pairs, target.receiving_place, addresses, is_receiver=True))
        makers = sides.start("hold_links", plan_of(pairs, target.sending_place, addresses, is_receiver=False))
        takers.step()
        makers.step()
        go_on(takers)
        target.meter.wait_idle()
        made = Growth(transit, target.meter)
        seconds = go_on(makers)["seconds"]
        made.stop()
    links = pairs.links * 2
    return BenchRow(
        work,
        MODE,
        {
            "bytes_each": made.bytes_each(links),
            "cpu_us_each": made.cpu_us_each(links),
            "attaches_per_s": pairs.links / seconds,
        },
    )


def plan_of(order: LinksBenchRequest, place: BenchServer, addresses: str, *, is_receiver: bool) -> dict[str, Any]:
    return {
        "place": place.to_map(),
        "addresses": addresses,
        "is_receiver": is_receiver,
        "count": order.links,
        "per_session": order.per_session,
        "connections": order.connections,
        "stall_s": order.stall_s,
    }


@dataclass(frozen=True, slots=True)
class ConnectionsBenchRequest:
    connections: int
    is_tls: bool
    stall_s: float


def measure_our_connections(order: ConnectionsBenchRequest, out: Output) -> Iterator[BenchRow]:
    make_room(order.connections + SPARE_FILES)
    plan = LoopbackPlan(1, is_client_tls=order.is_tls, max_connections=order.connections + SPARE_FILES)
    with running_line(plan, out) as target:
        yield measure_connections(target, plan.name, order, out)


def measure_connections(target: BenchTarget, line: str, order: ConnectionsBenchRequest, out: Output) -> BenchRow:
    make_room(order.connections + SPARE_FILES)
    work = f"{line}, {order.connections:,} connections with a receiver each"
    out.say(work)
    plan = {
        "place": target.receiving_place.to_map(),
        "addresses": target.addresses.anycast,
        "count": order.connections,
        "stall_s": order.stall_s,
    }
    with BenchProcesses() as sides:
        holder = sides.start("hold_connections", plan)
        holder.step()
        opened = Growth(target.meter)
        rate = order.connections / go_on(holder)["seconds"]
        opened.stop()
        go_on(holder)
        holder.end()
    return BenchRow(
        work,
        MODE,
        {
            "bytes_each": opened.bytes_each(order.connections),
            "cpu_us_each": opened.cpu_us_each(order.connections),
            "connections_per_s": rate,
        },
    )


def go_on(holder: BenchProcess) -> Mapping[str, Any]:
    holder.go_on()
    return holder.step()


class Growth:
    """Growth of CPU time and resident memory of the processes of ``meter``, from the making of this object to `stop`.

    `stop` first waits until the processes of ``all_of_them``, by default the same ones, are idle.
    """

    def __init__(self, meter: Meter | None, all_of_them: Meter | None = None) -> None:
        self._meter = meter
        self._all = all_of_them or meter
        self._begin = self._read()
        self._end = self._begin

    def stop(self) -> None:
        if self._all is not None:
            self._all.wait_idle()
        self._end = self._read()

    def bytes_each(self, count: int) -> float | None:
        return (self._end[0] - self._begin[0]) / count if self._meter is not None else None

    def cpu_us_each(self, count: int) -> float | None:
        return (self._end[1] - self._begin[1]) * 1e6 / count if self._meter is not None else None

    def _read(self) -> tuple[int, float]:
        if self._meter is None:
            return 0, 0.0
        return sum(self._meter.resident_bytes()), sum(self._meter.cpu_s())
