"""Two spaces with equal addresses, container-ids and link names: nothing that is sent in one arrives in the other.

A random life by seed, while routers and brokers are lost and return. Each message says its space. At the end, once all
is healed, each address of each space still works, so that the walk cannot pass by delivering nothing.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proton import Message

from addressing.address import Address
from addressing.topology.model import Topology
from broker.store.addressed import as_delivered
from broker.store.dump import stored_messages
from broker.store.read_store import reading
from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.rings import Ring
from mesh_tests.sim.faults import NodeFaults
from recording.records import Recorder
from router.events import AttachRefused
from wire.delivery import ACCEPTED, RELEASED, rejected
from wire.terminus import Durability, Expiry

AT_B1: dict[str, Any] = {"type": "queue", "broker": "b1"}
ADDRESSES: dict[str, Any] = {
    "rpc": "anycast",
    "near": {"type": "anycast", "distribution": "closest"},
    "backed": {"type": "anycast", "fallback": "backlog"},
    "backlog": AT_B1,
    "prices": "multicast",
    "orders": AT_B1,
    "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
    "renamed": {**AT_B1, "broker_address": "its-name-there"},
    "tried": {**AT_B1, "dead_letter": "dead", "max_delivery_attempts": 2},
    "dead": AT_B1,
    "made.*": {**AT_B1, "max_queues": 1},
    "news.#": {"type": "topic", "broker": "b2"},
}
SENT_TO = ("rpc", "near", "backed", "prices", "orders", "sharded", "renamed", "tried", "made.1", "news.eu.paris")
RECEIVED_FROM = (*SENT_TO[:-1], "backlog", "dead", "made.1", "news.eu.paris", "news.#", "news.*.paris")
KEPT = ("backlog", "orders", "sharded", "renamed", "tried", "dead", "made.1")
DURABLE: dict[str, Any] = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER}
SUBSCRIPTIONS: dict[str, dict[str, Any]] = {
    "own": DURABLE,
    "shared": {**DURABLE, "capabilities": ("shared",)},
    "shared|global": {**DURABLE, "capabilities": ("shared", "global")},
    "passing|volatile1": {"capabilities": ("shared",)},
    "passing|global-volatile1": {"capabilities": ("shared", "global")},
}
OUTCOMES = (ACCEPTED, ACCEPTED, RELEASED, rejected("amqp:not-allowed", "no"))
PAUSES_S = (0.0005, 0.002, 0.02, 0.2, 1.0)
SPACES = ("", "acme", "zeta")
STEPS = 60


def make_mesh(folder: Path, spaces: tuple[str, ...] = SPACES[1:], **more: Any) -> SimMesh:
    topology: dict[str, Any] = {
        "mesh": "mesh",
        "node_tls": False,
        "routers": {
            "r1": {},
            "r2": {"connect": ["r1"]},
            "r3": {"connect": ["r2", {"to": "r1", "cost": 3}]},
            "e1": {"mode": "edge", "connect": ["r2", "r3"]},
        },
        "brokers": {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r2", "r3"]}},
        "addresses": ADDRESSES,
    }
    model = Topology.model_validate(topology)
    mesh = SimMesh(model, folder, spaces=dict.fromkeys(spaces, model.addresses), **more)
    mesh.converge()
    mesh.run(0.5)
    return mesh


def said_in(data: bytes) -> tuple[str, str]:
    """The space and the address to which the message was sent, as the message says."""
    message = Message()
    message.decode(data)
    space, address = message.body.split("|", 1)
    return space, address


@dataclass(eq=False)
class Link:
    """A link of a client of one space."""

    space: str
    address: str | None
    client: SimClient
    end: Any

    @property
    def is_open(self) -> bool:
        return not self.client.closed and self.end.link.is_open


class SpaceWalk(NodeFaults):
    """Always: each receiver has only messages that were sent in its space."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.spaces: tuple[str, ...] = tuple(self.random.sample(SPACES, 2))
        self.mesh = make_mesh(folder)
        self.senders: list[Link] = []
        self.receivers: list[Link] = []
        self.dynamic: list[Link] = []

    # What clients do. Container-ids and link names are equal in all spaces
    def client(self, space: str, router: str | None = None, container_id: str = "app") -> SimClient:
        return self.mesh.client(router or self.random.choice(sorted(self.mesh.routers)), container_id, space=space)

    def attach_sender(self) -> None:
        space, address = self.random.choice(self.spaces), self.random.choice((*SENT_TO, None))
        client = self.client(space)
        self.senders.append(Link(space, address, client, client.sender(address, name="to")))

    def attach_receiver(self) -> None:
        space, address = self.random.choice(self.spaces), self.random.choice(RECEIVED_FROM)
        client = self.client(space)
        self.receivers.append(Link(space, address, client, client.receiver(address, name="from")))

    def subscribe(self) -> None:
        space, name = self.random.choice(self.spaces), self.random.choice(sorted(SUBSCRIPTIONS))
        client = self.client(space)
        address = self.random.choice(("news.#", "news.eu.*"))
        self.receivers.append(Link(space, address, client, client.receiver(address, name=name, **SUBSCRIPTIONS[name])))

    def unsubscribe(self) -> None:
        space, name = self.random.choice(self.spaces), self.random.choice(sorted(SUBSCRIPTIONS))
        ended = self.client(space).receiver(None, name=name)
        self.mesh.run(0.05)
        if ended.link.is_open and not ended.error:
            ended.link.close()
            self.mesh.flush()

    def attach_dynamic(self) -> None:
        """A receiver with a dynamic address, and a sender in each space that knows the address."""
        space = self.random.choice(self.spaces)
        client = self.client(space)
        receiver = client.receiver(None, name="from", dynamic=True)
        self.mesh.run(0.02)
        self.receivers.append(Link(space, None, client, receiver))
        if (address := receiver.link.remote_source.address) is not None:
            for each in self.spaces:
                sender = self.client(each)
                self.senders.append(Link(each, address, sender, sender.sender(address, name="reply")))

    def send(self) -> None:
        for link in self.random.sample(self.senders, min(3, len(self.senders))):
            for _ in range(self.random.randint(1, 4)):
                if link.is_open and link.end.link.credit > 0:
                    address = link.address or self.random.choice(SENT_TO)
                    link.end.send(self.message(link.space, address), settled=self.random.random() < 0.1)

    @staticmethod
    def message(space: str, address: str) -> bytes:
        data: bytes = Message(address=address, body=f"{space}|{address}").encode()
        return data

    def settle(self) -> None:
        for link in self.receivers:
            link.end.accepts = self.random.random() < 0.7
            if link.is_open and link.end.held:
                link.end.settle(self.random.choice(OUTCOMES))
                link.end.link.grant(10)
                link.client.endpoint.mark_dirty()
        self.mesh.flush()

    def leave(self) -> None:
        """A client goes, or closes or detaches its link."""
        if found := [link for link in (*self.senders, *self.receivers) if link.is_open]:
            link = self.random.choice(found)
            self.random.choice((link.end.link.close, link.end.link.detach, lambda: self.mesh.cut(link.client.pipe)))()
            self.mesh.flush()

    # The walk
    def live(self, steps: int) -> None:
        acts = [
            *[self.attach_sender, self.attach_receiver] * 4,
            *[self.send] * 8,
            *[self.subscribe, self.settle] * 3,
            *[self.attach_dynamic, self.leave] * 2,
            *[self.unsubscribe, self.kill_router, self.kill_broker, self.heal, self.heal],
        ]
        for _ in range(steps):
            self.random.choice(acts)()
            self.mesh.run(self.random.choice(PAUSES_S))
            self.check()
        self.heal()
        self.mesh.converge()
        self.mesh.run(12.0)
        self.check()
        self.check_queues()
        self.check_that_each_space_works()
        self.check_dead_letters()
        self.check_subscriptions()

    def check(self) -> None:
        for link in self.receivers:
            strange = Counter(said for said in map(said_in, link.end.messages) if said[0] != link.space)
            assert not strange, f"a receiver from {link.address} in {link.space!r} got {dict(strange)}"

    def check_queues(self) -> None:
        """Each queue and subscription at each broker has messages of its space only."""
        for name in self.mesh.brokers:
            assert self.mesh.folder is not None
            with reading(self.mesh.folder / name, may_be_used=True) as store:
                for message in stored_messages(store):
                    assert isinstance(message.body, bytes)
                    assert said_in(as_delivered(message.body))[0] == Address.parse(message.queue.address).space, (
                        name,
                        message.queue,
                    )

    def check_that_each_space_works(self) -> None:
        """In each space, a message to each address arrives in that space."""
        for address in dict.fromkeys((*SENT_TO, *KEPT)):
            self.disconnect()
            pairs = [(space, *self._pair(space, address)) for space in self.spaces]
            self.mesh.run(0.5)
            numbers = {space: self.mesh.send(sender, self.message(space, address)) for space, sender, _ in pairs}
            self.mesh.run_until(lambda: all(numbers[space] in sender.outcomes for space, sender, _ in pairs))  # noqa: B023
            for space, sender, _ in pairs:
                assert sender.outcomes[numbers[space]] == ACCEPTED, (address, space, sender.outcomes)
            self.mesh.run_until(lambda: all((s, address) in map(said_in, r.messages) for s, _, r in pairs))  # noqa: B023
            self.check()

    def check_dead_letters(self) -> None:
        """In each space, a rejected message goes to the dead-letter queue of that space."""
        self.disconnect()
        pairs = [(space, *self._pair(space, "tried")) for space in self.spaces]
        for space, sender, receiver in pairs:
            receiver.accepts = False
            self.mesh.send(sender, self.message(space, "tried"))
        self.mesh.run_until(lambda: all(receiver.held for _, _, receiver in pairs))
        for _, _, receiver in pairs:
            receiver.settle(rejected("amqp:not-allowed", "no"))
        self.mesh.flush()
        self.mesh.run(0.5)
        found = {space: self._pair(space, "dead")[1] for space in self.spaces}
        self.mesh.run_until(
            lambda: all((space, "tried") in map(said_in, dead.messages) for space, dead in found.items())
        )
        self.check()

    def check_subscriptions(self) -> None:
        """In each space, a durable subscription keeps what comes while its subscriber is away, and ends alone."""
        names = [name for name, terminus in SUBSCRIPTIONS.items() if "durability" in terminus]
        for name in names:
            self.disconnect()
            for space in self.spaces:
                self._subscriber(space, name)
                self.mesh.run(0.2)
            self.disconnect()
            publishers = [(space, self.client(space, "r1").sender("news.eu.paris")) for space in self.spaces]
            for space, sender in publishers:
                self.mesh.send(sender, self.message(space, "news.eu.paris"))
            self.mesh.run_until(lambda: all(sender.outcomes for _, sender in publishers))  # noqa: B023
            found = {space: self._subscriber(space, name) for space in self.spaces}
            self.mesh.run_until(
                lambda: all((s, "news.eu.paris") in map(said_in, r.messages) for s, r in found.items())  # noqa: B023
            )
            self.check()

    def _subscriber(self, space: str, name: str) -> SimReceiver:
        client = self.client(space, "e1")
        receiver = client.receiver("news.#", 1000, name=name, **SUBSCRIPTIONS[name])
        self.receivers.append(Link(space, "news.#", client, receiver))
        return receiver

    def disconnect(self) -> None:
        for link in [*self.receivers, *self.senders]:
            if not link.client.closed:
                self.mesh.cut(link.client.pipe)
        self.mesh.run(1.0)

    def _pair(self, space: str, address: str) -> tuple[SimSender, SimReceiver]:
        source, goal = self.client(space, "r1"), self.client(space, "e1")
        receiver = goal.receiver(address, 1000, name="last")
        sender = source.sender(address, name="last")
        self.receivers.append(Link(space, address, goal, receiver))
        self.senders.append(Link(space, address, source, sender))
        return sender, receiver


