"""Clients with a pace: consumers that take so many deliveries a second, producers that always have more to send."""

from __future__ import annotations

from typing import Any

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from mesh.simulation.sim_mesh import SimMesh
from wire.delivery import ACCEPTED


class PacedConsumer:
    """Works on one delivery after the other, each for 1 / ``rate_per_s``, then accepts it and grants one more."""

    def __init__(self, mesh: SimMesh, router: str, address: str, rate_per_s: float, credit: int) -> None:
        self.rate_per_s = rate_per_s
        self._mesh = mesh
        self._receiver = _holding(mesh.client(router), address, credit)
        self.count = 0
        self._work()

    def _work(self) -> None:
        if self._receiver.held:
            self._receiver.answer(*self._receiver.held.pop(0), ACCEPTED)
            self._receiver.link.grant(1)
            self.count += 1
        self._mesh.at(self._mesh.now + 1 / self.rate_per_s, self._work)


def _holding(client: SimClient, address: str, credit: int) -> SimReceiver:
    receiver = client.receiver(address, credit)
    receiver.accepts = False
    return receiver


class Busy(SimClient):
    """A client whose senders use all credit as soon as they have it."""

    def on_flow(self, link: Any) -> None:
        if isinstance(link.owner, SimSender):
            while link.credit > 0:
                link.owner.send(b"x")


def busy_sender(mesh: SimMesh, router: str, address: str) -> SimSender:
    return mesh.client(router, kind=Busy).sender(address)
