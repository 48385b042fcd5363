"""The two sides of `bench forward`: who sends, who receives, and a receiver that is its own server."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesh.bench.carrier import run
from mesh.bench.consumer import Consumer
from mesh.bench.dialing import Dialed, Place, dial, welcome
from mesh.bench.handshake import LinkPlan
from mesh.bench.performatives import SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED
from mesh.bench.producer import Producer
from mesh.bench.worker import STDIN, Step
from mesh.failure import TimedOut

PRESETTLED, EACH = "presettled", "each"


def produce(plan: Mapping[str, Any]) -> Iterator[Step]:
    is_presettled = plan["mode"] == PRESETTLED
    link = LinkPlan(plan["address"], False, SEND_SETTLED if is_presettled else SEND_UNSETTLED)
    dialed = dial(Place(**plan["place"]), [link])
    producer = make_producer(dialed, plan, is_presettled)
    carrier = dialed.carrier()
    carrier.add(producer, dialed.attached[0].peer_channel)
    carrier.feed(dialed.leftover)
    yield Step({"ready": True})
    before_s = time.process_time()
    is_done = run([carrier], plan["stall_s"])
    used_s = time.process_time() - before_s
    if not producer.sent:
        raise TimedOut(f"no credit for {link.address} within {plan['stall_s']:g} s")
    yield Step(
        {
            "sent": producer.sent,
            "unsettled": producer.count - producer.settled,
            "settled_twice": producer.settled_twice,
            "outcomes": producer.outcomes_counted,
            "started_at": producer.started_at,
            "ended_at": producer.ended_at if is_done else carrier.moved_at,
            "cpu_s": used_s,
        }
    )
    dialed.close()


def make_producer(dialed: Dialed, plan: Mapping[str, Any], is_presettled: bool) -> Producer:
    attached = dialed.attached[0]
    return Producer(
        attached.channel,
        attached.plan.what,
        attached.remote_window,
        run=plan["run"],
        count=plan["count"],
        body_bytes=plan["body_bytes"],
        frame_bytes=dialed.peer.frame_bytes,
        is_presettled=is_presettled,
        is_durable=plan["is_durable"],
    )


def consume(plan: Mapping[str, Any]) -> Iterator[Step]:
    """As many receivers as ``connections``, each of which wants all messages."""
    place, link = Place(**plan["place"]), LinkPlan(plan["address"], True, SEND_MIXED)
    yield from receive([dial(place, [link]) for _ in range(plan["connections"])], plan)


def sink(plan: Mapping[str, Any]) -> Iterator[Step]:
    """One receiver, to which the sender connects."""
    listening = socket.socket(fileno=os.dup(plan["listen_fd"]))
    yield Step({"listening": True})
    yield from receive([welcome(listening)], plan)


def receive(dialed: Sequence[Dialed], plan: Mapping[str, Any]) -> Iterator[Step]:
    consumers = [make_consumer(each, plan) for each in dialed]
    carriers = [each.carrier() for each in dialed]
    for each, carrier, consumer in zip(dialed, carriers, consumers, strict=True):
        carrier.add(consumer, each.attached[0].peer_channel)
        carrier.feed(each.leftover)
    yield Step({"ready": True})
    before_s = time.process_time()
    # A line from the parent says that the sender is done: what is not here soon will not come. Brokers may be busy with
    # what they got at once, and silent for seconds.
    run(carriers, plan["stall_s"] * 2, STDIN, plan["stall_s"] / 2)
    used_s = time.process_time() - before_s
    yield Step({**count(consumers), "cpu_s": used_s})
    # That line is read only now.
    yield Step({"finished": True})
    for each in dialed:
        each.close()


def make_consumer(dialed: Dialed, plan: Mapping[str, Any]) -> Consumer:
    attached = dialed.attached[0]
    return Consumer(
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


def count(consumers: Sequence[Consumer]) -> dict[str, Any]:
    return {
        "received": sum(each.received for each in consumers),
        "lost": sum(each.count - each.received for each in consumers),
        "doubled": sum(each.doubled for each in consumers),
        "reordered": sum(each.reordered for each in consumers),
        "damaged": sum(each.damaged for each in consumers),
        "ended_at": max(each.ended_at for each in consumers),
    }
