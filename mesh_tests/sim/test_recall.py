"""Does a message that went where nobody wants it now come to somebody who does?

A circuit has a float of one, whether or not a consumer behind it has credit: so a message may wait at an egress whose
consumers rest, while those at another have credit. Its ingress has it back, before its producer hears of anything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.line import line
from mesh_tests.sim.test_fallback import body, mesh_of
from wire.delivery import ACCEPTED, RELEASED

LARGE_BYTES = 200_000
PATH_WAIT_S = 2.0
TWICE_S = 2 * PATH_WAIT_S + 1
"""It is looked for twice before it is called back."""


def consumers(mesh: SimMesh, *credits: int, address: str = "rpc") -> list[SimReceiver]:
    """At r2, r3 and so on."""
    return [mesh.client(f"r{2 + n}").receiver(address, credit=credit) for n, credit in enumerate(credits)]


def producer(mesh: SimMesh, address: str = "rpc") -> SimSender:
    sender = mesh.client("r1").sender(address)
    mesh.run_until(lambda: sender.link.credit > 0)
    mesh.run(2 * PATH_WAIT_S)
    return sender


def recalled(mesh: SimMesh, router: str) -> int:
    """Deliveries that it gave back."""
    return sum(each.released for each in mesh.routers[router].snapshot().addresses)


def call_back_for_nobody(mesh: SimMesh, router: str, wants: SimReceiver) -> None:
    """What waits at ``router`` comes back, since ``wants`` has credit, which it has taken back meanwhile."""
    wants.link.grant(1)
    mesh.flush()
    while not recalled(mesh, router):
        mesh.run(0.0005)
    wants.link.set_credit(0)


def unsettled(mesh: SimMesh) -> int:
    return sum(each.unsettled for router in mesh.routers.values() for each in router.snapshot().addresses)


@pytest.mark.parametrize("address", ["rpc", "spilling"])
@pytest.mark.parametrize(("credits", "taker"), [((0, 100), 1), ((100, 0), 0)], ids=["nearer rests", "farther rests"])
def test_what_waits_at_a_resting_consumer_comes_to_the_other(credits: tuple[int, int], taker: int, address: str):
    mesh = line()
    receivers = consumers(mesh, *credits, address=address)
    sender = producer(mesh, address)
    for number in range(10):
        mesh.send(sender, b"%d" % number)
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, 11), ACCEPTED) and not sender.open, TWICE_S)
    assert sorted(receivers[taker].messages) == [b"%d" % number for number in range(10)]
    assert receivers[1 - taker].messages == []
    assert unsettled(mesh) == 0


def test_it_comes_to_one_that_settles_in_large_batches_too():
    """Of which nothing is heard meanwhile."""
    mesh = line()
    resting, batching = consumers(mesh, 0, 100)
    batching.accepts = False
    sender = producer(mesh)
    for number in range(10):
        mesh.send(sender, b"%d" % number)
    mesh.run_until(lambda: len(batching.held) == 10, TWICE_S)
    assert resting.messages == []


def test_where_consumers_rest_nothing_goes_again_until_they_have_credit():
    mesh = line()
    resting, taking = consumers(mesh, 0, 100)
    sender = producer(mesh)
    mesh.send(sender)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, TWICE_S)
    for number in range(2, 12):
        mesh.send(sender)
        mesh.run_until(lambda number=number: sender.outcomes.get(number) == ACCEPTED, 0.2)
    assert len(taking.messages) == 11
    taking.link.set_credit(0)
    mesh.run(0.2)
    resting.link.grant(5)
    mesh.run(0.2)
    mesh.send(sender)
    mesh.run_until(lambda: len(resting.messages) == 1)


def test_a_message_behind_a_transit_router_comes_back_over_it():
    mesh = line(4)
    receivers = [mesh.client(router).receiver("rpc", credit=credit) for router, credit in (("r3", 0), ("r4", 10))]
    sender = producer(mesh)
    mesh.send(sender, b"1"), mesh.send(sender, b"2")
    mesh.run_until(lambda: sorted(receivers[1].messages) == [b"1", b"2"], TWICE_S)
    mesh.run_until(lambda: unsettled(mesh) == 0)


def test_a_consumer_at_the_ingress_gets_it():
    mesh = line()
    (resting,) = consumers(mesh, 0)
    sender = producer(mesh)
    mesh.send(sender, b"lured")
    mesh.run(1.0)
    here = mesh.client("r1").receiver("rpc", credit=10)
    mesh.run_until(lambda: here.messages == [b"lured"] and sender.outcomes == {1: ACCEPTED}, 2 * TWICE_S)
    assert resting.messages == []


def test_while_all_consumers_rest_it_waits_and_the_first_who_wants_it_has_it():
    mesh = line()
    first, second = consumers(mesh, 0, 0)
    sender = producer(mesh)
    for number in range(3):
        mesh.send(sender, b"%d" % number)
    mesh.run(10 * PATH_WAIT_S)
    assert sender.outcomes == {}, "whoever rests is there: nothing is given back"
    second.link.grant(10)
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys((1, 2, 3), ACCEPTED), 2 * TWICE_S)
    assert first.messages == []
    assert len(second.messages) == 3


def test_one_that_came_back_waits_for_a_consumer_as_long_as_there_is_one():
    """While it comes back, the other's credit goes to somebody else."""
    mesh = line()
    resting, other = consumers(mesh, 0, 1)
    other.accepts = other.tops_up = False
    sender = producer(mesh)
    mesh.send(sender, b"1"), mesh.send(sender, b"2"), mesh.send(sender, b"3")
    mesh.run(10 * PATH_WAIT_S)
    assert len(other.messages) == 1
    assert RELEASED not in sender.outcomes.values()
    for _ in range(2):
        mesh.run(3 * PATH_WAIT_S)
        other.settle()
        other.link.grant(1)
        mesh.flush()
        count = len(other.messages)
        mesh.run_until(lambda count=count: len(other.messages) == count + 1, 2 * TWICE_S)
    other.settle()
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys((1, 2, 3), ACCEPTED), TWICE_S)
    assert resting.messages == []


