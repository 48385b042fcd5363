"""The sending and receiving processes of `bench forward` and `bench broker`.

A plan may have several addresses: each has a connection of its own, and ``count`` messages.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mesh.bench.bench_connection import BenchConnection, BenchLink, run
from mesh.bench.consumer import BenchConsumer
from mesh.bench.dial import BenchServer, Dialed, dial, welcome
from mesh.bench.handshake import LinkPlan
from mesh.bench.performatives import SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED
from mesh.bench.producer import BenchProducer, BoundedProducer
from mesh.bench.worker import STDIN, WorkerReport
from mesh.client.errors import TimedOut
from mesh.terminal.figures import percentiles

PRESETTLED, EACH = "presettled", "each"


def produce(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    mode = SEND_SETTLED if plan["mode"] == PRESETTLED else SEND_UNSETTLED
    dialed = [dial(BenchServer(**plan["place"]), [LinkPlan(address, False, mode)]) for address in plan["addresses"]]
    producers = [make_producer(each, plan) for each in dialed]
    carriers = carriers_of(dialed, producers)
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    is_done = run(carriers, plan["stall_s"])
    used_s = time.process_time() - before_s
    for producer, address in zip(producers, plan["addresses"], strict=True):
        if not producer.sent:
            raise TimedOut(f"the sender got no credit for {address} within {plan['stall_s']:g} s")
    ends = [producer.ended_at for producer in producers] if is_done else [carrier.moved_at for carrier in carriers]
    yield WorkerReport({**count_sent(producers), "ended_at": max(ends), "cpu_s": used_s})
    for each in dialed:
        each.close()


def make_producer(dialed: Dialed, plan: Mapping[str, Any]) -> BenchProducer:
    attached = dialed.attached[0]
    options = {
        "run": plan["run"],
        "count": plan["count"],
        "body_bytes": plan["body_bytes"],
        "frame_bytes": dialed.peer.frame_bytes,
        "is_presettled": plan["mode"] == PRESETTLED,
        "is_durable": plan["is_durable"],
    }
    link = (attached.channel, attached.plan.what, attached.remote_window)
    return (
        BoundedProducer(*link, in_flight=plan["in_flight"], **options)
        if plan.get("in_flight")
        else BenchProducer(*link, **options)
    )


def count_sent(producers: Sequence[BenchProducer]) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    for producer in producers:
        outcomes.update(producer.outcomes_counted)
    bounded = [producer for producer in producers if isinstance(producer, BoundedProducer)]
    waits_s = [wait_s for producer in bounded for wait_s in producer.waits_s]
    return {
        "sent": sum(producer.sent for producer in producers),
        "unsettled": sum(producer.count - producer.settled for producer in producers),
        "settled_twice": sum(producer.settled_twice for producer in producers),
        "outcomes": outcomes,
        "started_at": min(producer.started_at for producer in producers),
        "waits_us": percentiles([wait_s * 1e6 for wait_s in waits_s]),
        "waited_s": sum(waits_s),
    }


def consume(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    """Receive with ``connections`` receivers for each address, each of which has a connection of its own and expects
    ``count`` messages; yield the report of each step.
    """
    place = BenchServer(**plan["place"])
    link_of = partial(LinkPlan, is_receiver=True, settle_mode=SEND_MIXED, is_lasting=plan.get("is_lasting", False))
    links = [link_of(address) for address in plan["addresses"] for _ in range(plan["connections"])]
    yield from receive([dial(place, [link]) for link in links], plan)


def sink(plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    """Accept one connection on the inherited socket ``listen_fd``, in place of a server, and receive the messages of
    the sender that connects; yield the report of each step.
    """
    listening = socket.socket(fileno=os.dup(plan["listen_fd"]))
    yield WorkerReport({"listening": True})
    yield from receive([welcome(listening)], plan)


def receive(dialed: Sequence[Dialed], plan: Mapping[str, Any]) -> Iterator[WorkerReport]:
    consumers = [make_consumer(each, plan) for each in dialed]
    carriers = carriers_of(dialed, consumers)
    yield WorkerReport({"ready": True})
    before_s = time.process_time()
    # The next line from the parent process says that the sender is done. From then on, half of ``stall_s`` without a
    # message ends the receiving, and the missing messages are lost. The limit is not shorter, because brokers may be
    # silent for seconds after a burst.
    run(carriers, plan["stall_s"] * 2, STDIN, plan["stall_s"] / 2)
    used_s = time.process_time() - before_s
    yield WorkerReport({**count(consumers), "cpu_s": used_s})
    # The report above did not wait for the parent's line that the sender is done: this report answers the line.
    yield WorkerReport({"finished": True})
    for each in dialed:
        each.close()


def carriers_of(dialed: Sequence[Dialed], links: Sequence[BenchLink]) -> list[BenchConnection]:
    carriers = [each.carrier() for each in dialed]
    for each, carrier, link in zip(dialed, carriers, links, strict=True):
        carrier.add(link, each.attached[0].peer_channel)
        carrier.feed(each.leftover)
    return carriers


def make_consumer(dialed: Dialed, plan: Mapping[str, Any]) -> BenchConsumer:
    attached = dialed.attached[0]
    return BenchConsumer(
        attached.channel,
        attached.plan.what,
        attached.next_incoming_id,
        attached.delivery_count,
        run=plan["run"],
        count=plan["count"],
        body_bytes=plan["body_bytes"],
        window=plan["window"],
        is_each=plan["mode"] == EACH,
    )


def count(consumers: Sequence[BenchConsumer]) -> dict[str, Any]:
    return {
        "received": sum(each.received for each in consumers),
        "lost": sum(each.count - each.received for each in consumers),
        "doubled": sum(each.doubled for each in consumers),
        "reordered": sum(each.reordered for each in consumers),
        "damaged": sum(each.damaged for each in consumers),
        "ended_at": max(each.ended_at for each in consumers),
    }
