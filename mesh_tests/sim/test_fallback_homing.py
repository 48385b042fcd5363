"""The last consumer leaves while messages are on their way to it: is the order kept, whichever router has them?

Moments are swept in half milliseconds, half of what a hop takes: so each message is caught at every place there is.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_broker import SimBroker
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import PATH_WAIT_S, decoded, is_falling_back, mesh_of, numbered, send, text_of, texts
from wire.delivery import ACCEPTED

MOMENTS_S = [n * 0.0005 for n in range(1, 25)]


def test_what_waits_at_a_router_between_comes_back_before_what_the_egress_gave_back_goes_on(tmp_path: Path):
    mesh, sender, resting = direct(tmp_path)
    send(mesh, sender, "m1")
    mesh.run(0.02)
    resting.link.close()
    mesh.flush()
    mesh.run(0.0015)
    send(mesh, sender, "m2")
    mesh.run(0.3)
    assert sender.outcomes == dict.fromkeys((21, 22), ACCEPTED), "both are in the queue"
    again = mesh.client("r3", "d").receiver("rpc")
    mesh.run_until(lambda: texts(again) == ["m1", "m2"])


@pytest.mark.parametrize("moment_s", MOMENTS_S)
def test_of_a_producer_that_sends_while_the_last_consumer_leaves(tmp_path: Path, moment_s: float):
    mesh, sender, resting = direct(tmp_path)
    names = iter(numbered("m", 40))
    send(mesh, sender, next(names))
    mesh.run(moment_s)
    resting.link.close()
    mesh.flush()
    for name in names:
        send(mesh, sender, name)
        mesh.run(0.002)
    again = mesh.client("r3", "d").receiver("rpc")
    mesh.run_until(lambda: texts(again) == numbered("m", 40), 3 * PATH_WAIT_S)


# One that comes before a router has heard that the other left is one of two: what it gets has no order then.
@pytest.mark.parametrize(
    ("router", "gap_s"),
    [
        (router, s)
        for router, at_least_s in (("r1", 0.0025), ("r2", 0.0015), ("r3", 0))
        for s in MOMENTS_S
        if s >= at_least_s
    ],
)
def test_of_a_producer_that_sends_while_another_consumer_comes_for_the_last(tmp_path: Path, router: str, gap_s: float):
    mesh, sender, resting = direct(tmp_path)
    send(mesh, sender, "m1")
    mesh.run(0.02)
    resting.link.close()
    mesh.flush()
    gone_at = mesh.now
    again: SimReceiver | None = None
    for name in numbered("m", 40, first=2):
        send(mesh, sender, name)
        mesh.run(0.0005)
        if again is None and mesh.now >= gone_at + gap_s:
            again = mesh.client(router, "d").receiver("rpc")
    assert again is not None
    mesh.run_until(lambda: len(again.messages) == 41, 3 * PATH_WAIT_S)
    assert texts(again) == numbered("m", 41)


@pytest.mark.parametrize(
    ("router", "gap_s"), [("r1", 0.003), ("r1", 0.004), ("r1", 0.005), ("r3", 0.001), ("r3", 0.005), ("r3", 0.2)]
)
@pytest.mark.parametrize("moment_s", MOMENTS_S)
def test_of_what_the_queue_feeds_while_the_last_consumer_leaves(
    tmp_path: Path, moment_s: float, router: str, gap_s: float
):
    mesh = mesh_of(tmp_path, ["r1"])
    if router == "r1":
        slow_down_broker(mesh)
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 80))
    mesh.run_until(lambda: len(sender.outcomes) == 80)
    first = mesh.client("r3", "c").receiver("rpc", credit=3)
    mesh.run_until(lambda: len(first.messages) > 20)  # routers tell of another change at once by now
    mesh.run(moment_s * (2 if router == "r1" else 1))
    first.link.close()
    mesh.flush()
    mesh.run(gap_s)
    again = mesh.client(router, "d").receiver("rpc")
    mesh.run_until(lambda: len(sights(first, again)) == 80, PATH_WAIT_S / 2)
    # Soon after, the queue gives what the first one may have had behind what was on its way.
    again_and_again = {text_of(each) for each in again.messages if gap_s < 0.2 and decoded(each).delivery_count}
    fresh = [text for text in sights(first, again) if text not in again_and_again]
    # A consumer that leaves in order gives back, uncounted, what it had no outcome for: as many as it had credit.
    numbers = [int(text[1:]) for text in fresh]
    latest = itertools.accumulate(numbers, max)
    late = [text for text, number, most in zip(fresh, numbers, latest, strict=True) if number < most]
    assert len(late) <= (3 if gap_s < 0.2 else 0)
    skipped = again_and_again.union(late)
    assert [text for text in fresh if text not in late] == [text for text in numbered("m", 80) if text not in skipped]


@pytest.mark.parametrize("gap_s", MOMENTS_S)
def test_a_consumer_that_comes_at_once_and_settles_late_has_what_follows_soon(tmp_path: Path, gap_s: float):
    mesh, sender, resting = direct(tmp_path)
    send(mesh, sender, "m1")
    mesh.run(0.02)
    resting.link.close()
    mesh.flush()
    mesh.run(gap_s)
    late = mesh.client("r3", "d").receiver("rpc", credit=10)
    late.accepts = False
    send(mesh, sender, "m2", "m3")
    mesh.run_until(lambda: len(late.held) == 3, 2 * PATH_WAIT_S)
    assert [text_of(message) for _, message in late.held] == ["m1", "m2", "m3"]


def direct(folder: Path, keeper: str = "r2") -> tuple[SimMesh, SimSender, SimReceiver]:
    """A producer at r1, a keeper. A consumer at r3 took back credit that went on to the producer's router."""
    mesh = mesh_of(folder, [keeper])
    client = mesh.client("r3", "c")
    consumer = client.receiver("rpc", credit=50)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"))
    for name in numbered("before", 20):
        send(mesh, sender, name)
        mesh.run(0.01)
    mesh.run_until(lambda: len(sender.outcomes) == 20)
    consumer.tops_up = False
    consumer.link.set_credit(0)
    client.endpoint.mark_dirty()
    mesh.run(0.05)
    sender.outcomes.clear()
    return mesh, sender, consumer


