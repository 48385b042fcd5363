"""Random lives of filter sets of multicasts, by seed: meshes of 3 to 7 routers, with edge routers and random delays.

A client that saw a change accepted may have a producer anywhere send at the same moment: what matches the set at all
times between its sending and its outcome comes exactly once, what never matches does not come. While connections
between routers are lost, messages may be missed; afterwards the sets work, and a client that lost its connection
attaches with its whole set.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from proton import Message

from addressing.filter_kinds import FilterKind
from mesh.simulation.clients import SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.seeds import seeds
from mesh_tests.sim.test_filter_set_lives import LEVELS, ON_THE_WAY_S, SOURCES, Life, Sent, Subscriber

DELAYS_S = (0.0005, 0.001, 0.004, 0.02)
MOST_PUBLISHERS = 10


def _model_of(source: random.Random) -> dict[str, Any]:
    """A ring or line of 3 to 7 interior routers with some chords, and two edge routers."""
    names = [f"r{number}" for number in range(1, source.randint(3, 7) + 1)]
    pairs = set(pairwise(names))
    pairs |= {tuple(sorted(source.sample(names, 2))) for _ in range(source.randint(0, 3))}  # type: ignore[misc]
    routers: dict[str, Any] = {
        name: {"connect": [other for one, other in sorted(pairs) if one == name]} for name in names
    }
    for edge in ("e1", "e2"):
        routers[edge] = {"mode": "edge", "connect": source.sample(names, 2)}
    return {"mesh": "m", "node_tls": False, "routers": routers, "addresses": {"t/#": "multicast"}}


class MulticastLife(Life):
    """As a life of sets at a broker, with producers that come and go at all routers, some of one address each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.mesh = SimMesh(_model_of(self.random))
        for pipe in self.mesh.pipes:
            pipe.delay_s = self.random.choice(DELAYS_S)
        self.mesh.converge()
        self.mesh.run(0.5)
        self.publishers: list[SimSender] = []
        self.targets: list[str | None] = []
        self.places: list[str] = []
        self.working: list[int] = []
        """The numbers of the publishers whose routers live."""
        self.open: dict[tuple[int, int], str] = {}
        self.sent: dict[str, Sent] = {}
        self.subscribers = [
            Subscriber(self.router(), self.random.choice(list(FilterKind)), source)
            for source in (*["t/#"] * 4, *SOURCES[1:])
        ]
        for each in self.subscribers:
            self.attach(each)

    def router(self) -> str:
        return self.random.choice(sorted(self.mesh.routers))

    def address(self) -> str:
        return "/".join(["t", *self.random.choices(LEVELS, k=self.random.randint(1, 3))])

    def publish(self) -> None:
        """Have a producer send: often a new one, whose router had no producer of the address yet."""
        if len(self.working) < MOST_PUBLISHERS or self.random.random() < 0.05:
            target, router = self.random.choice((None, None, self.address())), self.router()
            self.publishers.append(self.mesh.client(router).sender(target))
            self.targets.append(target)
            self.places.append(router)
            self.working.append(len(self.places) - 1)
        place = self.random.choice(self.working[-MOST_PUBLISHERS:])
        sender = self.publishers[place]
        if not sender.link.is_open or sender.link.credit <= 0:
            return
        address = self.targets[place] or self.address()
        body = f"{address} {len(self.sent)} from {self.places[place]}"
        number = sender.send(bytes(Message(address=address, body=body).encode()))
        self.open[place, number] = body
        self.sent[body] = Sent(address, {each: each.settled_count for each in self.subscribers})

    def lose(self) -> None:
        """Lose a connection between routers, a client or a receiver; those that lost theirs attach anew."""
        each = self.random.choice(self.subscribers)
        way = self.random.choice(("trunk", "router", "client", "receiver"))
        for subscriber in self.subscribers:
            lost = subscriber.begin_state(None)
            for sent in self.sent.values():
                if sent.last_state and sent.answered_at > self.mesh.now - ON_THE_WAY_S:
                    sent.last_state[subscriber] = lost
        if way == "trunk":
            one, other = sorted(self.random.choice(sorted(map(sorted, self.mesh.trunks))))
            self.mesh.cut_trunk(one, other)
            self.mesh.run(0.3)
            self.mesh.link(one, other)
        elif way == "router":
            self.restart(self.router())
        elif way == "client" and each.client is not None:
            self.mesh.cut(each.client.pipe)
            self.keep(each)
            each.client = None
        elif way == "receiver" and each.receiver is not None and each.is_whole:
            each.receiver.link.close()
        self.mesh.run(3)
        self.mesh.converge()
        self.mesh.run(1)
        for subscriber in self.subscribers:
            if subscriber.client is None or not subscriber.is_whole:
                self.keep(subscriber)
                self.attach(subscriber)
            else:
                present = [state for state in subscriber.states if state is not None][-1]
                subscriber.settled_count = subscriber.begin_state(present)
                subscriber.pending = {}
        self.look()

    def restart(self, router: str) -> None:
        for subscriber in self.subscribers:
            if subscriber.router == router:
                self.keep(subscriber)
                subscriber.client = None
        self.working = [place for place in self.working if self.places[place] != router]
        gone = {place for place, name in enumerate(self.places) if name == router}
        self.open = {key: body for key, body in self.open.items() if key[0] not in gone}
        for body, sent in self.sent.items():
            if not sent.last_state and body not in self.open.values():
                sent.last_state = {each: len(each.states) - 1 for each in self.subscribers}
        edges = self.mesh.edges_of(router)
        self.mesh.kill(router)
        for edge in edges:
            self.mesh.trunks.pop(frozenset({edge.dialer, edge.to}), None)
        self.mesh.run(self.random.choice([0.01, 0.5]))
        self.mesh.start(router)
        for edge in edges:
            self.mesh.link(edge.dialer, edge.to)


@pytest.mark.parametrize("seed", seeds(8))
def test_each_message_that_matches_the_set_in_effect_comes_exactly_once(seed: int) -> None:
    life = MulticastLife(seed)
    for _ in range(400):
        life.step(with_losses=False)
    life.come_to_rest()
    assert all(each.is_whole for each in life.subscribers)
    assert life.check() > 10


@pytest.mark.parametrize("seed", seeds(4))
def test_sets_work_again_after_losses_and_nothing_comes_twice_or_without_a_match(seed: int) -> None:
    life = MulticastLife(seed)
    for _ in range(150):
        life.step(with_losses=True)
    for _ in range(100):
        life.step(with_losses=False)
    life.come_to_rest()
    assert all(each.is_whole for each in life.subscribers)
    assert life.check() > 10
