"""A sender and a receiver at a low rate, whose latency shows how long a server leaves others waiting meanwhile.

bystand     the role of the load generator: runs until the parent process says that it is enough
Bystander   the same role as seen by the parent process
"""

from __future__ import annotations

import secrets
import select
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesh.bench.bench_connection import BenchLink, run
from mesh.bench.consumer import TimedConsumer
from mesh.bench.dial import BenchServer, Dialed, dial
from mesh.bench.handshake import LinkPlan
from mesh.bench.performatives import SEND_UNSETTLED
from mesh.bench.processes import BenchProcesses
from mesh.bench.producer import PacedProducer
from mesh.bench.target import BenchTarget
from mesh.bench.worker import STDIN, WorkerReport
from mesh.client.errors import TimedOut
from mesh.terminal.figures import percentiles

RATE_PER_S = 100.0
BODY_BYTES = 100
WINDOW = 1000
# The greatest duration in s of a bystander, even if the parent process never says that it is enough.
MOST_SECONDS = 600.0
# A server that has answered still has work of the answer, such as announcing addresses to its neighbors.
AFTERMATH_S = 0.1


def bystand(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    place, address = BenchServer(**plan["place"]), plan["address"]
    receiving = dial(place, [LinkPlan(address, True)])
    sending = dial(place, [LinkPlan(address, False, SEND_UNSETTLED)])
    whistle = BenchLink(0, "whistle", 0, 0)
    producer = paced(sending, whistle, plan)
    consumer = timed(receiving, producer, plan)
    yield WorkerReport({"ready": True})
    threading.Thread(target=blow_when_told, args=(whistle,), daemon=True).start()
    run([carrier_of(sending, producer), carrier_of(receiving, consumer)], plan["stall_s"])
    if not producer.sent:
        raise TimedOut(f"the sender got no credit for {address} within {plan['stall_s']:g} s")
    sent_ns, took_ns = consumer.samples
    yield WorkerReport(
        {
            "samples": [[sent / 1e9, took / 1000] for sent, took in zip(sent_ns, took_ns, strict=True)],
            "lost": producer.sent - consumer.received,
        }
    )
    sending.close()
    receiving.close()


def blow_when_told(whistle: BenchLink) -> None:
    """End the sending when the parent process has written a line, which the worker itself reads later."""
    select.select([STDIN], [], [])
    whistle.is_done = True


def paced(sending: Dialed, whistle: BenchLink, plan: Mapping[str, Any]) -> PacedProducer:
    attached = sending.attached[0]
    return PacedProducer(
        attached.channel,
        attached.plan.what,
        attached.remote_window,
        rate_per_s=plan["rate_per_s"],
        seconds=0.0,
        most_seconds=plan["most_seconds"],
        companions=[whistle],
        run=plan["run"],
        body_bytes=BODY_BYTES,
        frame_bytes=sending.peer.frame_bytes,
    )


def timed(receiving: Dialed, producer: PacedProducer, plan: Mapping[str, Any]) -> TimedConsumer:
    attached = receiving.attached[0]
    return TimedConsumer(
        attached.channel,
        attached.plan.what,
        attached.next_incoming_id,
        attached.delivery_count,
        source=producer,
        run=plan["run"],
        body_bytes=BODY_BYTES,
        window=WINDOW,
    )


def carrier_of(dialed: Dialed, link: BenchLink) -> Any:
    carrier = dialed.carrier()
    carrier.add(link, dialed.attached[0].peer_channel)
    carrier.feed(dialed.leftover)
    return carrier


@dataclass(frozen=True, slots=True)
class Waits:
    """The time of each message in s (monotonic) at which the message was due, and its latency in us."""

    samples: Sequence[tuple[float, float]]
    lost: int

    def during(self, began_at: float, ended_at: float) -> dict[str, float]:
        """Return the percentiles of the messages that were under way between both times."""
        return percentiles([took for due, took in self.samples if due <= ended_at and due + took / 1e6 >= began_at])


class Bystander:
    """A bystander in a process of its own, which sends from the making of this object until `stop`."""

    def __init__(
        self,
        sides: BenchProcesses,
        target: BenchTarget,
        stall_s: float,
        rate_per_s: float = RATE_PER_S,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self._side = sides.start(
            "bystand",
            {
                "place": target.sending_place.to_map(),
                "address": target.addresses.more("bystander"),
                "run": secrets.randbits(32),
                "rate_per_s": rate_per_s,
                "most_seconds": most_seconds,
                "stall_s": stall_s,
            },
        )
        self._side.step()
        self._side.go_on()

    def stop(self) -> Waits:
        self._side.go_on()
        report = self._side.step()
        self._side.end()
        return Waits([(due, took) for due, took in report["samples"]], report["lost"])
