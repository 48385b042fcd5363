"""Who goes first where credit or room is short: by its address, and by the header of what is held? Through sockets."""

from __future__ import annotations

import os
import signal
from collections import deque
from contextlib import contextmanager

import pytest

from mesh_tests.egress import egress_at
from mesh_tests.live.wire_client import WireClient, wait_with
from mesh_tests.waiting import wait_until
from wire.message import Message, decode, encode

pytestmark = pytest.mark.quiet

LOW_BYTES, LOW_COUNT = 40_000, 700
"""28 MB: more than all buffers on the way hold."""
HIGH_BYTES, HIGH_COUNT = 10_000, 50
MOST_PASSED = 10
"""What an engine that has room is handed before it has none."""
LOOKS = 5
CAPACITY = 1000

TOPOLOGY = f"""
mesh: priorities
node_tls: false
routers:
  r1: {{connect: [r2], listeners: [{{link_capacity: {CAPACITY}}}]}}
  r2: {{connect: [r3]}}
  r3:
addresses:
  urgent: {{type: anycast, priority: 9}}
  bulk: {{type: anycast, priority: 0}}
  alarm: {{type: multicast, priority: 9}}
  news: {{type: multicast, priority: 0}}
"""


@pytest.fixture(scope="module")
def mesh(start_module_mesh):
    """Its own: a router is stopped for a moment."""
    return start_module_mesh(TOPOLOGY)


# By address
@contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _wait_full(mesh, client):
    """Until r1 has written nothing for some looks, though there is more."""
    seen = deque(maxlen=LOOKS)

    def stands():
        client.step()
        seen.append(sum(each["bytes_out"] // LOW_BYTES for each in mesh.snapshot("r1")["node"]["connections"]))
        return len(seen) == LOOKS and seen[0] == seen[-1]

    wait_until(stands, 30.0, "the trunk to be full")


def _overtake(mesh, egress, low, high):
    """Addresses of what arrived, in order; ``low`` had filled the trunk before ``high`` came."""
    with (
        WireClient(mesh.port("r1"), idle_timeout_s=0) as early,
        WireClient(mesh.port("r1"), idle_timeout_s=0) as late,
        WireClient(mesh.port(egress), idle_timeout_s=0) as consumer,
    ):
        names = {consumer.receiver(address, credit=CAPACITY): address for address in (low, high)}
        filling, overtaking = early.sender(low), late.sender(high)
        early.wait(lambda: filling.credit >= LOW_COUNT, "credit")
        late.wait(lambda: overtaking.credit >= HIGH_COUNT, "credit")
        # Settled copies of a multicast would not wait for a router that takes nothing.
        is_settled = low == "bulk"
        with stopped(mesh.pid("r2")):
            for _ in range(LOW_COUNT):
                early.send_bytes(filling, bytes(LOW_BYTES), is_settled=is_settled)
            _wait_full(mesh, early)
            for _ in range(HIGH_COUNT):
                late.send_bytes(overtaking, bytes(HIGH_BYTES), is_settled=is_settled)
            # An answer to what comes behind them: they are there.
            late.sender(high)
        arrived = consumer.arrived if is_settled else []

        def has_all():
            if not is_settled:
                arrived.extend(consumer.settle_all())
            return len(arrived) == LOW_COUNT + HIGH_COUNT

        wait_with((early, late, consumer), has_all, "all of it", 20)
        return [names[each.link] for each in arrived]


@pytest.mark.parametrize(("low", "high"), [("bulk", "urgent"), ("news", "alarm")])
@egress_at("r2", "r3")
def test_with_a_full_trunk_the_higher_priority_overtakes(mesh, egress, low, high):
    arrived = _overtake(mesh, egress, low, high)
    first, last = arrived.index(high), len(arrived) - 1 - arrived[::-1].index(high)
    assert arrived[first:last].count(low) <= MOST_PASSED
    assert arrived[last:].count(low) > MOST_PASSED, "there was something to overtake"


# By header
def _held(producer, address, *levels):
    """Each waits at the producer's router, on a link of its own, in this order."""
    for level in levels:
        sender = producer.sender(address)
        producer.wait(lambda link=sender: link.credit > 0, "credit")
        producer.send_bytes(sender, encode(Message(body=f"level {level}", priority=level)))
    # An answer to what comes behind them: they are there.
    producer.sender(address)


@pytest.mark.parametrize("kind", ["work", "news"])
def test_of_what_is_held_the_most_urgent_goes_first(producer, consumer, work, news, kind):
    address = {"work": work, "news": news}[kind]
    receiver = consumer.receiver(address)
    # What goes on before there is anything to compare it with: at most one for each router.
    _held(producer, address, 9, 9, 9)
    _held(producer, address, 4, 1, 8, 0, 5)
    came = []
    for _ in range(8):
        receiver.grant(1)
        wait_with((producer, consumer), lambda: consumer.arrived, "the next")
        came += [decode(each.data).body for each in consumer.settle_all()]
    assert came == [f"level {level}" for level in (9, 9, 9, 8, 5, 4, 1, 0)]
