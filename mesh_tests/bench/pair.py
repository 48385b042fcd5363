"""How does a test drive one link of the load generator: against an endpoint, or against bytes of its own?"""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Any

from mesh.bench.bench_connection import BenchConnection, run
from mesh.bench.consumer import BenchConsumer
from mesh.bench.dial import Dialed, dial
from mesh.bench.frames import codes
from mesh.bench.handshake import LinkPlan
from mesh.bench.performatives import encode
from mesh.bench.producer import BenchProducer
from mesh.bench.values import FALSE, NULL, TRUE, described, uint
from mesh_tests.bench.messages import RUN
from mesh_tests.bench.wire_peer import WirePeer

STALL_S = 5.0
SOON_S = 0.3
BODY_BYTES = 100


def producer_on(dialed: Dialed, kind: type[BenchProducer] = BenchProducer, **options: Any) -> BenchProducer:
    attached = dialed.attached[0]
    plan = {"run": RUN, "count": 10, "body_bytes": BODY_BYTES, "frame_bytes": dialed.peer.frame_bytes, **options}
    return kind(attached.channel, attached.plan.what, attached.remote_window, **plan)


def consumer_on(dialed: Dialed, kind: type[BenchConsumer] = BenchConsumer, **options: Any) -> BenchConsumer:
    attached = dialed.attached[0]
    plan = {"run": RUN, "count": 10, "body_bytes": BODY_BYTES, "window": 10, **options}
    return kind(attached.channel, attached.plan.what, attached.next_incoming_id, attached.delivery_count, **plan)


def drive(dialed: Dialed, link: Any, stall_s: float = STALL_S) -> bool:
    carrier = dialed.carrier()
    carrier.add(link, dialed.attached[0].peer_channel)
    carrier.feed(dialed.leftover)
    return run([carrier], stall_s)


def produce(peer: WirePeer, stall_s: float = STALL_S, **options: Any) -> BenchProducer:
    with closing(dial(peer.place, [LinkPlan("a", False)])) as dialed:
        producer = producer_on(dialed, **options)
        drive(dialed, producer, stall_s)
        return producer


def consume(peer: WirePeer, stall_s: float = STALL_S, **options: Any) -> BenchConsumer:
    with closing(dial(peer.place, [LinkPlan("a", True)])) as dialed:
        consumer = consumer_on(dialed, **options)
        drive(dialed, consumer, stall_s)
        return consumer


class Pair:
    """A link on one end of a socket pair; the test speaks at the other."""

    def __init__(self, link: Any, frame_bytes: int = 65536) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.settimeout(STALL_S)
        self.link = link
        self.carrier = BenchConnection(self.ours.fileno(), frame_bytes, 3600.0)
        self.carrier.add(link, 0)

    def say(self, *frames: bytes) -> bool:
        self.theirs.sendall(b"".join(frames))
        return run([self.carrier], SOON_S)

    def heard(self) -> bytes:
        self.theirs.setblocking(False)
        try:
            return self.theirs.recv(1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def a_producer(count: int = 10, **options: Any) -> BenchProducer:
    plan = {"run": RUN, "count": count, "body_bytes": BODY_BYTES, "frame_bytes": 65536, **options}
    return BenchProducer(0, "cannot send to a", 1000, **plan)


def a_consumer(count: int = 10, **options: Any) -> BenchConsumer:
    plan = {"run": RUN, "count": count, "body_bytes": BODY_BYTES, "window": 10, **options}
    return BenchConsumer(0, "cannot receive from a", 0, 0, **plan)


def transfer(number: int, data: bytes, *, is_settled: bool = False, has_more: bool = False) -> bytes:
    tag = b"\xa0\x01t"
    head = encode(
        0, 0x14, uint(0), uint(number), tag, NULL, *(TRUE if flag else FALSE for flag in (is_settled, has_more))
    )
    return (len(head) + len(data)).to_bytes(4, "big") + head[4:] + data


def disposition(first: int, last: int, *, state: int | None = 0x24, is_settled: bool = True) -> bytes:
    outcome = described(state, []) if state is not None else NULL
    return encode(0, 0x15, TRUE, uint(first), uint(last), TRUE if is_settled else FALSE, outcome)


def frames_of(data: bytes) -> list[tuple[int, int]]:
    starts = [at for _, _, at in codes(data)[0]]
    return list(zip(starts, [*starts[1:], len(data)], strict=True))
