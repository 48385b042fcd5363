"""Random lives of nodes told to a `HostModel`, and a plain model of what is to come of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from mesh.watch.counts import OUTCOME_FIELDS, DeliverySums
from mesh.watch.host_model import ANONYMOUS, HostModel, NodeRecords
from mesh.watch.slots import Alike, RingRecords
from recording.ring_format import KINDS, OUTCOMES

NODES = ("r1", "r2", "b1")
ADDRESSES = ("rpc.1", "rpc.2", "news", "_amqpmesh/probe", None)
USERS = ("alice", "bob", None)
MESSAGES = {code: event.value for code, (_, event) in KINDS.items() if event is not None}
WHOLE, MANY, COPY = 0, 1, 2


def pattern_of(address: str) -> tuple[str, str] | None:
    return ("rpc.#", "anycast") if address.startswith("rpc.") else None


@dataclass(eq=False)
class PlainLink:
    number: int
    connection: int
    role: str
    address: str | None
    user: str | None
    is_waiting: bool = False


class Life:
    """Each step is a batch of records of one node, as one look at its ring brings them.

    ``sums``: by (kind of entity, name, direction, field). Deliveries of addresses are kept apart in ``of_address``,
    since an address that is not used any more is forgotten.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.host = HostModel(pattern_of, [("rpc.#", "anycast")])
        self.now_s = 1000.0
        self.host.on_time(self.now_s)
        self.sums: Counter[tuple[str, str, str, str]] = Counter()
        self.starved_us = 0
        self.numbers = 0
        self.records: dict[str, NodeRecords] = {}
        self.connections: dict[str, dict[int, tuple[str, str | None]]] = {}
        self.links: dict[str, dict[int, PlainLink]] = {}
        self.gone: dict[str, list[PlainLink]] = {}
        """Links that ended in the last second, whose sums may still come."""
        self.depths: dict[str, dict[int, tuple[str, int]]] = {}
        for name in NODES:
            self.begin(name)

    def begin(self, name: str) -> None:
        if name in self.records:
            self.records[name].end("lost")
        self.records[name] = NodeRecords(self.host, self.host.node(name), self.now_s)
        self.connections[name], self.links[name], self.gone[name], self.depths[name] = {}, {}, [], {}

    def step(self) -> None:
        name = self.random.choice(NODES)
        if self.random.random() < 0.03:
            self.begin(name)
        rows: list[dict[str, Any]] = []
        ended: list[PlainLink] = []
        for _ in range(self.random.randrange(6)):
            row = self.random.choice((self.open_connection, self.open_link, self.open_link, self.wait, self.queue))(
                name
            )
            if row is not None:
                rows.append(row)
        if self.random.random() < 0.3:
            rows += self.close(name, ended)
        deliveries: dict[Alike, DeliverySums] = {}
        for _ in range(self.random.randrange(6)):
            self.deliver(name, ended, deliveries)
        messages = self.messages(name)
        self.gone[name] = ended
        rows_at = [(int(self.now_s * 1e6), row) for row in rows]
        self.records[name].add(RingRecords(rows=rows_at, deliveries=deliveries, messages=messages))
        self.records[name].on_time()
        self.tick(self.random.choice((0.0, 1.0)))

    def tick(self, seconds: float) -> None:
        self.now_s += seconds
        self.host.on_time(self.now_s)

    def finish(self) -> None:
        """End whatever there is, in order, and let the last sums come."""
        for name in NODES:
            rows: list[dict[str, Any]] = []
            for number in list(self.connections[name]):
                rows += self.close_connection(name, number, [])
            rows += [{"kind": "queue", "event": "closed", "queue": number} for number in self.depths[name]]
            self.depths[name] = {}
            self.records[name].add(RingRecords(rows=[(0, row) for row in rows]))
        self.tick(6.0)
        for records in self.records.values():
            records.on_time()

    # Rows
    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def open_connection(self, name: str) -> dict[str, Any]:
        role, user, number = (
            self.random.choice(("client", "client", "router")),
            self.random.choice(USERS),
            self.number(),
        )
        self.connections[name][number] = role, user
        event = self.random.choice(("opened", "live"))
        row = {"kind": "connection", "event": event, "connection": number, "role": role, "user": user}
        return {key: value for key, value in row.items() if value is not None}

    def open_link(self, name: str) -> dict[str, Any] | None:
        if not self.connections[name]:
            return None
        connection = self.random.choice(list(self.connections[name]))
        role, user = self.connections[name][connection]
        link_role = self.random.choice(("producer", "consumer")) if role == "client" else "circuit"
        link = PlainLink(self.number(), connection, link_role, self.random.choice(ADDRESSES), user)
        self.links[name][link.number] = link
        row = {"kind": "link", "event": "opened", "link": link.number, "connection": connection, "role": link_role,
               "address": link.address}  # fmt: skip
        return {key: value for key, value in row.items() if value is not None}

    def wait(self, name: str) -> dict[str, Any] | None:
        if not self.links[name]:
            return None
        link = self.random.choice(list(self.links[name].values()))
        starved_us = self.random.choice((0, 1500))
        if link.role == "producer" and link.address is not None and link.address.startswith("rpc."):
            self.starved_us += starved_us
        row = {"kind": "credit", "event": "changed", "link": link.number, "starved_us": starved_us}
        link.is_waiting = self.random.random() < 0.5
        return {**row, "credit": 0, "cause": "no_taker"} if link.is_waiting else {**row, "credit": 3}

    def queue(self, name: str) -> dict[str, Any]:
        queues = self.depths[name]
        if queues and self.random.random() < 0.7:
            number = self.random.choice(list(queues))
            if self.random.random() < 0.3:
                del queues[number]
                return {"kind": "queue", "event": "closed", "queue": number}
            queues[number] = queues[number][0], self.random.randrange(100)
            return {"kind": "queue", "event": "changed", "queue": number, "depth_count": queues[number][1]}
        number, address = self.number(), self.random.choice(("rpc.1", "news"))
        queues[number] = address, 0
        return {"kind": "queue", "event": "opened", "queue": number, "address": address}

    def close(self, name: str, ended: list[PlainLink]) -> list[dict[str, Any]]:
        if self.links[name] and self.random.random() < 0.6:
            link = self.links[name].pop(self.random.choice(list(self.links[name])))
            ended.append(link)
            return [{"kind": "link", "event": "closed", "link": link.number, "connection": link.connection}]
        if self.connections[name]:
            return self.close_connection(name, self.random.choice(list(self.connections[name])), ended)
        return []

    def close_connection(self, name: str, number: int, ended: list[PlainLink]) -> list[dict[str, Any]]:
        del self.connections[name][number]
        links = [link for link in self.links[name].values() if link.connection == number]
        for link in links:
            ended.append(self.links[name].pop(link.number))
        rows = [{"kind": "link", "event": "closed", "link": link.number} for link in links]
        # A connection's end ends its links, too, should their own rows be missing.
        rows = self.random.sample(rows, self.random.randrange(len(rows) + 1))
        return [*rows, {"kind": "connection", "event": "closed", "connection": number}]

    # Deliveries
    def deliver(self, name: str, ended: list[PlainLink], deliveries: dict[Alike, DeliverySums]) -> None:
        links = [*self.links[name].values(), *ended, *self.gone[name]]
        incoming = self.random.choice([None, *(link for link in links if link.role != "consumer")])
        outgoing = self.random.choice([None, *(link for link in links if link.role != "producer")])
        outcome, part = self.random.choice(list(OUTCOMES)), self.random.choice((WHOLE, MANY, COPY))
        alike = Alike(incoming.number if incoming else 0, outgoing.number if outgoing else 0, outcome, part)
        sums = deliveries.setdefault(alike, DeliverySums())
        count, size, is_late = self.random.randrange(1, 9), self.random.randrange(1000), self.random.random() < 0.2
        sums.count += count
        sums.size_bytes += size
        sums.delayed += count * is_late
        sums.last_us = int(self.now_s * 1e6)
        fields = {"deliveries": count, OUTCOME_FIELDS[outcome]: count, "bytes": size, "delayed_1s": count * is_late}

        def count_at(kind: str, name: str, direction: str) -> None:
            for field, value in fields.items():
                self.sums[kind, name, direction, field] += value

        if incoming is outgoing is None:
            count_at("node", name, "in")
            count_at("node", name, "ingress")
        if part != COPY and incoming is not None:
            count_at("node", name, "in")
            if incoming.role == "producer":
                count_at("node", name, "ingress")
                count_at("user", incoming.user or ANONYMOUS, "in")
                address = incoming.address
                if address is None and outgoing is not None:
                    address = outgoing.address
                if address is not None and address.startswith("rpc."):
                    count_at("pattern", "rpc.#", "in")
        if part != MANY and outgoing is not None:
            count_at("node", name, "out")
            if outgoing.role == "consumer":
                count_at("node", name, "egress")
                count_at("user", outgoing.user or ANONYMOUS, "out")
                if outgoing.address is not None and outgoing.address.startswith("rpc."):
                    count_at("pattern", "rpc.#", "out")

    def messages(self, name: str) -> dict[tuple[int, int], int]:
        queues = list(self.depths[name])
        kinds = list(MESSAGES)
        return {(self.random.choice(kinds), each): self.random.randrange(1, 5) for each in queues[:2]}
