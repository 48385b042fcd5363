"""The object of a measurement: where to connect, which addresses to use, whose CPU and memory count."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.bench.dial import BenchServer
from mesh.bench.meter import Meter


@dataclass(frozen=True, slots=True)
class BenchTarget:
    """A server under load. ``meter`` is None where the processes are not known.

    ``router_count``: routers in line, which all do the same work for a message. A server that is not ours counts as one
    router, however many processes it has.
    """

    sending_place: BenchServer
    receiving_place: BenchServer
    meter: Meter | None
    router_count: int
    addresses: BenchAddresses

    def per_router(self, cpu_s: list[float]) -> float:
        return sum(cpu_s) / self.router_count


@dataclass(frozen=True, slots=True)
class BenchAddresses:
    """``anycast`` gives each message to one receiver, ``multicast`` to all.

    ``more`` makes further anycast addresses.
    """

    anycast: str
    multicast: str

    def more(self, name: str) -> str:
        return f"{self.anycast}.{name}"
