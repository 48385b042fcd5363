"""Both sides of `bench latency` in one process, with one clock; and the relay of bytes for the least possible
latency.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mesh.bench.bench_connection import BenchConnection, BenchLink, run
from mesh.bench.consumer import BenchConsumer, TimedConsumer
from mesh.bench.dial import BenchServer, Dialed, bound_receive_buffer, dial, welcome
from mesh.bench.handshake import Attached, LinkPlan
from mesh.bench.performatives import SEND_UNSETTLED
from mesh.bench.producer import BenchProducer, PacedProducer
from mesh.bench.relay import relay
from mesh.bench.worker import WorkerReport
from mesh.client.errors import TimedOut
from mesh.terminal.figures import percentiles

# Bound of unsent bytes in the kernel, so that small messages wait for the router, not behind megabytes of a stream.
UNSENT_BOUND_BYTES = 65536
RECEIVE_BUFFER_BYTES = 262144
# The greatest duration, in s, of the small messages beside streams of large messages, even if streams take longer.
MOST_SECONDS = 120.0
WINDOW = 1000


def pair(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    sending, receiving = connect_both(plan)
    sides = PairLinks(sending, receiving, plan)
    yield WorkerReport({"ready": True})
    run(sides.carriers, plan["stall_s"])
    yield WorkerReport(sides.report())
    sending.close()
    receiving.close()


def connect_both(plan: Mapping[str, Any]) -> tuple[Dialed, Dialed]:
    addresses = [plan["address"], *plan["stream_addresses"]]
    senders = [LinkPlan(address, False, SEND_UNSETTLED) for address in addresses]
    buffer_bytes = RECEIVE_BUFFER_BYTES if plan["stream_addresses"] else 0
    if plan["listen_fd"] is not None:
        listening = socket.socket(fileno=os.dup(plan["listen_fd"]))
        bound_receive_buffer(listening, buffer_bytes)
        with ThreadPoolExecutor(1) as pool:
            welcomed = pool.submit(welcome, listening, len(addresses))
            return dial(BenchServer(**plan["sending_place"]), senders), welcomed.result()
    receiving = dial(
        BenchServer(**plan["receiving_place"]), [LinkPlan(address, True) for address in addresses], buffer_bytes
    )
    return dial(BenchServer(**plan["sending_place"]), senders), receiving


class PairLinks:
    """All links of a measurement: the link of the paced small messages, which is first on each connection, and the
    streams.
    """

    def __init__(self, sending: Dialed, receiving: Dialed, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        self._streams = [self._stream_producer(sending, each) for each in sending.attached[1:]]
        self._taken = [self._stream_consumer(each) for each in receiving.attached[1:]]
        self._producer = self._paced(sending)
        self._consumer = self._timed(receiving.attached[0])
        self.carriers = [
            self._carrier(sending, [self._producer, *self._streams]),
            self._carrier(receiving, [self._consumer, *self._taken]),
        ]

    def _carrier(self, dialed: Dialed, links: list[BenchLink]) -> BenchConnection:
        carrier = dialed.carrier(UNSENT_BOUND_BYTES if len(links) > 1 else 0)
        for link, attached in zip(links, dialed.attached, strict=True):
            carrier.add(link, attached.peer_channel)
        carrier.feed(dialed.leftover)
        return carrier

    def _paced(self, sending: Dialed) -> PacedProducer:
        attached = sending.attached[0]
        return PacedProducer(
            attached.channel,
            attached.plan.what,
            attached.remote_window,
            rate_per_s=self._plan["rate_per_s"],
            seconds=0.0 if self._streams else self._plan["seconds"],
            most_seconds=MOST_SECONDS if self._streams else self._plan["seconds"],
            companions=list(self._streams),
            run=self._plan["run"],
            body_bytes=self._plan["body_bytes"],
            frame_bytes=sending.peer.frame_bytes,
        )

    def _timed(self, attached: Attached) -> TimedConsumer:
        return TimedConsumer(
            attached.channel,
            attached.plan.what,
            attached.next_incoming_id,
            attached.delivery_count,
            source=self._producer,
            run=self._plan["run"],
            body_bytes=self._plan["body_bytes"],
            window=WINDOW,
        )

    def _stream_producer(self, sending: Dialed, attached: Attached) -> BenchProducer:
        return BenchProducer(
            attached.channel,
            attached.plan.what,
            attached.remote_window,
            run=self._plan["run"],
            count=1,
            body_bytes=self._plan["stream_bytes"],
            frame_bytes=sending.peer.frame_bytes,
            bytes_per_s=self._plan["bytes_per_s"],
        )

    def _stream_consumer(self, attached: Attached) -> BenchConsumer:
        return BenchConsumer(
            attached.channel,
            attached.plan.what,
            attached.next_incoming_id,
            attached.delivery_count,
            run=self._plan["run"],
            count=1,
            body_bytes=self._plan["stream_bytes"],
            window=1,
        )

    def report(self) -> dict[str, Any]:
        if not self._producer.sent:
            raise TimedOut(f"the sender got no credit for {self._plan['address']} within {self._plan['stall_s']:g} s")
        took_us = self._samples_us()
        links = [self._consumer, *self._taken]
        seconds = self._consumer.ended_at - self._producer.started_at
        return {
            "percentiles": percentiles(took_us),
            "messages_per_s": self._consumer.received / seconds,
            "sent": self._producer.sent,
            "lost": self._producer.sent - self._consumer.received + sum(not each.received for each in self._taken),
            "unsettled": self._producer.sent - self._producer.settled + sum(not each.is_done for each in self._streams),
            "doubled": sum(each.doubled for each in links),
            "reordered": sum(each.reordered for each in links),
            "damaged": sum(each.damaged for each in links),
            "stream_s": self._stream_s(),
        }

    def _samples_us(self) -> list[float]:
        """Return the latencies, in us, of the messages sent while streams of large messages flowed; without streams, of
        all.
        """
        sent_ns, took_ns = self._consumer.samples
        first, last = self._flowing_ns() if self._streams else (0, 2**63)
        return [took / 1000 for sent, took in zip(sent_ns, took_ns, strict=True) if first <= sent <= last]

    def _flowing_ns(self) -> tuple[int, int]:
        starts, ends = (each.started_at for each in self._streams), (each.ended_at for each in self._streams)
        return int(min(starts) * 1e9), int(max(ends) * 1e9)

    def _stream_s(self) -> float | None:
        if not self._streams:
            return None
        first, last = self._flowing_ns()
        return (last - first) / 1e9


def forward_bytes(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    """Relay bytes between a client and a server, as one role of the load generator.

    Accept a connection, connect to the server, pass bytes both ways until one side ends, and repeat until killed.
    """
    listening = socket.socket(fileno=os.dup(plan["listen_fd"]))
    yield WorkerReport({"ready": True})
    while True:
        coming, _ = listening.accept()
        with coming, socket.create_connection(("127.0.0.1", plan["port"])) as going:
            for each in (coming, going):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            relay(coming.fileno(), going.fileno())
