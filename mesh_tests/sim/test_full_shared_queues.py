"""Queues of a pattern that are full, among others that are not, if senders without an address share links to all."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from proton import Message

from addressing.book import AddressBook
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import ready
from mesh_tests.sim.test_shared_patterns import rows, seen, send, settled
from mesh_tests.sim.test_shared_queues import made, queue, waiting
from wire import delivery as deliveries
from wire.delivery import ACCEPTED, OutcomeCode

LIMIT = 2
ROUTERS = ("r3", "r1", "e1")
LARGE = "x" * 300_000


@pytest.fixture
def mesh(tmp_path: Path) -> SimMesh:
    return made(tmp_path)


def fill(mesh: SimMesh, sender: SimSender, address: str, count: int) -> None:
    for number in range(count):
        send(mesh, sender, address, str(number))


def late(mesh: SimMesh, address: str) -> int:
    """How many messages to the queue wait at the broker for room."""
    held = queue(mesh, address)
    return 0 if held is None else held.coming_count


def bodies(receiver: SimReceiver) -> list[str]:
    return [body for _, body in seen(receiver)]


@pytest.mark.parametrize("place", ROUTERS)
def test_a_full_queue_holds_up_its_own_messages_only(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    fill(mesh, sender, "short.full", 50)
    for number in range(1_000):
        send(mesh, sender, f"short.{number}")
    mesh.run(1)
    assert list(sender.outcomes.values()) == [ACCEPTED] * (LIMIT + 1_000)
    assert len(sender.open) == 50 - LIMIT
    assert {name for name in rows(mesh, place) if rows(mesh, place)[name]} == {"short.#", "short.full"}


@pytest.mark.parametrize("place", ROUTERS)
def test_messages_to_a_full_queue_enter_in_order_as_it_gets_room(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    fill(mesh, sender, "short.1", 30)
    mesh.run(1)
    fill_more = [str(number) for number in range(30, 60)]
    for body in fill_more:
        send(mesh, sender, "short.1", body)
    mesh.run(1)
    assert waiting(mesh) == {"short.1": LIMIT}
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == [str(number) for number in range(60)]
    assert set(sender.outcomes.values()) == {ACCEPTED}


def test_the_sender_hears_nothing_of_the_state_between_broker_and_router(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    mesh.run(1)
    assert late(mesh, "short.1") == 3
    assert {deliveries.remote_state(delivery) for delivery in sender.open} == {0}


def test_later_messages_to_a_full_queue_wait_at_the_router(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    mesh.run(1)
    fill(mesh, sender, "short.1", 20)
    mesh.run(1)
    assert late(mesh, "short.1") == 3
    assert len(sender.open) == 23


def test_an_address_that_was_full_shares_links_again_after_a_while_without_messages(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    mesh.run(60)
    assert rows(mesh, "r1")["short.1"] > 0, "messages of it still wait"
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(30)
    assert rows(mesh, "r1") == {"short.#": 2}
    assert rows(mesh, "r3") == {"short.#": 2}
    fill(mesh, sender, "short.1", 1)
    settled(mesh, sender)
    assert rows(mesh, "r1") == {"short.#": 2}
    assert len(receiver.messages) == 6


@pytest.mark.parametrize("place", ROUTERS)
def test_a_queue_that_stays_full_gives_back_what_is_more_than_its_share_of_the_credit(
    mesh: SimMesh, place: str
) -> None:
    """All 250 credits are used for one queue. The sender gets most of them back, for messages to other queues."""
    sender = mesh.client(place, "devices").sender(None)
    for number in range(250):
        sender.send(Message(address="short.1", body=str(number)).encode())
    mesh.run(1)
    assert late(mesh, "short.1") == 250 - LIMIT
    mesh.run(30)
    kinds = Counter(outcome.kind for outcome in sender.outcomes.values())
    assert kinds[OutcomeCode.ACCEPTED] == LIMIT
    assert kinds[OutcomeCode.RELEASED] == 250 - LIMIT - 62
    assert late(mesh, "short.1") == 62
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == [str(number) for number in range(LIMIT + 62)]


@pytest.mark.parametrize("place", ROUTERS)
def test_presettled_messages_wait_for_room_and_are_not_given_back(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    for number in range(200):
        sender.send(Message(address="short.1", body=str(number)).encode(), settled=True)
    mesh.run(60)
    assert late(mesh, "short.1") == 200 - LIMIT
    for number in range(200, 1_000):
        if sender.link.credit > 0:
            sender.send(Message(address="short.1", body=str(number)).encode(), settled=True)
            mesh.run(0.01)
    assert late(mesh, "short.1") == 200 - LIMIT
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    mesh.run(5)
    found = [int(body) for body in bodies(receiver)]
    assert found == list(range(len(found)))
    assert 200 < len(found) <= 250 + LIMIT


@pytest.mark.parametrize("place", ROUTERS)
def test_a_large_message_to_another_queue_does_not_wait_for_a_full_one(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    send(mesh, sender, "short.2", LARGE)
    send(mesh, sender, "short.3", "small")
    mesh.run(2)
    assert waiting(mesh) == {"short.1": LIMIT, "short.2": 1, "short.3": 1}


@pytest.mark.parametrize("place", ROUTERS)
def test_large_messages_to_a_full_queue_keep_their_places(mesh: SimMesh, place: str) -> None:
    sender = mesh.client(place, "devices").sender(None)
    sent = [(LARGE if number % 3 == 2 else "") + str(number) for number in range(20)]
    for body in sent:
        send(mesh, sender, "short.1", body)
    mesh.run(1)
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == sent


def test_every_spelling_of_the_address_of_a_full_queue_waits_in_turn(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    spellings = ["amqp:/short.1", "amqps://other/short.1", "amqp://host/short.1", "amqp:short.1"]
    for number in range(40):
        send(mesh, sender, spellings[number % 4], str(number))
        if number == 9:
            mesh.run(1)
    mesh.run(1)
    assert late(mesh, "short.1") == 10 - LIMIT
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(1)
    assert bodies(receiver) == [str(number) for number in range(40)]


def test_a_message_that_expires_while_it_is_late_is_released(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", LIMIT)
    tag = sender.send(Message(address="short.1", body="late", ttl=5).encode())
    mesh.run(8)
    receiver = mesh.client("r2", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    assert sender.outcomes[tag].kind is OutcomeCode.RELEASED
    mesh.run(1)
    assert len(receiver.messages) == LIMIT


def test_late_messages_of_a_deleted_queue_are_released(mesh: SimMesh) -> None:
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    mesh.run(1)
    mesh.brokers["b1"]._message_store.delete(queue(mesh, "short.1"))
    send(mesh, sender, "short.2")
    mesh.run(1)
    assert Counter(outcome.kind for outcome in sender.outcomes.values()) == {
        OutcomeCode.ACCEPTED: 3,
        OutcomeCode.RELEASED: 3,
    }


@pytest.mark.parametrize(("victim", "lost"), [("b1", 3), ("r3", 3), ("r2", 0)])
def test_late_messages_are_in_doubt_once_their_path_is_lost_and_later_ones_still_arrive(
    mesh: SimMesh, victim: str, lost: int
) -> None:
    """Without the router in between, the broker still has the late messages, and stores them."""
    sender = mesh.client("r1", "devices").sender(None)
    fill(mesh, sender, "short.1", 5)
    mesh.run(1)
    for number in range(5, 8):
        send(mesh, sender, "short.1", str(number))
    mesh.run(0.1)
    restart(mesh, victim)
    receiver = mesh.client("r1", "worker").receiver("short.1", credit=1_000)
    settled(mesh, sender)
    mesh.run(1)
    found = [sender.outcomes[tag].kind for tag in sorted(sender.outcomes)]
    assert found[:LIMIT] == [OutcomeCode.ACCEPTED] * LIMIT
    assert found[LIMIT:5] == [OutcomeCode.MODIFIED] * 3
    assert found[5:] == [OutcomeCode.ACCEPTED] * 3
    assert bodies(receiver) == [str(number) for number in range(8) if not LIMIT <= number < LIMIT + lost]


def restart(mesh: SimMesh, victim: str) -> None:
    if victim in mesh.brokers:
        mesh.kill_broker(victim)
        mesh.run(0.2)
        mesh.start_broker(victim)
    else:
        edges = mesh.edges_of(victim) + [
            edge for name in mesh.routers if name != victim for edge in mesh.edges_of(name) if edge.to == victim
        ]
        mesh.kill(victim)
        mesh.run(0.2)
        mesh.start(victim)
        for edge in {(edge.dialer, edge.to) for edge in edges}:
            mesh.trunks.pop(frozenset(edge), None)
            mesh.link(*edge)
    ready(mesh)


class Sights(list[bytes]):
    """The messages of one receiver, which note their arrival in a log of all receivers, too."""

    def __init__(self, log: list[bytes]) -> None:
        self._log = log

    def append(self, message: bytes) -> None:
        super().append(message)
        self._log.append(message)


class Life:
    """Senders to 40 short queues, of which some have no consumer for long; perhaps nodes are killed meanwhile."""

    def __init__(self, mesh: SimMesh, seed: int, places: tuple[str, ...] = ("r1", "r2", "r3", "e1")) -> None:
        self.mesh, self.chance = mesh, random.Random(seed)
        self.senders = [mesh.client(self.chance.choice(places), f"p{number}").sender(None) for number in range(4)]
        self.sent: list[tuple[int, str, int]] = []
        self.log: list[bytes] = []
        self.consumers: dict[str, SimClient] = {}

    def step(self) -> None:
        who = self.chance.randrange(len(self.senders))
        address = f"short.{min(self.chance.randrange(40), self.chance.randrange(40))}"
        sender = self.senders[who]
        if sender.link.credit > 0:
            number = len(self.sent)
            text = ("x" * 90_000 if self.chance.random() < 0.05 else "") + f" {number}"
            tag = sender.send(Message(address=address, body=text).encode())
            self.sent.append((who, address, tag))
        if self.chance.random() < 0.2:
            self.mesh.run(self.chance.random() * 0.02)
        if self.chance.random() < 0.05:
            self.consume(f"short.{self.chance.randrange(40)}")
        if self.chance.random() < 0.01:
            self.mesh.run(self.chance.random() * 15)

    def consume(self, address: str, credit: int | None = None) -> None:
        """A consumer of some messages takes the place of the one before, which may have left some unanswered."""
        if address in self.consumers:
            self.mesh.cut(self.consumers[address].pipe)
            self.mesh.run(0.5)
        client = self.consumers[address] = self.mesh.client("r2", f"consumer-{len(self.log)}-{self.mesh.now}")
        receiver = client.receiver(address, credit=credit or self.chance.choice([1, 3, 100]))
        receiver.messages, receiver.tops_up = Sights(self.log), credit is not None
        self.mesh.run(0.05)

    def finish(self) -> None:
        for number in range(40):
            self.consume(f"short.{number}", 10_000)
        self.mesh.run(60)

    def check(self) -> set[int]:
        """Check the outcomes against what consumers saw; return the numbers of messages seen that were not accepted."""
        assert not [sender.open for sender in self.senders if sender.open]
        first_sights: dict[int, str] = {}
        for data in self.log:
            message = Message()
            message.decode(data)
            first_sights.setdefault(int(message.body.split()[-1]), message.address)
        accepted = {
            number for number, (who, _, tag) in enumerate(self.sent) if self.senders[who].outcomes[tag] == ACCEPTED
        }
        assert accepted <= set(first_sights)
        orders: dict[tuple[int, str], list[int]] = {}
        for number, address in first_sights.items():
            assert self.sent[number][1] == address
            orders.setdefault((self.sent[number][0], address), []).append(number)
        for order in orders.values():
            assert order == sorted(order)
        return set(first_sights) - accepted


@pytest.mark.parametrize("seed", range(10))
def test_in_a_random_life_every_accepted_message_arrives_once_in_order(tmp_path: Path, seed: int) -> None:
    life = Life(made(tmp_path), seed)
    for _ in range(500):
        life.step()
    life.finish()
    assert not life.check()


@pytest.mark.parametrize("seed", range(10))
def test_in_a_random_life_with_kills_no_accepted_message_is_lost_or_out_of_order(tmp_path: Path, seed: int) -> None:
    life = Life(made(tmp_path), seed, ("r1", "e1"))
    for number in range(400):
        life.step()
        if number % 80 == 79:
            restart(life.mesh, life.chance.choice(["b1", "b1", "r3", "r2"]))
    life.finish()
    life.check()


@pytest.mark.parametrize("seed", range(4))
def test_shared_links_give_the_same_outcomes_as_links_of_each_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The same life twice. Consumers take what a queue has, so that each message is accepted, in either mode."""
    outcomes, orders = [], []
    for mode in ("shared", "own"):
        if mode == "own":
            monkeypatch.setattr(AddressBook, "_shared_of", lambda *_: None)
        mesh = made(tmp_path / mode)
        chance = random.Random(seed)
        sender = mesh.client("r1", "devices").sender(None)
        worker = mesh.client("r2", "worker")
        receivers: dict[str, SimReceiver] = {}
        for number in range(200):
            mesh.run_until(lambda sender=sender: sender.link.credit > 0)
            address = f"short.{chance.randrange(30)}"
            sender.send(Message(address=address, body=str(number)).encode())
            if chance.random() < 0.1:
                mesh.run(chance.random() * 0.2)
            if chance.random() < 0.05 and address not in receivers:
                receivers[address] = worker.receiver(address, credit=1_000)
        for number in range(30):
            if f"short.{number}" not in receivers:
                receivers[f"short.{number}"] = worker.receiver(f"short.{number}", credit=1_000)
        settled(mesh, sender)
        mesh.run(1)
        outcomes.append({tag: outcome.kind for tag, outcome in sender.outcomes.items()})
        orders.append({address: bodies(receiver) for address, receiver in sorted(receivers.items())})
        mesh.close()
    assert outcomes[0] == outcomes[1]
    assert orders[0] == orders[1]
