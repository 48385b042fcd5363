"""What vanishes halfway: random lives, by seed, and what they found, step by step. A seed that failed once stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_tests.seeds import seeds
from mesh_tests.sim.line import line
from mesh_tests.sim.vanishing import VanishingWalk, addressed
from mesh_tests.sim.walk import RETRANSMITTED, data_section
from router.forwarding import ties
from wire import delivery as deliveries
from wire.delivery import OutcomeCode

SEEDS = seeds(40, 90, 250, 1016, 5217, 9006, 12031, 100_092, 100_431, 101_272, 101_437, 102_149, 102_320)


class RetransmittingWalk(VanishingWalk):
    RPC = RETRANSMITTED


@pytest.mark.parametrize(
    ("kind", "seed"), [*((VanishingWalk, seed) for seed in SEEDS), *((RetransmittingWalk, seed) for seed in SEEDS[::4])]
)
def test_what_vanishes_halfway_harms_no_other_delivery(tmp_path: Path, kind: type[VanishingWalk], seed: int):
    ties_before = ties.count()
    walk = kind(seed, tmp_path)
    walk.live(150)
    assert walk.kept() == []
    assert ties.count() == ties_before, "a delivery that nobody has any more is still tied"


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_a_session_may_end_with_a_message_half_written_into_it(address: str):
    mesh = line(1)
    client = mesh.client("r1", "consumer", max_frame_bytes=512, window_frames=4)
    consumer = client.receiver(address)
    producer = mesh.client("r1", "producer").sender(address)
    consumer.reads = False
    mesh.send(producer, bytes(100_000))
    mesh.run(0.1)
    consumer.link.session.end()
    mesh.run(0.1)
    if not client.closed:  # what the engine still has to say of that session is heard with what comes next
        client.endpoint.begin()
    mesh.run_until(lambda: len(producer.outcomes) == 1)
    assert producer.outcomes[1].kind in (OutcomeCode.MODIFIED, OutcomeCode.RELEASED)
    another = mesh.client("r1", "another").receiver(address)
    mesh.send(producer, b"whole")
    mesh.run_until(lambda: another.messages == [b"whole"])
    assert consumer.messages == []


@pytest.mark.parametrize("half", ["rpc", "prices"])
def test_what_was_seen_in_a_session_that_ends_is_in_doubt_though_another_link_of_it_is_half_written(half: str):
    mesh = line(1)
    client = mesh.client("r1", "consumer", max_frame_bytes=512, window_frames=4)
    stuck, holder = client.receiver(half), client.receiver("work.a")
    holder.accepts = False
    large, small = (mesh.client("r1", name).sender(name) for name in (half, "work.a"))
    mesh.send(small, b"seen")
    mesh.run_until(lambda: holder.messages == [b"seen"])
    stuck.reads = False
    mesh.send(large, bytes(100_000))
    mesh.run(0.1)
    client.begin().end()
    mesh.flush()
    another = mesh.client("r1", "another").receiver("work.a")
    mesh.run_until(lambda: len(small.outcomes) == 1)
    assert small.outcomes[1].kind is OutcomeCode.MODIFIED
    assert another.messages == []


@pytest.mark.parametrize("address", ["rpc", "prices"])
def test_of_a_message_whose_beginning_nobody_took_nobody_gets_the_end(address: str):
    mesh = line(1)
    first = mesh.client("r1", "first").receiver(address)
    producer = mesh.client("r1", "producer").sender(address)
    mesh.run_until(lambda: producer.link.credit > 0)
    producer.begin()
    producer.link.send(b"beginning")
    mesh.run(0.1)
    first.link.close()
    mesh.run(3)
    second = mesh.client("r1", "second").receiver(address)
    mesh.run(0.1)
    producer.link.send(b"end")
    producer.link.finish()
    mesh.flush()
    mesh.run_until(lambda: len(producer.outcomes) == 1)
    assert producer.outcomes[1].kind is OutcomeCode.RELEASED
    assert second.messages == []


def test_a_producer_may_settle_over_a_link_that_its_router_just_ended():
    mesh = line(1)
    consumer = mesh.client("r1", "consumer").receiver("rpc")
    consumer.accepts = False
    client = mesh.client("r1", "producer")
    producer = client.sender(None)
    mesh.send(producer, addressed("rpc") + data_section(1, 10))
    mesh.run_until(lambda: len(consumer.held) == 1)
    (delivery,) = producer.open
    # Too large to wait for its end, and with nowhere to go: the router ends the link.
    producer.begin()
    producer.link.send(addressed("nowhere") + data_section(2, 100_000))
    mesh.flush()
    mesh.run(1.5 * mesh.delay_s)
    del producer.open[delivery]
    deliveries.settle(delivery)
    client.endpoint.mark_dirty()
    mesh.run_until(lambda: producer.error is not None)
    mesh.run(0.1)
    assert producer.error.condition == "amqp:not-found"
    assert client.closed is None
