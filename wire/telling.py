"""What nodes of all kinds tell alike: rows with text in them, in time or late; who is connected; who lacks credit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from addressing.link_log import Event, Kind
from wire.ended import without_words
from wire.endpoint import Endpoint
from wire.link import IncomingLink
from wire.records import Recorder
from wire.standstill import Has, LinkEnd, Standstill
from wire.untold import Untold

AT_ONCE: Final = 1000
"""Rows that are told in one second beyond those of what happens in it, and links that are looked at: some 10 ms."""
_BESIDE: Final = 4
"""Late rows that go with each that is to be told: where much happens, what is late must not become ever more."""


LEAST_STARVED_US: Final = 1000
"""Of a second. That its credit comes back in time for the next message is as it should be."""


class Thirsty(Protocol):
    """The incoming end of a link, of which it is known how long its sender had no credit."""

    @property
    def link(self) -> IncomingLink: ...
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
        self.standstill = Standstill(self._tell_what_it_has)
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
        self._starving.pop(link, None)
        self.standstill.forget(link)
        self.tell(Kind.LINK, Event.CLOSED, link=link, connection=connection, cause=cause)

    def is_moving(self, link: int, end: LinkEnd) -> None:
        """It is new, or something of it may have changed: it is looked at when the second is over."""
        self.standstill.on_move(link, end)

    def _tell_what_it_has(self, link: int, has: Has) -> None:
        self.tell(Kind.CREDIT, Event.CHANGED, link=link, credit=has.credit, unsettled_count=has.unsettled)

    # Time without credit
    def is_starving(self, link: int, end: Thirsty) -> None:
        """Perhaps not any more: it is told of when the second is over."""
        self._starving[link] = end

    def tell_starving(self, cause_of: Callable[[int, Any], str | None]) -> None:
        """``cause_of`` a link and its end: None of one that is gone. Where there are many, each has its turn."""
        for link in list(islice(self._starving, AT_ONCE)):
            end = self._starving.pop(link)
            cause = cause_of(link, end)
            if cause is not None:
                self.tell_credit(link, end, cause)
                if end.starves:
                    self._starving[link] = end

    def tell_credit(self, link: int, end: Thirsty, cause: str) -> None:
        starved_us = end.take_starved_us()
        if starved_us >= LEAST_STARVED_US:
            credit = max(0, end.link.credit)
            self.tell(Kind.CREDIT, Event.CHANGED, link=link, credit=credit, starved_us=starved_us, cause=cause)
            self.standstill.on_told(link, credit)

    # Time
    def end_second(self) -> None:
        """What was counted in it goes to the ring, and some of what is late."""
        self._recorder.end_second()
        self._tell_late(AT_ONCE)

    def tell_standing(self, now: float) -> None:
        """After all else that is told of the second."""
        self.standstill.look(now, AT_ONCE)

    def _tell_late(self, most: int) -> None:
        for _ in range(min(most, len(self._untold))):
            if not self._recorder.tell_late(self._untold.first()):
                return
            self._untold.drop_first()
