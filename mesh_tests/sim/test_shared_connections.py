"""Many clients with links to queues and topics share few connections to an embedded broker, and harm nobody by that."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from broker.links.attachments import Attachments
from mesh.simulation import sim_mesh
from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.leftovers import QUIET_S, leftovers
from router.connections import route_connections
from router.connections.route_blame import REFUSE_S, TRUST_S
from wire.codec.values import Described, Symbol
from wire.delivery import ACCEPTED, OutcomeCode
from wire.endpoint import Endpoint, EndpointSettings
from wire.errors import AmqpError
from wire.link import Link
from wire.terminus import Durability, Expiry

POISON = "q.poison"
DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
AT = pytest.mark.parametrize("broker_at", ["r1", "r2"])


@pytest.fixture
def make_mesh(tmp_path: Path) -> Iterator[Callable[[str], SimMesh]]:
    made: list[SimMesh] = []

    def make(broker_at: str, users: dict[str, Any] | None = None) -> SimMesh:
        mesh = SimMesh(
            {
                "mesh": "mesh",
                "node_tls": False,
                "routers": {"r1": {"connect": ["r2"]}, "r2": {}},
                "brokers": {"b1": {"data": "b1", "routers": [broker_at]}},
                "addresses": {
                    "q.#": {"type": "queue", "broker": "b1"},
                    "news.#": {"type": "topic", "broker": "b1"},
                },
                **({} if users is None else {"users": users}),
            },
            tmp_path,
        )
        made.append(mesh)
        mesh.converge()
        mesh.run_until(lambda: mesh.routers[broker_at].snapshot().brokers[0].is_up)
        mesh.run(0.2)
        return mesh

    yield make
    for mesh in made:
        mesh.close()


def connection_count(mesh: SimMesh) -> int:
    """The broker's connections, less the base connection of its router."""
    return mesh.brokers["b1"].snapshot().connection_count - 1


def consumers(mesh: SimMesh, count: int, first: int = 0) -> list[SimReceiver]:
    made = [mesh.client("r1", f"c{index}").receiver(f"q.{index}") for index in range(first, first + count)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in made), 60)
    return made


def endpoint_of(mesh: SimMesh, address: str) -> Endpoint:
    """The broker's end of the connection with the link to ``address``."""
    links = [link for link in mesh.brokers["b1"]._attachments._by_link if address in link.remote_source.address]
    assert len(links) == 1
    return links[0].endpoint


def take_poison(monkeypatch: pytest.MonkeyPatch) -> list[Link]:
    """Let the broker close a connection upon the attach of a link to `POISON`; return the list of these links."""
    found: list[Link] = []
    attach = Attachments.attach

    def attach_or_close(self: Attachments, link: Link, now: float) -> None:
        if POISON in (link.remote_source.address, link.remote_target.address):
            found.append(link)
            link.endpoint.close(AmqpError("amqp:invalid-field", "field x of attach: expected anything but this"))
        else:
            attach(self, link, now)

    monkeypatch.setattr(Attachments, "attach", attach_or_close)
    return found


@AT
def test_many_clients_share_a_connection_and_each_has_sessions_of_its_own(
    make_mesh: Callable[..., SimMesh], broker_at: str
) -> None:
    mesh = make_mesh(broker_at)
    receivers = consumers(mesh, 200)
    assert connection_count(mesh) == 1
    sessions = {link.session for link in mesh.brokers["b1"]._attachments._by_link}
    assert len(sessions) == len(receivers)
    for receiver in receivers:
        receiver.link.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


