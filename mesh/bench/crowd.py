"""The processes of `bench fan` and `bench busy`, which have thousands of links.

share   many consumers, on some connections, that together receive each message once
swarm   many connections with a producer each, and a few consumers, with one clock
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesh.bench.anonymous_senders import check_body
from mesh.bench.bench_connection import BenchConnection
from mesh.bench.crowd_loop import SendingTurns, SharedReceipts, SharingConsumer, TurnProducer, run_crowd
from mesh.bench.dial import BenchServer, Dialed, dial
from mesh.bench.handshake import LinkPlan
from mesh.bench.idle_connections import check_sessions, shares
from mesh.bench.performatives import SEND_UNSETTLED
from mesh.bench.worker import STDIN, WorkerReport
from mesh.client.errors import TimedOut
from mesh.terminal.figures import percentiles

# The most links of one connection, which the generator finds by the peer's channel.
MOST_LINKS = 250


def share(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    place, (address,) = BenchServer(**plan["place"]), plan["addresses"]
    receipts = SharedReceipts(plan["count"])
    dialed = [
        dial(place, [LinkPlan(address, True)] * len(links)) for links in shares(plan["consumers"], plan["connections"])
    ]
    consumers, carriers = consumers_on(dialed, receipts, plan)
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    # As in `mesh.bench.sides`, a line of the parent process says that the sender is done.
    run_crowd(carriers, receipts, plan["stall_s"] * 2, STDIN, plan["stall_s"] / 2)
    used_s = time.process_time() - before_s
    yield WorkerReport({**count_received(receipts, consumers), "cpu_s": used_s})
    yield WorkerReport({"finished": True})
    for each in dialed:
        each.close()


def swarm(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    place, (address,) = BenchServer(**plan["place"]), plan["addresses"]
    receipts = SharedReceipts(plan["count"], True)
    receiving = [dial(place, [LinkPlan(address, True)]) for _ in range(plan["consumers"])]
    sending = [dial(place, [LinkPlan(address, False, SEND_UNSETTLED)]) for _ in range(plan["connections"])]
    consumers, receiving_carriers = consumers_on(receiving, receipts, plan)
    producers, sending_carriers = producers_on(sending, plan)
    turns = SendingTurns(producers, plan["rate_per_s"], plan["count"])
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    run_crowd([*receiving_carriers, *sending_carriers], receipts, plan["stall_s"], turns=turns)
    used_s = time.process_time() - before_s
    if not any(producer.sent for producer in producers):
        raise TimedOut(f"no producer got credit for {address} within {plan['stall_s']:g} s")
    outcomes: Counter[str] = Counter()
    for producer in producers:
        outcomes.update(producer.outcomes_counted)
    yield WorkerReport(
        {
            **count_received(receipts, consumers),
            "outcomes": outcomes,
            "unsettled": sum(producer.count - producer.settled for producer in producers),
            "settled_twice": sum(producer.settled_twice for producer in producers),
            "percentiles": percentiles(receipts.took_us),
            "started_at": turns.started_at,
            "cpu_s": used_s,
        }
    )
    for each in (*sending, *receiving):
        each.socket.close()
    yield WorkerReport({"closed": True})


def consumers_on(
    dialed: Sequence[Dialed], receipts: SharedReceipts, plan: Mapping[str, Any]
) -> tuple[list[SharingConsumer], list[BenchConnection]]:
    """Make a consumer of each link of the connections, and the connections that carry the consumers."""
    consumers, carriers = [], []
    for each in dialed:
        check_sessions(len(each.attached), each.peer)
        carrier = each.carrier()
        for attached in each.attached:
            consumer = SharingConsumer(
                attached.channel,
                attached.plan.what,
                attached.next_incoming_id,
                attached.delivery_count,
                receipts=receipts,
                run=plan["run"],
                body_bytes=plan["body_bytes"],
                window=plan["window"],
            )
            carrier.add(consumer, attached.peer_channel)
            consumers.append(consumer)
        carrier.feed(each.leftover)
        carriers.append(carrier)
    return consumers, carriers


def producers_on(dialed: Sequence[Dialed], plan: Mapping[str, Any]) -> tuple[list[TurnProducer], list[BenchConnection]]:
    producers, carriers = [], []
    for index, each in enumerate(dialed):
        check_body(plan["body_bytes"], each.peer)
        attached = each.attached[0]
        producer = TurnProducer(
            attached.channel,
            attached.plan.what,
            attached.remote_window,
            index=index,
            step=len(dialed),
            run=plan["run"],
            count=len(range(index, plan["count"], len(dialed))),
            body_bytes=plan["body_bytes"],
            frame_bytes=each.peer.frame_bytes,
        )
        carrier = each.carrier()
        carrier.add(producer, attached.peer_channel)
        carrier.feed(each.leftover)
        producers.append(producer)
        carriers.append(carrier)
    return producers, carriers


def count_received(receipts: SharedReceipts, consumers: Sequence[SharingConsumer]) -> dict[str, Any]:
    return {
        "received": receipts.received,
        "lost": receipts.count - receipts.received,
        "doubled": sum(each.doubled for each in consumers),
        "reordered": sum(each.reordered for each in consumers),
        "damaged": sum(each.damaged for each in consumers),
        "shares": [each.received for each in consumers],
        "ended_at": receipts.ended_at,
    }
