"""The sending process of `bench addresses`: several senders without an address, one on each connection."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mesh.bench.addressing_producer import AddressingProducer
from mesh.bench.bench_connection import run
from mesh.bench.dial import BenchServer, dial
from mesh.bench.handshake import LinkPlan, PeerOpen
from mesh.bench.performatives import FRAME_BYTES, SEND_UNSETTLED
from mesh.bench.worker import WorkerReport
from mesh.client.errors import TimedOut
from mesh.terminal.failure import CommandFailed

# Bytes of a frame, at most, beside the body: performative, properties with the address, and head of the body.
HEAD_BYTES = 300
WARM_UP = {"senders": 1, "messages": 2_000, "addresses": 100}


def send_anonymously(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    warm_up = AnonymousSenders({**plan, **WARM_UP, "prefix": plan["prefix"] + "warm."})
    warm_up.send_all()
    warm_up.close()
    senders = AnonymousSenders(plan)
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    senders.send_all()
    yield WorkerReport({**senders.report(), "cpu_s": time.process_time() - before_s}, senders.keep_alive)
    senders.close()


class AnonymousSenders:
    """Sender s sends the messages s, s + n, s + 2n ... of n senders, so that the addresses have equal shares."""

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._plan = plan
        place = BenchServer(**plan["place"])
        count = plan["senders"]
        self._dialed = [dial(place, [LinkPlan("", False, SEND_UNSETTLED)]) for _ in range(count)]
        self._producers = []
        self._carriers = []
        for number, dialed in enumerate(self._dialed):
            check_body(plan["body_bytes"], dialed.peer)
            attached = dialed.attached[0]
            producer = AddressingProducer(
                attached.channel,
                attached.plan.what,
                attached.remote_window,
                addresses=plan["prefix"],
                address_count=plan["addresses"],
                first=number,
                step=count,
                run=plan["run"],
                count=len(range(number, plan["messages"], count)),
                body_bytes=plan["body_bytes"],
                frame_bytes=dialed.peer.frame_bytes,
            )
            carrier = dialed.carrier()
            carrier.add(producer, attached.peer_channel)
            carrier.feed(dialed.leftover)
            self._producers.append(producer)
            self._carriers.append(carrier)

    def send_all(self) -> None:
        """Send all messages and wait for their outcomes. Raise TimedOut, with the progress, at the deadline."""
        began_at = time.monotonic()
        if run(self._carriers, self._plan["stall_s"], limit_s=self._plan["deadline_s"]):
            return
        is_late = time.monotonic() - began_at >= self._plan["deadline_s"]
        why = (
            f"the deadline of {self._plan['deadline_s']:g} s passed"
            if is_late
            else f"no message had moved for {self._plan['stall_s']:g} s"
        )
        raise TimedOut(
            f"{sum(each.sent for each in self._producers):,} of {self._plan['messages']:,} messages to "
            f"{self._plan['prefix']}<number> were sent, and {sum(each.settled for each in self._producers):,} of them "
            f"settled, when {why}"
        )

    def report(self) -> dict[str, Any]:
        outcomes: Counter[str] = Counter()
        for each in self._producers:
            outcomes.update(each.outcomes_counted)
        return {
            "outcomes": outcomes,
            "started_at": min(each.started_at for each in self._producers),
            "ended_at": max(each.ended_at for each in self._producers),
        }

    def keep_alive(self) -> None:
        # All links are done: the loop only sends the empty frames that are due.
        run(self._carriers, 0.0)

    def close(self) -> None:
        for each in self._dialed:
            each.close()


def check_body(body_bytes: int, peer: PeerOpen) -> None:
    most = min(peer.frame_bytes, FRAME_BYTES) - HEAD_BYTES
    if body_bytes > most:
        raise CommandFailed(
            f"each message must fit into one frame of the peer: expected a body of at most {most:,} bytes, "
            f"got {body_bytes:,}"
        )
