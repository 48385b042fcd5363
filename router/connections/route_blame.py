"""Which client closes a connection that many clients share? Halves find out.

A broker, or this router, closes a connection with an error if frames on it break a rule, and one client's frames may be
the cause. The clients of the connection are divided in two halves, each with a fresh connection; if that closes with an
error, too, its clients are divided again. A client that is alone and closes its connection again is refused for a
while, and stays alone from then on.

    shared --error--> halves --error--> ... --error--> one client alone --error--> refused for 10 s, alone for good
                        \\--no error for 10 s--> clients like any others
"""

from __future__ import annotations

import itertools

from router.timers import Timer, Timers
from wire.errors import AmqpError

TRUST_S = 10.0
"""A connection of a half that is open for so long without an error is trusted again."""
REFUSE_S = 10.0
MOST_ALONE = 1000
"""Most clients that are remembered for the errors that they caused; beyond, the oldest is forgotten."""
_BLAMELESS = {"amqp:connection:forced", "amqp:resource-limit-exceeded"}
"""Errors that no client causes: a broker that stops or is lost, silence, and too many connections."""


class BlamedPart:
    """Some of the clients of a shared connection that closed with an error, with the name of their new connection."""

    __slots__ = ("clients", "is_alone", "name", "timer")

    def __init__(self, name: str, clients: list[str]) -> None:
        self.name = name
        self.clients = clients
        self.is_alone = False
        """Whether the part's one client is known as the cause of errors, and so is never trusted again."""
        self.timer: Timer | None = None


class RouteBlame:
    """The clients that may have caused an error on a connection to ``broker``, and the clients that are refused.

    Each client under suspicion is in one part, whose clients share a connection.
    """

    def __init__(self, broker: str, timers: Timers) -> None:
        self._broker = broker
        self._timers = timers
        self._count = itertools.count(1)
        self._parts: dict[str, BlamedPart] = {}
        """By the names of their connections."""
        self._of_client: dict[str, BlamedPart] = {}
        self._refused: dict[str, tuple[float, AmqpError]] = {}
        """For each client that stays alone: when it was refused, and the error."""

    def part_of(self, client: str) -> BlamedPart | None:
        return self._of_client.get(client)

    def has(self, name: str) -> bool:
        """Whether the connection ``name`` is that of a part under suspicion, which takes no other client."""
        return name in self._parts

    def refusal(self, client: str) -> AmqpError | None:
        """Return the error for a claim of ``client``; None if the client may have a connection."""
        found = self._refused.get(client)
        return found[1] if found is not None and self._timers.now < found[0] + REFUSE_S else None

    def divide(self, name: str, clients: list[str], error: AmqpError) -> None:
        """Note that the connection ``name`` of ``clients`` was closed with ``error``: put them under suspicion.

        A single client that was under suspicion before is refused. Do nothing for an error that no client causes.
        """
        before = self._parts.get(name)
        if not clients or error.condition in _BLAMELESS:
            return
        if before is not None and len(before.clients) == 1:
            self._refuse(before, error)
            return
        if before is not None:
            self._trust(before)
        middle = (len(clients) + 1) // 2
        for half in (clients[:middle], clients[middle:]):
            if half:
                self._suspect(half)

    def _suspect(self, clients: list[str]) -> BlamedPart:
        part = BlamedPart(f"part-{next(self._count)}", clients)
        self._parts[part.name] = part
        self._of_client.update(dict.fromkeys(clients, part))
        self._count_down(part)
        return part

    def _count_down(self, part: BlamedPart) -> None:
        if part.timer is not None:
            part.timer.cancel()
        if not part.is_alone:
            part.timer = self._timers.after(TRUST_S, lambda: self._trust(part))

    def on_opened(self, name: str) -> None:
        """Begin the time after which the clients of connection ``name`` are trusted again, if they are suspected."""
        part = self._parts.get(name)
        if part is not None:
            self._count_down(part)

    def _trust(self, part: BlamedPart) -> None:
        if part.timer is not None:
            part.timer.cancel()
        self._parts.pop(part.name, None)
        for client in part.clients:
            if self._of_client.get(client) is part:
                del self._of_client[client]

    def _refuse(self, part: BlamedPart, error: AmqpError) -> None:
        (client,) = part.clients
        what = (
            f"the connection to broker {self._broker} for client {client} alone was closed, as were the connections "
            f"that the client shared before: {error}"
        )
        self._refused.pop(client, None)
        self._refused[client] = self._timers.now, AmqpError("amqp:link:detach-forced", what)
        part.is_alone = True
        if part.timer is not None:
            part.timer.cancel()
        while len(self._refused) > MOST_ALONE:
            oldest = next(iter(self._refused))
            del self._refused[oldest]
            if (known := self._of_client.get(oldest)) is not None and known.is_alone:
                self._trust(known)
