"""What nodes of all kinds tell alike: rows with text in them, in time or late; who is connected; who lacks credit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from addressing.link_log import Event, Kind
from wire.ended import without_words
from wire.endpoint import Endpoint
from wire.link import IncomingLink
from wire.receivers import Held, Receiver, Receivers
from wire.records import Recorder
from wire.untold import Untold

AT_ONCE: Final = 1000
"""Rows that are told in one second beyond those of what happens in it: some 10 ms."""
_BESIDE: Final = 4
"""Late rows that go with each that is to be told: where much happens, what is late must not become ever more."""


LEAST_STARVED_US: Final = 1000
"""Of a second. That its credit comes back in time for the next message is as it should be."""


class Thirsty(Protocol):
    """The incoming end of a link, of which it is known how long its sender had no credit."""

    @property
    def link(self) -> IncomingLink: ...
    @property
    def record_level(self) -> int: ...
    @property
    def starves(self) -> bool: ...
    def take_starved_us(self) -> int: ...


class Teller:
    """What there is no room for in the ring is told when there is: a reader then knows again what is there."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._untold = Untold()
        self._starving: dict[int, Any] = {}
        """By number of the link: senders have no credit, or had none. To be told of in turn."""
        self._with_credit: set[int] = set()
        """Numbers of links of which it was told how much they have."""
        self._receivers = Receivers(self._tell_held)
        self.is_on = recorder.capacity > 0

    def tell(self, kind: Kind, event: Event | None, **columns: Any) -> None:
        """``columns`` that are None are left out."""
        said = {"kind": kind, "event": event, **columns}
        row = {name: value for name, value in said.items() if value is not None}
        if self._untold:
            # Not before what happened earlier.
            self._untold.add(row)
            self._tell_late(_BESIDE)
        elif not self._recorder.tell(row):
            self._untold.add(row)

    # Connections
    def tell_opened(self, connection: int, role: str, endpoint: Endpoint) -> None:
        """Of a connection whose peer has said who it is."""
        remote, peer = endpoint.remote, endpoint.peer
        self.tell(
            Kind.CONNECTION,
            Event.OPENED,
            connection=connection,
            role=role,
            container=remote.container_id if remote is not None else None,
            user=peer.user or peer.mesh_name,
            remote_address=peer.remote_address,
        )

    def tell_lost(self, connection: int, links: Iterable[int], reason: str) -> None:
        """It is gone, and with it those of its links that still were there."""
        cause = without_words(reason)
        for link in links:
            self.tell_detached(link, connection, cause)
        self.tell(Kind.CONNECTION, Event.CLOSED, connection=connection, cause=cause)

    # Links
    def tell_detached(self, link: int, connection: int, cause: str | None) -> None:
        self._with_credit.discard(link)
        self._receivers.forget(link)
        self.tell(Kind.LINK, Event.CLOSED, link=link, connection=connection, cause=cause)

    # Credit of incoming links
    def is_starving(self, link: int, end: Thirsty) -> None:
        """It is new, or has no credit, perhaps not any more: it is told of when the second is over."""
        self._starving[link] = end

    def tell_starving(self, cause_of: Callable[[int, Any], str | None]) -> None:
        """``cause_of`` a link and its end: None of one that is gone. Where there are many, each has its turn."""
        for link in list(islice(self._starving, AT_ONCE)):
            end = self._starving.pop(link)
            cause = cause_of(link, end)
            if cause is not None:
                self._tell_first(link, end, cause)
                if end.starves:
                    self._starving[link] = end

    def _tell_first(self, link: int, end: Thirsty, cause: str) -> None:
        """Of a new one its credit is told in any case, or a list of what is there would lack it."""
        if not self.tell_credit(link, end, cause) and link not in self._with_credit and end.record_level:
            self.tell(Kind.CREDIT, Event.CHANGED, link=link, credit=max(0, end.link.credit))
        self._with_credit.add(link)

    def tell_credit(self, link: int, end: Thirsty, cause: str) -> bool:
        """Whether there was anything to be told: it had none for some time."""
        starved_us = end.take_starved_us()
        if starved_us < LEAST_STARVED_US:
            return False
        said = {"credit": max(0, end.link.credit), "starved_us": starved_us, "cause": cause}
        self.tell(Kind.CREDIT, Event.CHANGED, link=link, **said)
        return True

    # Credit of outgoing links
    def is_moving(self, link: int, end: Receiver) -> None:
        """It is new, or something of it may have changed: it is looked at when the second is over."""
        self._receivers.on_move(link, end)

    def tell_receivers(self, now: float) -> None:
        self._receivers.look(now, AT_ONCE)

    def _tell_held(self, link: int, held: Held) -> None:
        said = {"credit": held.credit, "unsettled_count": held.unsettled}
        self.tell(Kind.CREDIT, Event.CHANGED, link=link, **said)

    # Time
    def end_second(self) -> None:
        """What was counted in it goes to the ring, and some of what is late."""
        self._recorder.end_second()
        self._tell_late(AT_ONCE)

    def _tell_late(self, most: int) -> None:
        for _ in range(min(most, len(self._untold))):
            if not self._recorder.tell_late(self._untold.first()):
                return
            self._untold.drop_first()