@pytest.mark.parametrize("seed", range(12))
def test_nothing_crosses_between_spaces(tmp_path: Path, seed: int) -> None:
    walk = SpaceWalk(seed, tmp_path)
    try:
        walk.live(STEPS)
    finally:
        walk.mesh.close()


def test_a_client_sees_names_of_its_space_only(tmp_path: Path) -> None:
    mesh = make_mesh(tmp_path)
    try:
        client = mesh.client("e1", "app", space="acme")
        own = client.receiver("news.#", name="own", **DURABLE)
        replies = client.receiver(None, name="replies", dynamic=True)
        refused = client.sender("nobody"), client.sender(Address("zeta", "orders").text)
        mesh.run(0.5)
        assert own.link.remote_source.address == "news.#"
        assert replies.link.remote_source.address.startswith("amqp:/_topo/0/e1/temp.")
        assert [sender.error.condition for sender in refused] == ["amqp:not-found", "amqp:unauthorized-access"]
        mesh.cut(client.pipe)
        mesh.run(0.5)
        ended = mesh.client("r1", "app", space="acme").receiver(None, name="own")
        elsewhere = mesh.client("r1", "app", space="zeta").receiver(None, name="own")
        mesh.run(0.5)
        assert ended.link.remote_source.address == "news.#"
        assert elsewhere.error.condition == "amqp:not-found"
    finally:
        mesh.close()


def test_logs_and_link_logs_have_the_text_of_an_address(tmp_path: Path) -> None:
    rings: dict[str, Ring] = {}

    def recorder_of(name: str) -> Recorder:
        rings[name] = Ring(10_000)
        return Recorder(rings[name].memory, "full")

    mesh = make_mesh(tmp_path, recorder_of=recorder_of)
    try:
        for space in ("", "acme"):
            client = mesh.client("e1", "app", space=space)
            for address in ("rpc", "orders", "nobody"):
                client.sender(address)
        mesh.run(0.5)
        mesh.tell_second("e1")
        mesh.tell_second("b1")
    finally:
        mesh.close()
    prefix = "_amqpmesh/space/acme/"
    links = [row for row in rings["e1"].take()[1] if row["kind"] == "link" and row.get("role") == "producer"]
    assert [row["address"] for row in links] == ["rpc", "orders", f"{prefix}rpc", f"{prefix}orders"]
    queues = {row["address"] for row in rings["b1"].take()[1] if row["kind"] == "queue"}
    assert {"orders", f"{prefix}orders"} <= queues
    refused = [event.address for _, _, event in mesh.log if isinstance(event, AttachRefused)]
    assert refused == ["nobody", f"{prefix}nobody"]
