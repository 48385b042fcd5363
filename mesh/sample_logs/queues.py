"""Plans for generated link logs the queues at brokers, and the time that messages wait in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy

from addressing.topology.model import Topology
from linklogs.generating.plan import NO_LIFE, NO_QUEUE, PlannedQueues
from mesh.sample_logs.population import AddressShare, SampleClient
from mesh.sample_logs.profile import log_us
from mesh.sample_logs.registry import Registry, SampleRun


def kept(addresses: Sequence[AddressShare], everybody: Sequence[SampleClient]) -> list[tuple[int, str]]:
    """List the queues, each as the place of its address, with the broker or, for a topic, the container of the
    subscriber.
    """
    found: list[tuple[int, str]] = []
    for place, spoken in enumerate(addresses):
        if spoken.policy.kind.has_queues:
            found += [(place, broker) for broker in spoken.policy.brokers]
        if spoken.policy.kind.has_subscriptions:
            found += [(place, each.container) for each in everybody if each.address == place and not each.is_producer]
    return found


def queue_table(
    topology: Topology, registry: Registry, addresses: Sequence[AddressShare], queues: Sequence[tuple[int, str]]
) -> PlannedQueues:
    """Make the table of planned queues, numbered from 1 at each broker."""
    runs: dict[str, list[SampleRun]] = defaultdict(list)
    for run in registry.runs:
        runs[run.node].append(run)
    numbers: dict[str, int] = defaultdict(int)
    life, number, names = [], [], []
    for place, key in queues:
        spoken = addresses[place]
        is_topic = spoken.policy.kind.has_subscriptions
        broker = spoken.policy.brokers[0] if is_topic else key
        numbers[broker] += 1
        number.append(numbers[broker])
        life.append(runs[broker][0].place if topology.brokers[broker].is_embedded else NO_LIFE)
        names.append(f"{key}|{key}/{spoken.name}" if is_topic else "")
    parts = [addresses[place].traffic for place, _ in queues]
    return PlannedQueues(
        life=numpy.array(life, numpy.int64),
        number=numpy.array(number, numpy.int64),
        address=numpy.array([place for place, _ in queues], numpy.int64),
        name=tuple(names),
        wait_log=numpy.array([log_us(each.wait) for each in parts]),
        wait_spread=numpy.array([each.wait_spread for each in parts]),
        expired=numpy.array([each.expired for each in parts]),
        dead_lettered=numpy.array([each.dead_lettered for each in parts]),
        grave=numpy.array([_grave(addresses, queues, *each) for each in queues], numpy.int64),
        later=tuple((each[0].place, run.place, run.begins_us) for each in runs.values() for run in each[1:]),
        away=tuple(
            (each[0].place, before.ends_us, after.begins_us)
            for each in runs.values()
            for before, after in pairwise(each)
        ),
    )


def _grave(addresses: Sequence[AddressShare], queues: Sequence[tuple[int, str]], place: int, key: str) -> int:
    """Return the place of a queue's dead-letter queue, or NO_QUEUE if the queue has none in the logs.

    The logs have a dead-letter queue only if its address has traffic of its own, and only at the same broker.
    """
    policy = addresses[place].policy
    broker = policy.brokers[0] if policy.kind.has_subscriptions else key
    name = "" if policy.queue.dead_letter is None else policy.queue.dead_letter.name
    named = [i for i, each in enumerate(addresses) if name in (each.policy.broker_address, each.name)]
    return next((queues.index((i, broker)) for i in named if name and (i, broker) in queues), NO_QUEUE)
