"""A multicast's path breaks, and there is another: what no consumer got goes out again, in order, to each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from proton import Message

from mesh.simulation.clients import SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.outcomes import told
from mesh_tests.sim.line import ADDRESSES, line
from mesh_tests.sim.test_another_path import RING
from mesh_tests.sim.test_fallback import body, body_of
from router.circuits.circuits import Circuits
from router.circuits.spec import PATH_LOST, CircuitSpec
from router.distribution.branches import Branches
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED
from wire.errors import AmqpError
from wire.link import OutgoingLink

PATH_WAIT_S = 2.0
STEP_S = 0.0005


def ring_of_six() -> SimMesh:
    mesh = SimMesh({"mesh": "ring", "node_tls": False, "routers": RING, "addresses": ADDRESSES})
    mesh.converge()
    return mesh


def send_all_credit(mesh: SimMesh, senders: list[SimSender], seconds: float) -> None:
    """Each message says which one it is."""
    end = mesh.now + seconds
    while mesh.now < end:
        for which, sender in enumerate(senders):
            if sender.link.credit > 0:
                sender.send(body(f"{which} {sender.count + 1}"))
        mesh.run(STEP_S)


def numbers(receiver: SimReceiver, which: int = 0) -> list[int]:
    found = [body_of(message).split() for message in receiver.messages]
    return [int(number) for sender, number in found if int(sender) == which]


def kinds(sender: SimSender) -> set[str]:
    return {told(outcome)[0] for outcome in sender.outcomes.values()}


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
def test_all_but_what_is_in_doubt_comes_once_and_in_order(victim: str):
    mesh = ring_of_six()
    receiver = mesh.client("r4").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.3)
    mesh.kill(victim)
    send_all_credit(mesh, [sender], 0.3)
    mesh.run(1)
    came = numbers(receiver)
    assert came == sorted(set(came))
    in_doubt = {number for number, outcome in sender.outcomes.items() if told(outcome) == told(MODIFIED_FAILED)}
    assert len(sender.outcomes) == sender.count
    assert set(came) | in_doubt == set(range(1, sender.count + 1))
    assert kinds(sender) <= {"ACCEPTED", "MODIFIED"}
    assert retried(mesh) > 0 or victim == "r2"


def to_prices(number: int) -> bytes:
    return Message(address="prices", id=number).encode()


def retried(mesh: SimMesh, router: str = "r1") -> int:
    return sum(each.retried for each in mesh.routers[router].snapshot().addresses)


def test_a_message_without_an_address_goes_again_too():
    mesh = ring_of_six()
    receiver = mesh.client("r4").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender(None)
    mesh.run_until(lambda: sender.link.credit > 0)
    for n in range(1, 301):
        if n == 150:
            mesh.kill("r3")
        sender.send(to_prices(n))
        mesh.run(STEP_S)
    mesh.run(1)
    assert len(sender.outcomes) == sender.count
    assert kinds(sender) <= {"ACCEPTED", "MODIFIED"}
    assert len(set(receiver.messages)) == len(receiver.messages)
    assert [message for message in map(to_prices, range(1, 301)) if message in receiver.messages] == receiver.messages
    assert retried(mesh) > 0


def kept_bytes(mesh: SimMesh, router: str = "r1") -> int:
    return mesh.routers[router]._addresses._copies.used_bytes


def test_many_losses_in_a_row_make_no_storm_of_released():
    """Producers at two routers, one of which comes while a path is remade; consumers at two."""
    mesh = ring_of_six()
    receivers = [mesh.client(router).receiver("prices", credit=5000) for router in ("r4", "r3")]
    senders = [mesh.client(router).sender("prices") for router in ("r1", "r6")]
    send_all_credit(mesh, senders, 0.3)
    for round_ in range(4):
        for lose, mend in losses(mesh):
            lose()
            if round_ == 0:
                senders.append(mesh.client("r1", f"new{len(senders)}").sender("prices"))
            send_all_credit(mesh, senders, 0.05 + 0.02 * round_)
            mend()
            send_all_credit(mesh, senders, 0.05 + 0.03 * round_)
    mesh.run(3)
    for which, sender in enumerate(senders):
        assert len(sender.outcomes) == sender.count > 50
        assert kinds(sender) <= {"ACCEPTED", "MODIFIED"}
        for receiver in receivers:
            assert max(Counter(numbers(receiver, which)).values(), default=0) <= 1
    assert retried(mesh) > 0
    assert kept_bytes(mesh) == kept_bytes(mesh, "r6") == 0


def losses(mesh: SimMesh) -> list[tuple[Callable[[], object], Callable[[], object]]]:
    """Each with what mends it. The other way round stays whole."""
    return [
        (lambda: mesh.cut_trunk("r2", "r3"), lambda: mesh.link("r2", "r3")),
        (lambda: mesh.kill("r2"), lambda: restart(mesh, "r2")),
        (lambda: mesh.cut_trunk("r5", "r4"), lambda: mesh.link("r4", "r5")),
        (lambda: mesh.cut_trunk("r1", "r6"), lambda: mesh.link("r1", "r6")),
        (lambda: mesh.cut_trunk("r1", "r2"), lambda: mesh.link("r1", "r2")),
    ]


def restart(mesh: SimMesh, router: str) -> None:
    mesh.start(router)
    for edge in mesh.topology.edges():
        if router in (edge.dialer, edge.to):
            mesh.link(edge.dialer, edge.to)


def test_it_waits_for_a_path_that_comes_back_in_time():
    mesh = line()
    receiver = mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.1)
    mesh.cut_trunk("r2", "r3")
    send_all_credit(mesh, [sender], PATH_WAIT_S - 0.5)
    sent_before = sender.count
    mesh.link("r2", "r3")
    send_all_credit(mesh, [sender], 0.5)
    assert sender.count > sent_before
    assert kinds(sender) <= {"ACCEPTED", "MODIFIED"}
    assert numbers(receiver) == sorted(set(numbers(receiver)))
    assert retried(mesh) > 0


def test_it_is_released_when_no_path_comes_back_in_time():
    mesh = line()
    mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.1)
    mesh.cut_trunk("r2", "r3")
    mesh.run(PATH_WAIT_S - 0.2)
    assert len(sender.outcomes) < sender.count
    assert "RELEASED" not in kinds(sender)
    mesh.run(0.5)
    assert len(sender.outcomes) == sender.count
    assert "RELEASED" in kinds(sender)
    assert kept_bytes(mesh) == 0


def test_it_goes_to_a_consumer_that_comes_in_place_of_the_last_one():
    mesh = line()
    client = mesh.client("r3")
    client.receiver("prices", credit=0)
    leaver = client.receiver("prices", credit=1)
    leaver.tops_up = False
    sender = mesh.client("r1").sender("prices")
    for n in range(2):
        mesh.send(sender, body(f"0 {n + 1}"))
    mesh.run(0.5)
    mesh.cut(client.pipe)
    mesh.run(PATH_WAIT_S / 2)
    came = mesh.client("r2").receiver("prices", credit=10)
    mesh.run(1)
    assert numbers(came)[-1:] == [2]
    assert told(sender.outcomes[2]) == told(ACCEPTED)


def test_what_another_consumer_has_is_not_sent_again():
    """Nobody would know whether those behind the new path are the same."""
    mesh = ring_of_six()
    near, far = (mesh.client(router).receiver("prices", credit=1000) for router in ("r1", "r4"))
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.1)
    mesh.kill("r3")
    send_all_credit(mesh, [sender], 0.1)
    mesh.run(1)
    assert numbers(near) == list(range(1, sender.count + 1))
    assert kinds(sender) == {"ACCEPTED"}
    assert numbers(far) == sorted(set(numbers(far)))


@pytest.mark.parametrize("victim", ["r2", "r3"], ids=["next", "further on"])
def test_what_waits_for_a_consumer_waits_for_it_on_the_new_path(victim: str):
    """It would go to the others only, and their producer hear ACCEPTED."""
    mesh = ring_of_six()
    near = mesh.client("r1").receiver("prices", credit=1000)
    far = mesh.client("r4").receiver("prices", credit=1)
    far.tops_up = False
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.1)
    begun = len(near.messages)
    mesh.kill(victim)
    far.link.grant(1000)
    far.tops_up = True
    send_all_credit(mesh, [sender], 0.2)
    mesh.run(1)
    assert numbers(near) == list(range(1, sender.count + 1))
    assert [number for number in numbers(far) if number > begun] == list(range(begun + 1, sender.count + 1))


@pytest.mark.parametrize("is_for_good", [False, True], ids=["for a moment", "for good"])
def test_a_branch_that_is_refused_is_waited_for_but_not_for_ever(monkeypatch: pytest.MonkeyPatch, is_for_good: bool):
    mesh = ring_of_six()
    near, far = (mesh.client(router).receiver("prices", credit=5000) for router in ("r1", "r4"))
    sender = mesh.client("r1").sender("prices")
    send_all_credit(mesh, [sender], 0.1)
    sender_of = Circuits.sender

    def refuse(circuits: Circuits, spec: CircuitSpec, hop: str) -> OutgoingLink:
        if hop == "r6" and spec.ingress == "r1":
            raise AmqpError(PATH_LOST, "not now")
        return sender_of(circuits, spec, hop)

    monkeypatch.setattr(Circuits, "sender", refuse)
    mesh.kill("r2")
    lost_at = sender.count
    send_all_credit(mesh, [sender], PATH_WAIT_S - 0.5)
    assert len(near.messages) <= lost_at
    if not is_for_good:
        monkeypatch.undo()
        send_all_credit(mesh, [sender], 0.5)
        mesh.run(0.1)
        assert numbers(far)[-1] == numbers(near)[-1] == sender.count > lost_at + 100
        assert numbers(far)[-100:] == list(range(sender.count - 99, sender.count + 1))
    send_all_credit(mesh, [sender], 1)
    assert len(near.messages) > lost_at + 100


def test_a_branch_that_gives_back_again_and_again_is_made_anew_a_few_times_and_its_producer_is_told(
    monkeypatch: pytest.MonkeyPatch,
):
    mesh = line()
    mesh.client("r3").receiver("prices", credit=1000)
    sender = mesh.client("r1").sender("prices")
    elsewhere = mesh.client("r2").sender("prices")
    mesh.run_until(lambda: sender.link.credit > 0 and elsewhere.link.credit > 0)
    made = []
    open_ = Branches._open
    monkeypatch.setattr(Branches, "pass_on", lambda *_: None)  # the tree ends at r2
    monkeypatch.setattr(Branches, "_open", lambda *arguments: made.append(arguments) or open_(*arguments))
    mesh.cut_trunk("r2", "r3")
    mesh.link("r2", "r3")
    mesh.send(sender, body("x"))
    mesh.run(PATH_WAIT_S - 0.1)
    assert not sender.outcomes
    mesh.run(0.3)
    assert told(sender.outcomes[1]) == told(RELEASED)
    assert 10 < len(made) < 50
