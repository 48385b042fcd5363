"""Scenarios as text: what somebody does to a mesh, and what comes of it, read as prose.

A scenario is a file of blocks. Each has commands, a line ``----``, and what they print; lines with # are comments, a
blank line ends a block. The first command names a mesh of `scenario_meshes.py`. Times are virtual, from the moment at
which the mesh had converged; names of clients are free.

  topology NAME                       the mesh; prints its connections
  receive NAME at ROUTER ADDRESS      a consumer, with credit=N (100), holds (accepts nothing), subscribes (durable)
  send NAME at ROUTER ADDRESS [N]     a producer sends N messages as it gets credit; prints their outcomes within 5 s
  offer NAME at ROUTER ADDRESS N      the same, without waiting for outcomes
  outcomes NAME                       prints what its messages became
  got NAME                            prints how many messages it saw since it was asked last, and in which order
  settle NAME OUTCOME                 answers what it holds
  lose NAME                           a client's connection breaks
  cut A B | silence A B | mend A B    a connection between routers
  kill NODE | start NODE              a router or a broker; a router comes with its connections
  cost A B COST                       at both ends
  advance SECONDS                     prints what the nodes logged meanwhile
  path A B                            the way that A would take
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.scenario_meshes import MESHES
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, Outcome, rejected
from wire.log import LogEvent
from wire.message import Message, decode, encode
from wire.terminus import Durability, Expiry

OUTCOMES = {
    "accepted": ACCEPTED,
    "released": RELEASED,
    "modified": MODIFIED_FAILED,
    "rejected": rejected("amqp:not-allowed", "no"),
}
RULE = "----"


def blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(commands with the comments before them, expected output) of each block."""
    for block in text.strip().split("\n\n"):
        commands, rule, expected = block.partition(f"\n{RULE}")
        assert rule, f"a block without {RULE}:\n{block}"
        yield commands.splitlines(), expected.strip("\n").splitlines()


def play(text: str, folder: Path) -> str:
    """The scenario with what really came of it."""
    scenario = Scenario(folder)
    played = []
    for commands, _ in blocks(text):
        output = [line for command in commands if not command.startswith("#") for line in scenario.do(command)]
        played.append("\n".join([*commands, RULE, *output]))
    return "\n\n".join(played) + "\n"


