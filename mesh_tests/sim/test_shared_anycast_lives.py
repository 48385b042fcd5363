"""Random lives of consumers of many anycast addresses, to which senders without an address send over shared circuits.

Consumers come and go, run out of credit and settle late; routers are killed. What holds for addresses with circuits of
their own has to hold.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from addressing.book import AddressBook
from mesh.simulation.clients import SimClient, SimReceiver
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.edge_and_brokers import mesh_with
from mesh_tests.sim.test_full_shared_queues import restart
from wire.delivery import ACCEPTED, RELEASED, OutcomeCode

COUNT = 30
DECLARED: dict[str, Any] = {"cmd.#": "anycast"}


@dataclass(eq=False)
class Device:
    """The consumer of one address. It may hold deliveries, and grants credit now and then."""

    address: str
    place: str
    client: SimClient
    receiver: SimReceiver


@dataclass
class Life:
    """``places``: where consumers may be; an address keeps its place unless the consumers ``move``."""

    mesh: SimMesh
    seed: int
    sender_places: tuple[str, ...] = ("r1", "r2", "e1")
    places: tuple[str, ...] = ("r1", "r2", "r3", "r3", "r3", "e1")
    moves: bool = False
    loses: bool = False
    releases: bool = False
    log: list[bytes] = field(default_factory=list)
    sent: list[tuple[int, str, int]] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.senders = [
            self.mesh.client(self.chance.choice(self.sender_places), f"p{number}").sender(None) for number in range(4)
        ]
        self.home = {f"cmd.{number}": self.chance.choice(self.places) for number in range(COUNT)}
        for address in self.home:
            self.arrive(address)
        self.mesh.run(1)

    def arrive(self, address: str, credit: int | None = None) -> None:
        place = self.chance.choice(self.places) if self.moves else self.home[address]
        client = self.mesh.client(place, f"{address} {len(self.sent)} {self.mesh.now}")
        receiver = client.receiver(address, credit=self.chance.choice([0, 1, 5, 100]) if credit is None else credit)
        receiver.messages = Sights(self.log)
        receiver.accepts = credit is not None or self.chance.random() < 0.6
        receiver.tops_up = receiver.accepts
        self.devices[address] = Device(address, place, client, receiver)

    def step(self) -> None:
        chance = self.chance
        for _ in range(chance.choice([1, 1, 4])):
            self.send()
        if chance.random() < 0.3:
            self.mesh.run(chance.random() * 0.02)
        if chance.random() < 0.3:
            self.touch(self.devices[chance.choice(sorted(self.devices))])
        if self.loses and chance.random() < 0.05:
            self.lose(chance.choice(sorted(self.devices)))
        if chance.random() < 0.01:
            self.mesh.run(chance.random() * 15)

    def send(self) -> None:
        who = self.chance.randrange(len(self.senders))
        sender = self.senders[who]
        if sender.link.credit > 0:
            address = f"cmd.{min(self.chance.randrange(COUNT), self.chance.randrange(COUNT))}"
            size = self.chance.choice([0] * 18 + [90_000, 5_000])
            is_settled = self.chance.random() < 0.03
            tag = sender.send(
                Message(address=address, body="x" * size + f" {len(self.sent)}").encode(), settled=is_settled
            )
            self.sent.append((who, address, 0 if is_settled else tag))

    def touch(self, device: Device) -> None:
        """The consumer settles what it holds, grants some credit, or stops or begins to read."""
        receiver = device.receiver
        chance = self.chance.random()
        if chance < 0.4:
            receiver.settle(RELEASED if self.releases and self.chance.random() < 0.3 else ACCEPTED)
        elif chance < 0.8 and not receiver.tops_up and receiver.link.credit < 50:
            receiver.link.grant(self.chance.choice([1, 3, 20]))
        elif chance < 0.9:
            device.client.pipe.is_held = False
        self.mesh.touch(device.client)
        self.mesh.settle()

    def lose(self, address: str) -> None:
        device = self.devices[address]
        self.mesh.cut(device.client.pipe)
        if self.chance.random() < 0.5:
            self.mesh.run(self.chance.random() * 4)
        self.arrive(address)

    def finish(self) -> None:
        for device in self.devices.values():
            device.receiver.accepts = device.receiver.tops_up = True
            device.receiver.settle()
            if device.client.closed:
                self.arrive(device.address, 10_000)
            elif device.receiver.link.credit < 1_000:
                device.receiver.link.grant(10_000)
            self.mesh.touch(device.client)
        self.mesh.settle()
        self.mesh.run(40)
        for sender in self.senders:
            assert not sender.open

    def sights(self) -> list[int]:
        found = []
        for data in self.log:
            message = Message()
            message.decode(data)
            number = int(message.body.split()[-1])
            assert self.sent[number][1] == message.address
            found.append(number)
        return found

    def check(self, *, in_order: bool) -> Counter[OutcomeCode]:
        sights = self.sights()
        if not self.releases:
            assert len(sights) == len(set(sights)), "a message was seen twice"
        outcomes: Counter[OutcomeCode] = Counter()
        for number, (who, _, tag) in enumerate(self.sent):
            kind = self.senders[who].outcomes[tag].kind if tag else None
            if kind is None:
                continue
            outcomes[kind] += 1
            if kind is OutcomeCode.ACCEPTED:
                assert number in sights
            if kind is OutcomeCode.RELEASED and not self.releases:
                assert number not in sights
        if in_order:
            orders: dict[tuple[int, str], list[int]] = {}
            for number in dict.fromkeys(sights):
                orders.setdefault(self.sent[number][:2], []).append(number)
            for key, order in orders.items():
                assert order == sorted(order), key
        return outcomes


class Sights(list[bytes]):
    """The messages of one receiver, which note their arrival in a log of all receivers, too."""

    def __init__(self, log: list[bytes]) -> None:
        self._log = log

    def append(self, message: bytes) -> None:
        super().append(message)
        self._log.append(message)


@pytest.fixture(params=["shared", "own"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same lives with circuits of each address show that a life asks for no more than what holds there."""
    if request.param == "own":
        monkeypatch.setattr(AddressBook, "_shared_of", lambda *_: None)
    return str(request.param)