def slow_down_broker(mesh: SimMesh) -> None:
    """What it sends crosses what is told to it, for longer than anything needs to come back from r3."""
    for pipe in mesh.pipes:
        if any(isinstance(node, SimBroker) for node, _ in pipe.ends):
            pipe.delay_s = 0.01


def sights(*receivers: SimReceiver) -> list[str]:
    return list(dict.fromkeys(text_of(message) for receiver in receivers for message in receiver.messages))


LARGE = b"\x00\x53\x75\xb0\x00\x01\x02\x00" + bytes(66_048)


@pytest.mark.parametrize("keeper", ["r1", "r2", "r3"])
def test_a_consumer_that_is_busy_with_a_large_message_did_not_rest(tmp_path: Path, keeper: str):
    """It has credit, settles late and sends no flow: all else that waits for it comes when that one is there."""
    mesh, sender, resting = direct(tmp_path, keeper)
    large = mesh.client("r2", "large").sender("rpc")
    mesh.run_until(lambda: large.link.credit > 0)
    large.begin()
    large.link.send(LARGE[:-48])
    mesh.flush()
    mesh.run(0.05)
    send(mesh, sender, "m1")
    mesh.run(0.05)
    resting.link.close()
    mesh.flush()
    mesh.run(0.001)
    again = mesh.client("r3", "d").receiver("rpc", credit=100)
    again.accepts = again.tops_up = False
    mesh.run(0.05)
    large.link.send(LARGE[-48:])
    large.link.finish()
    mesh.flush()
    mesh.run_until(lambda: len(again.messages) == 2, 2 * PATH_WAIT_S)
    send(mesh, sender, *numbered("n", 5))
    mesh.run_until(lambda: len(again.messages) == 7, 2 * PATH_WAIT_S)
