"""The target of a measurement: the server to connect to, the addresses to use, and the processes to meter."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.bench.dial import BenchServer
from mesh.bench.meter import Meter


@dataclass(frozen=True, slots=True)
class BenchTarget:
    """A server under load; ``meter`` is None if the server's processes are not known.

    ``router_count``: the number of routers in line, which all do the same work for a message. A broker, and a server
    that is not ours, count as one router.
    """

    sending_place: BenchServer
    receiving_place: BenchServer
    meter: Meter | None
    router_count: int
    addresses: BenchAddresses
    tls_place: BenchServer | None = None
    """A listener of the same server for TLS, if it has another one for plain text."""

    def per_router(self, cpu_s: list[float]) -> float:
        return sum(cpu_s) / self.router_count


@dataclass(frozen=True, slots=True)
class BenchAddresses:
    """The addresses of a measurement: ``anycast`` gives each message to one receiver, ``multicast`` to all.

    ``more`` returns the names of further anycast addresses.
    """

    anycast: str
    multicast: str

    def more(self, name: str) -> str:
        return f"{self.anycast}.{name}"


@dataclass(frozen=True, slots=True)
class MeteredPart:
    """A process with figures of its own; ``meter`` is None, and ``name`` empty, if the processes are not known."""

    name: str
    meter: Meter | None


def parts_of(target: BenchTarget) -> list[MeteredPart]:
    """Return a part for each process that the user named by its id."""
    meter = target.meter
    if meter is None:
        return [MeteredPart("", None)]
    return [MeteredPart(f"process {pid}", meter.only(index)) for index, pid in enumerate(meter.pids)]
