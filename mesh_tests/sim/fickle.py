"""A random life with fickle consumers: they take credit back, drain and think again, settle in batches. Seeded.

Built on the walk in which things vanish, but credit is scarce: a consumer grants anew only for what it settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mesh.simulation.clients import SimClient, SimReceiver
from mesh_tests.sim.aftermath import TO_ALL
from mesh_tests.sim.vanishing import VanishingWalk
from mesh_tests.sim.walk import Ledger
from wire.errors import ConnectionFault

BATCHES = (1, 1, 3, 10, 1_000_000)
"""How many a consumer holds before it settles them; some hold all until the end."""


class FickleWalk(VanishingWalk):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.batches: dict[SimReceiver, int] = {}
        self.blocked: set[SimClient] = set()
        """To whom a router could not write for a while."""

    def acts(self) -> list[tuple[int, Callable[[], None]]]:
        return [
            *super().acts(),
            (8, self.lower_credit),
            (4, self.raise_credit),
            (4, self.drain),
            (4, self.end_drain),
        ]

    def client(self) -> SimClient:
        client = super().client()
        # A flow sent before the begin is answered makes the router's engine forget what it has sent already.
        client.begin()
        self.mesh.run(3 * self.mesh.delay_s)
        return client

    def add_receiver(self) -> None:
        known = len(self.receivers)
        super().add_receiver()
        for _, _, receiver in self.receivers[known:]:
            batch = self.batches[receiver] = self.random.choice(BATCHES)
            receiver.accepts = receiver.accepts and batch == 1
            receiver.tops_up = self.random.random() < 0.5

    def lower_credit(self) -> None:
        """Messages that are under way may cross it."""
        if receivers := [each for each in self._open_receivers() if each.link.credit > 0]:
            link = self.random.choice(receivers).link
            link.set_credit(self.random.choice((0, 0, 1, link.credit // 2)))

    def raise_credit(self) -> None:
        if receivers := self._open_receivers():
            self.random.choice(receivers).link.grant(self.random.choice((1, 5)))

    def block_output(self) -> None:
        super().block_output()
        for _, client, _ in self.receivers:
            if client.pipe is not None and any(each.is_output_blocked for _, each in client.pipe.ends):
                self.blocked.add(client)

    def end_drain(self) -> None:
        """It waits no more for what it asked for."""
        if receivers := [each for each in self._open_receivers() if each.link.is_drain_pending]:
            self.random.choice(receivers).link.grant(1)

    def settle(self) -> None:
        for _, client, receiver in self.receivers:
            if client.closed or not receiver.link.is_open or len(receiver.held) < self.batches[receiver]:
                continue
            count = len(receiver.held)
            self._answer(client, receiver)
            if not receiver.link.is_drain_pending:
                receiver.link.grant(count)

    def finish(self) -> Ledger:
        """Who has taken all credit back may leave it at that: what is there is for others, but for copies.

        Not those whose router could not write for a while: what it wrote then is theirs.
        """
        for address, client, receiver in self.receivers:
            may_rest = address not in TO_ALL and receiver.link.credit <= 0 and client not in self.blocked
            if may_rest and self.random.random() < 0.7:
                receiver.tops_up = False
                self.resting.add(receiver)
        ledger = super().finish()
        assert not (wronged := self.wronged()), wronged
        return ledger

    def wronged(self) -> list[ConnectionFault]:
        """What clients found wrong with what their routers said."""
        clients = dict.fromkeys(client for _, client, _ in (*self.senders, *self.receivers))
        return [client.closed for client in clients if isinstance(client.closed, ConnectionFault)]
