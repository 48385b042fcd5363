"""Is each attach answered with the settle modes that were asked for, and are they kept? [2.7.3], [2.8.2], [2.8.3]"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from broker.links.attachments import Attachments
from broker.links.second_settlement import PATIENCE_S
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from wire.address_cache import IDLE_S
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode
from wire.engine import lib
from wire.link import RECEIVE_FIRST, RECEIVE_SECOND, SEND_MIXED, SEND_SETTLED, SEND_UNSETTLED

TOPOLOGY: dict[str, Any] = {
    "mesh": "mesh",
    "node_tls": False,
    "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
    "brokers": {name: {"data": name, "routers": ["r1"]} for name in ("b1", "b2")},
    "addresses": {
        "rpc": "anycast",
        "prices": "multicast",
        "orders": {"type": "queue", "broker": "b1"},
        "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
        "news.#": {"type": "topic", "broker": "b1"},
    },
}
SEND_MODES = {SEND_MIXED: "mixed", SEND_UNSETTLED: "unsettled", SEND_SETTLED: "settled"}
RECEIVE_MODES = {RECEIVE_FIRST: "first", RECEIVE_SECOND: "second"}
CONSUMERS = ["anycast", "multicast", "queue", "sharded", "topic", "dynamic"]
PRODUCERS = [*CONSUMERS, "anonymous"]
NAMES: dict[str, dict[str, Any]] = {
    "anycast": {"address": "rpc"},
    "multicast": {"address": "prices"},
    "queue": {"address": "orders"},
    "sharded": {"address": "sharded"},
    "topic": {"address": "news.today"},
    "dynamic": {"address": None, "is_dynamic": True},
    "anonymous": {"address": None},
}
TWO_STEPS = (SEND_UNSETTLED, RECEIVE_SECOND)

sends = pytest.mark.parametrize("sends", SEND_MODES, ids=SEND_MODES.get)
settles = pytest.mark.parametrize("settles", RECEIVE_MODES, ids=RECEIVE_MODES.get)


@pytest.fixture(params=["r1", "r2"], ids=["at the broker's router", "at another router"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[SimMesh]:
    made = SimMesh(TOPOLOGY, tmp_path)
    made.converge()
    made.run_until(lambda: all(broker.is_up for node in made.routers.values() for broker in node.snapshot().brokers))
    made.run(0.2)
    yield made
    made.close()


def text(to: str | None = None) -> bytes:
    return bytes(Message(body="x", address=to).encode())


def consume(client: SimClient, kind: str, modes: tuple[int, int]) -> SimReceiver:
    given = dict(NAMES[kind])
    is_dynamic = given.pop("is_dynamic", False)
    return client.receiver(given["address"], modes=modes, dynamic=is_dynamic)


def produce(client: SimClient, kind: str, modes: tuple[int, int]) -> SimSender:
    return client.sender(modes=modes, **NAMES[kind])


def is_answered(end: SimReceiver | SimSender) -> bool:
    return bool(end.error or lib.pn_link_state(end.link.pointer) & lib.PN_REMOTE_ACTIVE)


@pytest.mark.parametrize("kind", CONSUMERS)
@sends
@settles
def test_a_consumer_is_answered_with_the_modes_that_it_asked_for(
    mesh: SimMesh, place: str, kind: str, sends: int, settles: int
) -> None:
    receiver = consume(mesh.client(place), kind, (sends, settles))
    mesh.run_until(lambda: is_answered(receiver))
    assert receiver.link.remote_settle_modes == (sends, settles)


@pytest.mark.parametrize("kind", PRODUCERS)
@sends
@settles
def test_a_producer_is_answered_with_the_modes_that_it_asked_for(
    mesh: SimMesh, place: str, kind: str, sends: int, settles: int
) -> None:
    sender = produce(mesh.client(place), kind, (sends, settles))
    mesh.run_until(lambda: is_answered(sender))
    assert sender.link.remote_settle_modes == (sends, settles)


@pytest.mark.parametrize("kind", [kind for kind in CONSUMERS if kind != "dynamic"])
@sends
@settles
def test_what_comes_is_settled_as_the_consumer_asked_whatever_its_producer_does(
    mesh: SimMesh, place: str, kind: str, sends: int, settles: int
) -> None:
    receiver = consume(mesh.client(place), kind, (sends, settles))
    mesh.run_until(lambda: is_answered(receiver))
    sender = mesh.client("r1").sender(NAMES[kind]["address"])
    for is_settled in (True, False, True):
        mesh.send(sender, text(), settled=is_settled)
    mesh.run_until(lambda: len(receiver.messages) == 3)
    if sends != SEND_MIXED:
        assert receiver.came_settled == [sends == SEND_SETTLED] * 3
    mesh.run_until(lambda: not sender.open and not receiver.unconfirmed)
    assert list(sender.outcomes.values()) == [ACCEPTED]
    mesh.run(0.5)
    unsettled = [address.unsettled for router in mesh.routers.values() for address in router.snapshot().addresses]
    assert not any(unsettled)


@pytest.mark.parametrize("kind", ["anycast", "multicast"])
@pytest.mark.parametrize("end", ["releases", "leaves", "is lost"])
def test_what_came_pre_settled_and_its_consumer_does_not_take_is_forgotten(
    mesh: SimMesh, place: str, kind: str, end: str
) -> None:
    client = mesh.client(place)
    receiver = consume(client, kind, (SEND_UNSETTLED, RECEIVE_FIRST))
    receiver.accepts = False
    sender = mesh.client("r1").sender(NAMES[kind]["address"])
    mesh.send(sender, text(), settled=True)
    mesh.run_until(lambda: bool(receiver.held))
    if end == "releases":
        receiver.settle(RELEASED)
    elif end == "leaves":
        receiver.link.close()
    else:
        mesh.cut(client.pipe)
    mesh.run(1)
    unsettled = [address.unsettled for router in mesh.routers.values() for address in router.snapshot().addresses]
    assert not any(unsettled)
    again = consume(mesh.client(place), kind, (SEND_UNSETTLED, RECEIVE_FIRST))
    mesh.send(sender, text(), settled=True)
    mesh.run_until(lambda: len(again.messages) == 1 or len(receiver.messages) == 2)


# At queues and topics the broker is the receiver
@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("to", ["orders", "nowhere"], ids=["accepted", "rejected"])
def test_a_broker_settles_after_a_producer_that_settles_last(mesh: SimMesh, place: str, kind: str, to: str) -> None:
    sender = produce(mesh.client(place), kind, TWO_STEPS)
    sender.answers = False
    number = mesh.send(sender, text() if to == "orders" else b"no message")
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.outcomes[number].kind is (OutcomeCode.ACCEPTED if to == "orders" else OutcomeCode.REJECTED)
    mesh.run(PATIENCE_S / 2)
    assert sender.open
    sender.settle(number)
    mesh.run(0.1)
    sender.answers = True
    for _ in range(1200):  # more than there is credit for at first
        mesh.send(sender, text())
    mesh.run_until(lambda: not sender.open)
    assert [outcome.kind for outcome in sender.outcomes.values()][1:] == [OutcomeCode.ACCEPTED] * 1200


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_broker_settles_first_where_a_producer_that_asked_to_settle_last_does_not(
    mesh: SimMesh, place: str, kind: str
) -> None:
    sender = produce(mesh.client(place), kind, TWO_STEPS)
    sender.answers = False
    mesh.send(sender, text()), mesh.send(sender, text())
    mesh.run_until(lambda: len(sender.outcomes) == 2)
    mesh.run_until(lambda: not sender.open, seconds=PATIENCE_S + 0.5)
    begun = mesh.now
    for _ in range(1200):
        number = mesh.send(sender, text())
        mesh.run_until(lambda number=number: number in sender.outcomes)  # type: ignore[misc]
        assert not sender.open
    assert mesh.now - begun < 30


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_producer_that_settles_last_leaves_nothing_behind_when_it_is_lost(
    mesh: SimMesh, place: str, kind: str
) -> None:
    client = mesh.client(place)
    sender = produce(client, kind, TWO_STEPS)
    sender.answers = False
    mesh.send(sender, text())
    mesh.run_until(lambda: bool(sender.outcomes))
    mesh.cut(client.pipe)
    mesh.run(3 * PATIENCE_S + 2 * IDLE_S)
    assert mesh.brokers["b1"].next_deadline() is None


# Brokers that answer otherwise
@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has brokers answer every attach with these modes."""

    def answer(modes: tuple[int, int]) -> None:
        opened = Attachments._open

        def otherwise(self: Attachments, attachment: Any, now: float) -> None:
            attachment.link.set_settle_modes(*modes)
            opened(self, attachment, now)

        monkeypatch.setattr(Attachments, "_open", otherwise)

    return answer