def test_one_that_came_back_while_the_other_lost_its_credit_waits_too():
    mesh = line(4)
    receivers = [mesh.client(router).receiver("rpc", credit=credit) for router, credit in (("r4", 0), ("r1", 0))]
    resting, other = receivers
    other.tops_up = False
    sender = producer(mesh)
    mesh.send(sender, b"lured")
    mesh.run(1.0)
    call_back_for_nobody(mesh, "r4", other)
    mesh.run(10 * PATH_WAIT_S)
    assert (sender.outcomes, other.messages) == ({}, [])
    other.link.grant(1)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, 0.2)
    assert resting.messages == []


@pytest.mark.parametrize("taking", [0, 1], ids=["r2", "r3"])
def test_it_may_go_back_to_where_it_was_recalled_from(taking: int):
    """Whoever rests longer: it is at the other."""
    mesh = line()
    receivers = consumers(mesh, 0, 0)
    sender = producer(mesh)
    mesh.send(sender, b"lured")
    mesh.run_until(lambda: bool(recalled(mesh, "r2")), TWICE_S)
    mesh.run(PATH_WAIT_S)
    receivers[taking].link.grant(1)
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, TWICE_S)
    assert receivers[taking].messages == [b"lured"]


def test_who_released_one_that_was_recalled_before_is_not_offered_it_again():
    mesh = line()
    _, taking = consumers(mesh, 0, 10)
    taking.accepts = False
    sender = producer(mesh)
    mesh.send(sender, b"unwanted")
    mesh.run_until(lambda: bool(taking.held), TWICE_S)
    assert recalled(mesh, "r2") == 1
    taking.settle(RELEASED)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, PATH_WAIT_S + 0.5)
    assert len(taking.messages) == 1


def test_one_whose_producer_left_waits_for_the_consumer_it_went_to():
    mesh = line()
    resting, taking = consumers(mesh, 0, 10)
    sender = producer(mesh)
    mesh.send(sender, b"lured")
    mesh.run(1.0)
    sender.link.close()
    mesh.run(10 * PATH_WAIT_S)
    assert taking.messages == []
    resting.link.grant(1)
    mesh.run_until(lambda: resting.messages == [b"lured"])


def test_nothing_is_recalled_from_a_consumer_that_goes_on_however_slowly():
    mesh = line()
    slow, idle = consumers(mesh, 1, 100)
    slow.accepts = slow.tops_up = False
    sender = producer(mesh)
    for _ in range(30):
        for _ in range(3):
            mesh.send(sender)
            mesh.run(0.01)
        mesh.run(PATH_WAIT_S / 3)
        slow.settle()
        slow.link.grant(1)
        mesh.flush()
    assert len(slow.messages) > 20
    assert len(idle.messages) > 20
    assert recalled(mesh, "r2") == 0