@pytest.mark.parametrize("seed", range(8))
def test_in_a_random_life_each_accepted_message_arrives_once_in_order(tmp_path: Path, mode: str, seed: int) -> None:
    life = Life(mesh_with(tmp_path, DECLARED), seed)
    for _ in range(400):
        life.step()
    life.finish()
    outcomes = life.check(in_order=True)
    assert outcomes[OutcomeCode.ACCEPTED] > 300
    assert not outcomes[OutcomeCode.MODIFIED]


@pytest.mark.parametrize("seed", range(8))
def test_in_a_random_life_with_lost_consumers_each_message_arrives_at_most_once(
    tmp_path: Path, mode: str, seed: int
) -> None:
    life = Life(mesh_with(tmp_path, DECLARED), seed, loses=True, moves=seed % 2 == 1)
    for _ in range(400):
        life.step()
    life.finish()
    life.check(in_order=False)


@pytest.mark.parametrize("seed", range(8))
def test_in_a_random_life_with_kills_no_accepted_message_is_lost(tmp_path: Path, mode: str, seed: int) -> None:
    life = Life(mesh_with(tmp_path, DECLARED), seed, ("r1", "e1"), loses=True, moves=seed % 2 == 1)
    for number in range(300):
        life.step()
        if number % 60 == 59:
            restart(life.mesh, life.chance.choice(["r3", "r2"]))
            for address, device in list(life.devices.items()):
                if device.client.closed:
                    life.arrive(address)
    life.finish()
    life.check(in_order=False)


@pytest.mark.parametrize("seed", range(6))
def test_released_messages_go_to_other_consumers_or_back(tmp_path: Path, mode: str, seed: int) -> None:
    life = Life(mesh_with(tmp_path, DECLARED), seed, loses=True, releases=True, moves=True)
    for _ in range(300):
        life.step()
    life.finish()
    life.check(in_order=False)