@pytest.fixture
def existing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The routers take the broker for an existing one, whose topology has ``share_connections: true``."""
    settings_of = sim_mesh._broker_settings
    endpoint = EndpointSettings("mesh")
    monkeypatch.setattr(
        sim_mesh,
        "_broker_settings",
        lambda name: replace(settings_of(name), needs_kind=True, may_share=True, endpoint=endpoint),
    )


@AT
@pytest.mark.usefixtures("existing")
def test_clients_share_connections_to_an_existing_broker_that_may_be_shared(
    make_mesh: Callable[..., SimMesh], broker_at: str
) -> None:
    mesh = make_mesh(broker_at)
    receivers = consumers(mesh, 150)
    assert connection_count(mesh) == 3
    # One client has more links than a connection takes.
    client = mesh.client("r1", "many")
    more = [client.receiver(f"q.many.{index}") for index in range(100)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in more))
    assert connection_count(mesh) == 5
    # A link whose name a client may resume is on a connection of its client.
    for number, user in enumerate(("one", "other")):
        durable = mesh.client("r1", user).receiver("news.#", name="mine", **DURABLE)
        mesh.run_until(lambda durable=durable: durable.link.is_open)
        assert connection_count(mesh) == 6 + number
    assert all(receiver.error is None for receiver in [*receivers, *more])
    for each in [each for each in mesh.nodes if isinstance(each, SimClient)]:
        each.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


@pytest.mark.usefixtures("existing")
def test_no_local_is_refused_over_shared_connections_to_an_existing_broker(make_mesh: Callable[..., SimMesh]) -> None:
    mesh = make_mesh("r1")
    no_local = {"no-local": Described(Symbol("apache.org:no-local-filter:list"), [])}
    refused = mesh.client("r1").receiver("news.#", filter=no_local)
    mesh.run_until(lambda: refused.error is not None, 1)
    assert refused.error.condition == "amqp:not-implemented"
    assert "share_connections" in refused.error.description


def test_a_crowded_connection_takes_no_other_client(
    make_mesh: Callable[..., SimMesh], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_connections, "MOST_CLIENTS", 10)
    mesh = make_mesh("r1")
    receivers = consumers(mesh, 25)
    assert connection_count(mesh) == 3
    # The place of a client that has left is taken again.
    receivers[3].link.endpoint.close()
    mesh.run(1)
    receivers += consumers(mesh, 1, first=100) + consumers(mesh, 5, first=200)
    assert connection_count(mesh) == 3


def test_a_client_beyond_the_claims_of_its_connection_gets_another_one(
    make_mesh: Callable[..., SimMesh], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_connections, "MOST_CLAIMS", 20)
    monkeypatch.setattr(route_connections, "_CROWD_CLAIMS", 10)
    mesh = make_mesh("r1")
    client = mesh.client("r1", "many")
    receivers = [client.receiver(f"q.{index}") for index in range(50)]
    mesh.run_until(lambda: all(receiver.link.is_open for receiver in receivers))
    assert connection_count(mesh) == 3
    client.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


@AT
def test_a_client_that_closes_connections_ends_alone_and_the_others_keep_their_links(
    make_mesh: Callable[..., SimMesh], broker_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = make_mesh(broker_at)
    count = 1000 if broker_at == "r1" else 100
    receivers = consumers(mesh, count - 1)
    closed = take_poison(monkeypatch)
    poisonous = mesh.client("r1", "poisonous")
    refused = poisonous.receiver(POISON)
    mesh.run_until(lambda: refused.error is not None, 60)
    assert refused.error.condition == "amqp:link:detach-forced"
    assert "broker b1 for client r1/" in refused.error.description
    assert "amqp:invalid-field: field x of attach: expected anything but this" in refused.error.description
    # Once with all of its connection, then with the half, and so on, until it is alone; there, once more.
    rounds = (min(count, route_connections.MOST_CLIENTS) - 1).bit_length() + 1
    assert rounds - 1 <= len(closed) <= rounds + 2
    mesh.run(2)
    assert all(receiver.error is None for receiver in receivers)
    for receiver in receivers[:: count // 20]:
        sender = mesh.client("r1", "sender").sender(receiver.address)
        mesh.send(sender, bytes(Message(body="still here").encode()))
        mesh.run_until(lambda sender=sender: sender.outcomes == {1: ACCEPTED})
        mesh.run_until(lambda receiver=receiver: len(receiver.messages) == 1)
        sender.link.endpoint.close()
    # At once, the client is refused without a connection; later it gets one of its own, and is refused again.
    before = len(closed)
    again = poisonous.receiver(POISON)
    mesh.run_until(lambda: again.error is not None, 1)
    assert len(closed) == before
    mesh.run(REFUSE_S + TRUST_S)
    before_harmless, harmless = connection_count(mesh), poisonous.receiver("q.harmless")
    mesh.run_until(lambda: harmless.link.is_open, 1)
    assert connection_count(mesh) == before_harmless + 1
    later = poisonous.receiver(POISON)
    mesh.run_until(lambda: later.error is not None, 5)
    assert len(closed) == before + 1
    assert all(receiver.error is None for receiver in receivers)
    for client in [each for each in mesh.nodes if isinstance(each, SimClient)]:
        client.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


def test_two_clients_that_close_connections_are_both_found(
    make_mesh: Callable[..., SimMesh], monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = make_mesh("r1")
    receivers = consumers(mesh, 60)
    take_poison(monkeypatch)
    poisonous = [mesh.client("r1", f"poisonous-{index}").receiver(POISON) for index in range(2)]
    mesh.run_until(lambda: all(receiver.error is not None for receiver in poisonous), 60)
    mesh.run(1)
    assert all(receiver.error is None for receiver in receivers)


def test_a_client_that_comes_back_as_another_is_under_no_suspicion(
    make_mesh: Callable[..., SimMesh], monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = make_mesh("r1")
    receivers = consumers(mesh, 15)
    closed = take_poison(monkeypatch)
    for _ in range(2):
        before, client = len(closed), mesh.client("r1", "poisonous")
        refused = client.receiver(POISON)
        mesh.run_until(lambda refused=refused: refused.error is not None)
        # It shares a connection with others again, or meets those that it shared one with before.
        assert len(closed) > before + 1
        client.endpoint.close()
        mesh.run(TRUST_S + 2)
    assert all(receiver.error is None for receiver in receivers)


@pytest.mark.parametrize("condition", ["amqp:connection:forced", "amqp:resource-limit-exceeded"])
def test_a_loss_that_no_client_causes_divides_nobody(make_mesh: Callable[..., SimMesh], condition: str) -> None:
    mesh = make_mesh("r1")
    receivers = consumers(mesh, 40)
    for _ in range(3):
        endpoint_of(mesh, "q.7").close(AmqpError(condition, "for no reason of a client"))
        mesh.run(2)
        assert connection_count(mesh) == 1
        mesh.kill_broker("b1")
        mesh.run(1)
        mesh.start_broker("b1")
        mesh.run(2)
        assert connection_count(mesh) == 1
    assert all(receiver.error is None and receiver.link.is_open for receiver in receivers)


def test_halves_without_errors_are_trusted_again_and_take_other_clients(make_mesh: Callable[..., SimMesh]) -> None:
    mesh = make_mesh("r1")
    receivers = consumers(mesh, 40)
    endpoint_of(mesh, "q.7").close(AmqpError("amqp:internal-error", "once"))
    mesh.run(2)
    assert connection_count(mesh) == 2
    # Under suspicion, they take no other client.
    receivers += consumers(mesh, 1, first=100)
    assert connection_count(mesh) == 3
    mesh.run(TRUST_S)
    # Each error begins anew with two halves: the client of q.7 is not alone yet, and never refused.
    for _ in range(8):
        endpoint_of(mesh, "q.7").close(AmqpError("amqp:internal-error", "once in a while"))
        mesh.run(TRUST_S + 2)
    assert all(receiver.error is None for receiver in receivers)


@AT
def test_a_user_takes_no_link_of_another_over_a_shared_connection(
    make_mesh: Callable[..., SimMesh], broker_at: str
) -> None:
    users = {"alice": {"receive": ["news.#"]}, "bob": {"receive": ["news.#"]}}
    mesh = make_mesh(broker_at, users)
    mine = mesh.client("r1", "app", user="alice").receiver("news.#", name="reader", **DURABLE)
    mesh.run_until(lambda: mine.link.is_open)
    theirs = mesh.client("r1", "app", user="bob").receiver("news.#", name="reader", **DURABLE)
    mesh.run_until(lambda: theirs.error is not None)
    assert theirs.error.condition == "amqp:unauthorized-access"
    mesh.run(1)
    assert mine.error is None
    assert connection_count(mesh) == 1
    # The same user, over another connection of the same container-id, takes the link over. [2.6.1]
    again = mesh.client("r1", "app", user="alice").receiver("news.#", name="reader", **DURABLE)
    mesh.run_until(lambda: again.link.is_open and mine.error is not None)
    assert mine.error.condition == "amqp:link:stolen"
    assert again.error is None


@AT
def test_a_client_that_reads_nothing_stops_no_other_client(make_mesh: Callable[..., SimMesh], broker_at: str) -> None:
    mesh = make_mesh(broker_at)
    stuffed = mesh.client("r1", "stuffed", window_frames=2).receiver("q.stuffed", credit=1000)
    stuffed.reads = False
    other = mesh.client("r1", "other").receiver("q.other", credit=10)
    mesh.run_until(lambda: stuffed.link.is_open and other.link.is_open)
    filler = mesh.client("r1", "filler").sender("q.stuffed")
    mesh.run_until(lambda: filler.link.credit > 0)
    for _ in range(100):
        mesh.send(filler, bytes(Message(body=b"x" * 100_000).encode()))
    mesh.run(1)
    assert connection_count(mesh) == 1
    sender = mesh.client("r1", "sender").sender("q.other")
    for number in range(1, 50):
        mesh.send(sender, bytes(Message(body="small").encode()))
        mesh.run_until(lambda number=number: len(other.messages) == number, 1)


@pytest.mark.parametrize("seed", range(8))
def test_random_lives_over_shared_connections_leave_nothing_behind(
    make_mesh: Callable[..., SimMesh], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(route_connections, "MOST_CLIENTS", chance.choice([3, 20, 1000]))
    monkeypatch.setattr(route_connections, "_CLAIMS_AT_ONCE", chance.choice([1, 32]))
    mesh = make_mesh(chance.choice(["r1", "r2"]))
    take_poison(monkeypatch)
    harmless: dict[SimClient, list[SimReceiver]] = {}
    for step in range(150):
        what = chance.random()
        if what < 0.45 or not harmless:
            client = mesh.client(chance.choice(["r1", "r2"]), f"c{step}")
            harmless[client] = [client.receiver(f"q.{chance.randrange(20)}") for _ in range(chance.randint(1, 4))]
        elif what < 0.6:
            client = chance.choice(list(harmless))
            del harmless[client]
            chance.choice([client.endpoint.close, lambda client=client: mesh.cut(client.pipe)])()
        elif what < 0.75:
            chance.choice(chance.choice(list(harmless.values()))).link.close()
        elif what < 0.8:
            mesh.client(chance.choice(["r1", "r2"]), f"p{step}").receiver(POISON)
        elif what < 0.9:
            for endpoint in list(mesh.brokers["b1"]._endpoints):
                if endpoint.is_open and chance.random() < 0.3:
                    endpoint.close(AmqpError("amqp:connection:forced", "restarting"))
        elif what < 0.93:
            mesh.kill_broker("b1")
            mesh.run(chance.random())
            mesh.start_broker("b1")
        mesh.run(chance.choice([0.0, 0.001, 0.01, 0.3]))
    mesh.run_until(lambda: not any(_is_waiting(each) for each in harmless.values()), 60)
    ended = [
        receiver.error for each in harmless.values() for receiver in each if receiver.error not in (None, "detached")
    ]
    assert ended == []
    for client in [each for each in mesh.nodes if isinstance(each, SimClient)]:
        client.endpoint.close()
    mesh.run(QUIET_S)
    assert leftovers(mesh) == []


def _is_waiting(receivers: list[SimReceiver]) -> bool:
    return any(
        receiver.error is None and not receiver.link.has_left and not receiver.link.is_open for receiver in receivers
    )


@AT
def test_what_clients_send_while_the_loss_of_a_connection_is_told_comes_to_the_broker_that_is_back(
    make_mesh: Callable[..., SimMesh], broker_at: str
) -> None:
    mesh = make_mesh(broker_at)
    senders = [mesh.client("r1", f"c{index}").sender(f"q.{index}") for index in range(300)]
    mesh.run_until(lambda: all(sender.link.is_open and sender.link.credit for sender in senders), 60)
    mesh.kill_broker("b1")
    # The clients of 300 links hear of the loss in some ten turns of a millisecond.
    for _ in range(10):
        for sender in senders:
            sender.send(Message(body="m").encode())
        mesh.run(0.002)
    mesh.start_broker("b1")
    mesh.run_until(lambda: all(len(sender.outcomes) == 10 for sender in senders), 60)
    counts = Counter(outcome.kind for sender in senders for outcome in sender.outcomes.values())
    assert set(counts) <= {OutcomeCode.ACCEPTED, OutcomeCode.MODIFIED}
    assert counts[OutcomeCode.ACCEPTED] > counts[OutcomeCode.MODIFIED]