def test_what_a_consumer_has_stays_with_it_however_long_it_takes():
    mesh = line()
    slow, idle = consumers(mesh, 1, 100)
    slow.accepts = False
    sender = producer(mesh)
    mesh.send(sender, b"1")
    mesh.run_until(lambda: len(slow.held) + len(idle.messages) == 1)
    if not slow.held:
        mesh.send(sender, b"2")
        mesh.run_until(lambda: bool(slow.held))
    held = list(slow.messages)
    mesh.run(10 * PATH_WAIT_S)
    assert not set(held) & set(idle.messages)
    assert slow.states == []
    slow.settle()
    mesh.run_until(lambda: sender.outcomes == dict.fromkeys(range(1, sender.count + 1), ACCEPTED))


@pytest.mark.parametrize("stays", ["came settled", "has no producer any more"])
def test_what_nobody_would_hear_of_stays_and_what_waits_behind_it_comes_back(stays: str):
    mesh = line()
    resting, taking = consumers(mesh, 10, 100)
    sender, leaving = producer(mesh), producer(mesh)
    resting.link.set_credit(0)
    mesh.run(0.1)  # its circuit has credit yet
    mesh.send(leaving, b"stays", settled=stays == "came settled")
    mesh.run(0.1)
    leaving.link.close()
    mesh.send(sender, b"comes back")
    mesh.run_until(lambda: sender.outcomes == {1: ACCEPTED}, TWICE_S)
    assert taking.messages == [b"comes back"]
    mesh.run(3 * PATH_WAIT_S)
    resting.link.grant(10)
    mesh.run_until(lambda: resting.messages == [b"stays"])
    assert taking.messages == [b"comes back"]


def test_one_too_large_to_be_kept_comes_back_to_its_producer_and_the_next_goes_elsewhere():
    mesh = line()
    resting, taking = consumers(mesh, 0, 100)
    sender = producer(mesh)
    for number in range(1, 4):
        mesh.send(sender, bytes(LARGE_BYTES))
        mesh.run_until(lambda number=number: number in sender.outcomes, TWICE_S)
    mesh.send(sender, b"small")
    mesh.run_until(lambda: sender.outcomes.get(4) == ACCEPTED, 0.2)
    assert list(sender.outcomes.values()).count(RELEASED) <= 1
    assert len(taking.messages) == list(sender.outcomes.values()).count(ACCEPTED)
    assert resting.messages == []


def test_one_too_large_to_be_kept_comes_back_for_the_one_credit_of_a_consumer_at_its_router():
    mesh = line()
    consumers(mesh, 0)
    sender = producer(mesh)
    mesh.send(sender, bytes(LARGE_BYTES))
    mesh.run(1.0)
    mesh.client("r1").receiver("rpc", credit=1)
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, TWICE_S)


def test_one_too_large_to_be_kept_waits_where_it_is_while_the_others_are_busy():
    mesh = line()
    resting, busy = consumers(mesh, 0, 1)
    busy.accepts = False
    sender = producer(mesh)
    while not busy.held:
        mesh.send(sender)
        mesh.run(TWICE_S)
    before = dict(sender.outcomes)
    resting.link.grant(1)
    mesh.run(0.1)
    resting.link.set_credit(0)
    number = mesh.send(sender, bytes(LARGE_BYTES))
    mesh.run(10 * PATH_WAIT_S)
    assert sender.outcomes == before
    resting.link.grant(1)
    mesh.run_until(lambda: sender.outcomes.get(number) == ACCEPTED)


def test_where_all_rest_one_too_large_to_be_kept_comes_back_once():
    """From the nearer one; then it waits at the other."""
    mesh = line()
    _, second = consumers(mesh, 0, 0)
    sender = producer(mesh)
    mesh.send(sender, bytes(LARGE_BYTES))
    mesh.run_until(lambda: sender.outcomes == {1: RELEASED}, TWICE_S)
    mesh.send(sender, bytes(LARGE_BYTES))
    mesh.run(10 * PATH_WAIT_S)
    assert len(sender.outcomes) == 1
    second.link.grant(1)
    mesh.run_until(lambda: sender.outcomes.get(2) == ACCEPTED)


def test_an_address_with_a_fallback_recalls_too(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r1"])
    _, taking = consumers(mesh, 0, 100)
    sender = producer(mesh)
    for number in range(1, 11):
        mesh.send(sender, body("x"))
        mesh.run_until(lambda number=number: sender.outcomes.get(number) == ACCEPTED, TWICE_S if number < 3 else 0.2)
    assert recalled(mesh, "r2") == 1
    assert len(taking.messages) == 10
