"""A random life of a random mesh: 2 to 8 nodes, slow and silent trunks, ordered stops, every option of an address.

Beside what the walk does: messages expire, become dead letters, and meet full queues that block or refuse; durable and
shared subscriptions come back at other routers; `closest` and priorities of addresses; users without rights. Seeded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh_tests.sim.walk import Walk, number_in
from wire.errors import AmqpError
from wire.link import Link
from wire.terminus import Durability, Expiry

DELAYS_S = (0.001, 0.02, 0.2)
CONVERGED_S = 5.0
"""Trunks with a delay of 0.2 s need several round trips."""
FAMILIES = {"tried": "graveyard", "mortal": "late"}
FORCED = AmqpError("amqp:connection:forced", "shuts down")


@dataclass(eq=False)
class Subscription:
    """One durable subscription, by its container-id and link name. ``due``: messages that its consumers must get."""

    container_id: str
    is_shared: bool
    ends: list[tuple[SimClient, SimReceiver]] = field(default_factory=list)
    since: int = 0
    """The number of the last message that was sent before its first attach was answered."""

    @property
    def is_attached(self) -> bool:
        return any(not client.closed and receiver.link.is_open for client, receiver in self.ends)


class BroadWalk(Walk):
    ADDRESSES = ("rpc", "near", "prices", "orders", "sharded", "news", "tried", "mortal", "bounded", "refusing")
    QUEUES = ("orders", "sharded", "tried", "mortal", "bounded", "refusing")
    REFUSING = ("refusing",)
    CONVERGED_S = CONVERGED_S

    def __init__(self, *arguments: Any) -> None:
        self.subscriptions: list[Subscription] = []
        self.silent: list[Any] = []
        self._subscribers = itertools.count(1)
        self._is_over = False
        super().__init__(*arguments)

    # The mesh
    def topology(self) -> dict[str, Any]:
        count = self.random.randint(1, 6)
        names = [f"r{number}" for number in range(1, count + 1)]
        routers: dict[str, Any] = {name: {"connect": []} for name in names}
        for number, name in enumerate(names[1:], 1):
            self._connect(routers, name, self.random.choice(names[:number]))
        for one, other in itertools.combinations(names, 2):
            if self.random.random() < 0.2 and not self._are_connected(routers, one, other):
                self._connect(routers, one, other)
        if count > 1 and self.random.random() < 0.4:
            uplinks = self.random.sample(names, min(2, count))
            routers["e1"] = {"mode": "edge", "connect": uplinks}
        brokers = {f"b{number}": self._broker(number, names) for number in (1, 2)}
        return {"mesh": "broad", "node_tls": False, "routers": routers, "brokers": brokers, **self._addresses()}

    def _connect(self, routers: dict[str, Any], one: str, other: str) -> None:
        routers[one]["connect"].append({"to": other, "cost": self.random.randint(1, 4)})

    @staticmethod
    def _are_connected(routers: dict[str, Any], one: str, other: str) -> bool:
        pairs = {(name, edge["to"]) for name in (one, other) for edge in routers[name]["connect"]}
        return (one, other) in pairs or (other, one) in pairs

    def _broker(self, number: int, routers: list[str]) -> dict[str, Any]:
        at = self.random.sample(routers, self.random.randint(1, min(2, len(routers))))
        return {"data": f"b{number}", "routers": at}

    def _addresses(self) -> dict[str, Any]:
        at_b1 = {"type": "queue", "broker": "b1"}
        addresses: dict[str, Any] = {
            "rpc": {"type": "anycast", "retransmit": self.random.random() < 0.3},
            "near": {"type": "anycast", "distribution": "closest"},
            "prices": {"type": "multicast"},
            "orders": dict(at_b1),
            "sharded": {"type": "queue", "brokers": ["b1", "b2"]},
            "news": {"type": "topic", "broker": "b2"},
            "tried": {**at_b1, "dead_letter": "graveyard", "max_delivery_attempts": 2},
            "graveyard": dict(at_b1),
            "mortal": {**at_b1, "expiry": "late"},
            "late": dict(at_b1),
            "bounded": {**at_b1, "max_messages": 10},
            "refusing": {**at_b1, "max_messages": 10, "when_full": "reject"},
        }
        for name in self.random.sample(sorted(addresses), 4):
            addresses[name]["priority"] = self.random.randint(0, 9)
        rights = {"send": ["#"], "receive": ["#"]}
        return {"addresses": addresses, "users": {"anonymous": rights, "narrow": {"send": ["rpc"], "receive": ["rpc"]}}}

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            *super().acts(),
            (3, self.slow_trunk),
            (2, self.silence_trunk),
            (1, self.stop_router),
            (1, self.stop_broker),
            (3, self.subscribe),
            (3, self.resubscribe),
            (2, self.leave_subscription),
            (1, self.try_without_right),
        ]

    # Faults
    def slow_trunk(self) -> None:
        if self.mesh.trunks:
            self.mesh.trunks[self._trunk()].delay_s = self.random.choice(DELAYS_S)

    def silence_trunk(self) -> None:
        if self.mesh.trunks:
            pipe = self.mesh.trunks[self._trunk()]
            self.mesh.cut(pipe, silently=True)
            self.silent.append(pipe)

    def _trunk(self) -> frozenset[str]:
        return frozenset(self.random.choice(sorted(map(sorted, self.mesh.trunks))))

    def kill_router(self) -> None:
        if len(self.mesh.routers) > 1:
            self._lose(self.random.choice(sorted(self.mesh.routers)))

    def _lose(self, name: str) -> None:
        self.mesh.trunks = {pair: pipe for pair, pipe in self.mesh.trunks.items() if name not in pair}
        self.mesh.kill(name)

    def stop_router(self) -> None:
        """In order: peers are told, clients first, and have a moment to say what they have to."""
        if len(self.mesh.routers) > 1:
            name = self.random.choice(sorted(self.mesh.routers))
            self._close(self.mesh.routers[name])
            self._lose(name)

    def stop_broker(self) -> None:
        if self.mesh.brokers:
            name = self.random.choice(sorted(self.mesh.brokers))
            self._close(self.mesh.brokers[name])
            self.mesh.kill_broker(name)

    def _close(self, node: Any) -> None:
        for are_clients in (True, False):
            for pipe in self.mesh.pipes_of(node):
                if any(isinstance(end, SimClient) for end, _ in pipe.ends) is are_clients:
                    next(endpoint for end, endpoint in pipe.ends if end is node).close(FORCED)
            self.mesh.run(0.01)

    def heal(self) -> None:
        mesh = self.mesh
        for pipe in self.silent:
            mesh.cut(pipe)
        self.silent.clear()
        # A trunk that a router dropped for its silence is gone without having been cut here.
        mesh.trunks = {pair: pipe for pair, pipe in mesh.trunks.items() if pipe in mesh.pipes}
        super().heal()

    # Clients
    def add_receiver(self) -> None:
        super().add_receiver()
        address, client, _ = self.receivers[-1]
        if address in FAMILIES and self.random.random() < 0.5:
            heir = FAMILIES[address]
            self.receivers.append((heir, client, client.receiver(heir, 10)))

    def message(self, address: str, padding: int) -> bytes:
        body = super().message(address, padding)
        if address != "mortal" or self._is_over or self.random.random() < 0.5:
            return body
        return _header(self.random.choice((50, 500, 5_000))) + body

    def try_without_right(self) -> None:
        """A user who may use one address asks for another, and is refused."""
        address = self.random.choice([each for each in self.ADDRESSES if each != "rpc"])
        router = self.random.choice(sorted(self.mesh.routers))
        self._count += 1
        client = self.mesh.client(router, f"narrow{self._count}", user="narrow")
        asked: SimReceiver | SimSender = (
            client.receiver(address) if self.random.random() < 0.5 else client.sender(address)
        )
        self.mesh.run(0.05)
        if not client.closed:
            assert asked.error is not None, f"a user without a right was attached to {address}"
            assert asked.error.condition == "amqp:unauthorized-access", asked.error

    # Durable subscriptions
    def subscribe(self) -> None:
        if len(self.subscriptions) < 4:
            is_shared = self.random.random() < 0.4
            found = Subscription(f"subscriber{next(self._subscribers)}", is_shared)
            self.subscriptions.append(found)
            self._attach(found)

    def resubscribe(self) -> None:
        if self.subscriptions:
            found = self.random.choice(self.subscriptions)
            if found.is_shared or not found.is_attached:
                self._attach(found)

    def leave_subscription(self) -> None:
        """By a detach, the end of the session or connection, or the loss of it: the subscription stays."""
        ends = [end for each in self.subscriptions for end in each.ends if not end[0].closed and end[1].link.is_open]
        if not ends:
            return
        client, receiver = self.random.choice(ends)
        match self.random.randrange(4):
            case 0:
                receiver.link.detach()
                self.mesh.flush()
            case 1:
                receiver.link.session.end()
                client.closed = "it ended its session"
                self.mesh.flush()
            case 2:
                client.endpoint.close()
                client.closed = "it closed"
                self.mesh.flush()
            case _:
                self.mesh.cut(client.pipe)

    def open_links(self) -> list[Link]:
        """A close of its link would end a subscription."""
        kept = {receiver.link for found in self.subscriptions for _, receiver in found.ends}
        return [link for link in super().open_links() if link not in kept]

    def _attach(self, found: Subscription) -> None:
        router = self.random.choice(sorted(self.mesh.routers))
        client = self.mesh.client(router, found.container_id)
        number = len(found.ends)
        terminus: dict[str, Any] = {"durability": Durability.CONFIGURATION, "expiry": Expiry.NEVER}
        name = "kept"
        if found.is_shared:
            terminus["capabilities"] = ("shared",)
            name = f"kept|{number}"
        receiver = client.receiver("news", 100, name=name, **terminus)
        found.ends.append((client, receiver))
        self.receivers.append(("news", client, receiver))
        self.mesh.run(0.3)
        if found.since == 0 and receiver.link.is_open:
            found.since = self._count

    def sharers(self, receiver: SimReceiver) -> int:
        """Of a shared subscription there may be several: an attach that takes long is tried again at another router."""
        for found in self.subscriptions:
            if found.is_shared and any(end is receiver for _, end in found.ends):
                return id(found)
        return super().sharers(receiver)

    # The end
    def finish(self) -> Any:
        self._is_over = True
        self.heal()
        self.mesh.converge(self.CONVERGED_S)
        for found in self.subscriptions:
            if not found.is_attached:
                self._attach(found)
        for heir in FAMILIES.values():
            client = self.mesh.client("r1", f"last-{heir}")
            self.receivers.append((heir, client, client.receiver(heir, 1000)))
        ledger = super().finish()
        for found in self.subscriptions:
            missing = self._missing(found, ledger.accepted["news"])
            assert not missing, f"{len(missing)} messages for {found.container_id} are lost: {sorted(missing)[:5]}"
        return ledger

    def leave(self) -> None:
        super().leave()
        # Over slow trunks the ends of links take their time.
        self.mesh.run(10)

    @staticmethod
    def _missing(found: Subscription, accepted: set[int]) -> set[int]:
        """What was accepted after the subscription was there, and came to none of its consumers."""
        if found.since == 0:
            return set()
        seen = {number_in(message) for _, receiver in found.ends for message in receiver.messages}
        return {number for number in accepted if number > found.since} - seen


def _header(ttl_ms: int) -> bytes:
    """A header section with a time to live. [3.2.1]"""
    return b"\x00\x53\x70\xc0\x08\x03\x41\x40\x70" + ttl_ms.to_bytes(4, "big")