class Scenario:
    mesh: SimMesh

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = 0.0
        self._logged = 0
        self._clients: dict[str, SimClient] = {}
        self._receivers: dict[str, SimReceiver] = {}
        self._senders: dict[str, SimSender] = {}
        self._seen: Counter[str] = Counter()
        self._told: dict[SimSender, set[int]] = {}

    def do(self, command: str) -> list[str]:
        word, *arguments = shlex.split(command)
        act: Callable[..., list[str] | None] = getattr(self, f"do_{word}")
        return act(*arguments) or []

    # The mesh
    def do_topology(self, name: str) -> list[str]:
        self.mesh = SimMesh({"mesh": name.replace("_", "-"), "node_tls": False, **MESHES[name]}, self._folder)
        self.mesh.converge()
        self.mesh.run(0.1)
        self._began, self._logged = self.mesh.now, len(self.mesh.log)
        edges = [f"{edge.dialer} - {edge.to} cost={edge.cost}" for edge in self.mesh.topology.edges()]
        brokers = [
            f"{at} - {name}" for name in self.mesh.topology.brokers for at in self.mesh.topology.routers_of(name)
        ]
        return [", ".join((*edges, *brokers))]

    def do_advance(self, duration: str) -> list[str]:
        self.mesh.run(float(duration.removesuffix("s")))
        events = [each for each in self.mesh.log[self._logged :] if isinstance(each[2], LogEvent)]
        self._logged = len(self.mesh.log)
        return [f"{at - self._began:.2f} s  {node} {told(event)}" for at, node, event in events]

    def do_cut(self, one: str, other: str) -> None:
        self.mesh.cut_trunk(one, other)

    def do_silence(self, one: str, other: str) -> None:
        self.mesh.cut(self.mesh.trunks[frozenset({one, other})], silently=True)

    def do_mend(self, one: str, other: str) -> None:
        edges = [edge for edge in self.mesh.topology.edges() if {edge.dialer, edge.to} == {one, other}]
        self.mesh.link(edges[0].dialer, edges[0].to)

    def do_cost(self, one: str, other: str, cost: str) -> None:
        for router, neighbor in ((one, other), (other, one)):
            self.mesh.routers[router].set_cost(neighbor, int(cost), self.mesh.now)

    def do_kill(self, name: str) -> None:
        mesh = self.mesh
        if name in mesh.brokers:
            mesh.kill_broker(name)
            return
        mesh.trunks = {pair: pipe for pair, pipe in mesh.trunks.items() if name not in pair}
        heard = len(mesh.log)
        mesh.kill(name)
        # What the dead one says of it is heard by nobody.
        mesh.log[heard:] = [each for each in mesh.log[heard:] if each[1] != name]

    def do_start(self, name: str) -> None:
        mesh = self.mesh
        if name in mesh.topology.brokers:
            mesh.start_broker(name)
            return
        mesh.start(name)
        for edge in mesh.topology.edges():
            if name in (edge.dialer, edge.to) and {edge.dialer, edge.to} <= mesh.routers.keys():
                mesh.link(edge.dialer, edge.to)

    def do_path(self, one: str, other: str) -> list[str]:
        views = {view.router: view for view in self.mesh.routers[one].snapshot().routers}
        view = views.get(other)
        if view is None or view.path is None:
            return ["no path"]
        return [f"{' '.join(view.path)} cost={view.cost}"]

    # Clients
    def _client(self, name: str, router: str) -> SimClient:
        known = self._clients.get(name)
        if known is None or known.closed:
            known = self._clients[name] = self.mesh.client(router, name)
        return known

    def do_receive(self, name: str, _: str, router: str, address: str, *options: str) -> list[str]:
        credit = next((int(option[7:]) for option in options if option.startswith("credit=")), 100)
        lasting: dict[str, Any] = {}
        if "subscribes" in options:
            lasting = {"durability": Durability.UNSETTLED_STATE, "expiry": Expiry.NEVER, "name": "subscription"}
        receiver = self._client(name, router).receiver(address, credit, **lasting)
        receiver.accepts = "holds" not in options
        self._receivers[name] = receiver
        self._seen.pop(name, None)
        self.mesh.run(0.1)
        return [f"{name}: refused {receiver.error.condition}"] if receiver.error else []

    def do_send(self, name: str, at: str, router: str, address: str, count: str = "1") -> list[str]:
        unsent = self.do_offer(name, at, router, address, count)
        sender = self._senders[name]
        self._wait(lambda: sender.count == len(sender.outcomes) or sender.error is not None)
        return unsent or self.do_outcomes(name)

    def do_offer(self, name: str, at: str, router: str, address: str, count: str) -> list[str]:
        sender, unsent = self._offer(name, router, address, int(count))
        self.mesh.run(0.05)
        if sender.error is not None:
            return [f"{name}: refused {sender.error.condition}"]
        return [f"{name}: no credit for {unsent} of {count}"] if unsent else []

    def _offer(self, name: str, router: str, address: str, count: int) -> tuple[SimSender, int]:
        """With the number of those that it could not send."""
        client = self._client(name, router)
        sender = self._senders.get(name)
        if sender is None or sender.link.is_gone or sender.link.endpoint is not client.endpoint:
            sender = self._senders[name] = client.sender(address)
        for unsent in range(count, 0, -1):
            self._wait(lambda: sender.link.credit > 0 or sender.error is not None)
            if sender.error is not None or sender.link.credit <= 0:
                return sender, unsent
            sender.send(encode(Message(sender.count + 1)))
        return sender, 0

    def _wait(self, condition: Callable[[], bool]) -> None:
        end = self.mesh.now + 5
        while not condition() and self.mesh.now < end:
            self.mesh.run(0.01)

    def do_outcomes(self, name: str) -> list[str]:
        sender = self._senders[name]
        if sender.error is not None:
            return [f"{name}: refused {sender.error.condition}"]
        known = self._told.setdefault(sender, set())
        news = {number: outcome for number, outcome in sender.outcomes.items() if number not in known}
        known.update(news)
        counts = Counter(describe(outcome) for outcome in news.values())
        if waiting := sender.count - len(sender.outcomes):
            counts["without an outcome"] = waiting
        told = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        return [f"{name}: {told or 'nothing new'}"]

    def do_got(self, name: str) -> list[str]:
        self.mesh.run(0.1)
        messages = [decode(message) for message in self._receivers[name].messages[self._seen[name] :]]
        self._seen[name] += len(messages)
        if not messages:
            return [f"{name} got nothing"]
        numbers = [message.body for message in messages]
        again = sum(message.delivery_count > 0 for message in messages)
        order = "in order" if numbers == sorted(set(numbers)) else f"as {numbers}"
        redelivered = f", {again} of them again" if again else ""
        which = f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}, {order}"
        return [f"{name} got {len(messages)}: {which}{redelivered}"]

    def do_settle(self, name: str, outcome: str) -> None:
        receiver = self._receivers[name]
        count = len(receiver.held)
        receiver.settle(OUTCOMES[outcome])
        receiver.link.grant(count)
        self.mesh.run(0.1)

    def do_lose(self, name: str) -> None:
        self.mesh.cut(self._clients[name].pipe)
        self._clients[name].closed = "lost"


def describe(outcome: Outcome) -> str:
    failed = " failed" if outcome.delivery_failed else ""
    condition = f" {outcome.error.condition}" if outcome.error else ""
    return f"{outcome.kind.name.lower()}{failed}{condition}"


def told(event: LogEvent) -> str:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    shown = (f"{name}={_plain(value)}" for name, value in values.items() if value not in ("", None, []))
    return " ".join((event.event_name, *shown))


def _plain(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f'"{text}"' if " " in text else text