@pytest.mark.parametrize("told", [SEND_MIXED, SEND_UNSETTLED, SEND_SETTLED], ids=SEND_MODES.get)
@sends
@settles
def test_a_consumer_gets_what_it_asked_for_of_a_broker_that_answers_otherwise_or_is_refused(
    mesh: SimMesh, place: str, answers: Any, told: int, sends: int, settles: int
) -> None:
    answers((told, RECEIVE_FIRST))
    receiver = consume(mesh.client(place), "queue", (sends, settles))
    mesh.run_until(lambda: is_answered(receiver))
    if sends == SEND_UNSETTLED and told == SEND_SETTLED:
        mesh.run_until(lambda: receiver.error)
        assert receiver.error.condition == "amqp:not-implemented"
        assert "broker b1 sends everything settled" in receiver.error.description
        return
    assert receiver.link.remote_settle_modes == (sends, settles)
    mesh.send(mesh.client("r1").sender("orders"), text())
    mesh.run_until(lambda: len(receiver.messages) == 1 and not receiver.unconfirmed)


def test_a_producer_gets_what_it_asked_for_of_a_broker_that_settles_first(
    mesh: SimMesh, place: str, answers: Any
) -> None:
    answers((SEND_MIXED, RECEIVE_FIRST))
    sender = produce(mesh.client(place), "queue", TWO_STEPS)
    mesh.send(sender, text())
    mesh.run_until(lambda: bool(sender.outcomes))
    assert sender.link.remote_settle_modes == TWO_STEPS
