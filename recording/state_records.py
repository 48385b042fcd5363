"""State records that nodes of all kinds write: of connections, of links, and of senders' time without credit.

A state record without room in the ring is *pending*: the record is written later, and updated until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, Protocol

from recording.columns import RecordEvent, RecordKind
from recording.events import CreditResumed, CreditStalled
from recording.pending_records import PendingRecords, Row
from recording.records import Recorder
from recording.standstill import LinkCounts, LinkEnd, Standstill
from wire.end_reasons import without_words
from wire.endpoint import Endpoint
from wire.link import IncomingLink
from wire.log import Emit, emit

AT_ONCE: Final = 1000
"""Most pending records written to the ring in one second, and most links checked for a change; takes some 10 ms."""
_BESIDE: Final = 4
"""Pending records written to the ring with each new record, so that the backlog shrinks even while much happens."""
_FREE_PART: Final = 4
"""Live rows that a reader asked for leave a quarter of the ring free."""

LEAST_STARVED_US: Final = 1000
"""A sender's time without credit is recorded from 1 ms on: credit that returns before the next message is normal."""


class StarvedEnd(Protocol):
    """The incoming end of a link, which measures how long the sender had no credit."""

    @property
    def link(self) -> IncomingLink: ...
    @property
    def starves(self) -> bool: ...
    def take_starved_us(self) -> int: ...


class StateRecorder:
    """Writes a node's state records to its ring. A record without room there is kept, and written later."""

    def __init__(self, recorder: Recorder, log: Emit = emit) -> None:
        self._recorder = recorder
        self._log = log
        self._untold = PendingRecords()
        self._starving: dict[int, Any] = {}
        """Incoming ends of links whose senders have or had no credit, by link number; recorded in turn."""
        self._lacking: dict[int, str] = {}
        """For each link whose last record says that its sender has no credit, the cause in that record."""
        self.standstill = Standstill(self._tell_what_it_has)
        self.is_on = recorder.capacity > 0

    def tell(self, kind: RecordKind, event: RecordEvent | None, **columns: Any) -> None:
        """Write a state record with these columns to the ring, or keep the record as pending if the ring has no room.

        While earlier records are pending, the record is kept behind these. ``columns`` that are None are left out.
        """
        row = row_of(kind, event, **columns)
        if self._untold:
            # Pending records still wait for room in the ring, so this later record has to go behind them.
            self._untold.add(row)
            self._tell_late(_BESIDE)
        elif not self._recorder.tell(row):
            self._untold.add(row)

    # Live rows
    @property
    def written(self) -> int:
        """Number of slots of the ring written so far."""
        return self._recorder.written

    def tell_live(self, row: Row) -> bool:
        """Write ``row``, a live row that a reader asked for; return False if the row has to wait.

        It waits while earlier records are pending, and while less than a quarter of the ring is free: records of what
        happens need the room more. Nothing is counted as dropped.
        """
        if self._untold or not self._recorder.has_free(self._recorder.capacity // _FREE_PART):
            return False
        return self._recorder.tell_late(row)

    def live_connection(self, connection: int, role: str, endpoint: Endpoint) -> Row:
        return row_of(RecordKind.CONNECTION, RecordEvent.LIVE, **_connection_columns(connection, role, endpoint))

    def live_credit(self, link: int) -> Row | None:
        """Return a live row with the link's credit, unsettled deliveries and cause of a lack of credit, as last
        recorded; None if nothing of this was recorded yet.
        """
        told, cause = self.standstill.told(link), self._lacking.get(link)
        if cause is not None:
            return row_of(RecordKind.CREDIT, RecordEvent.LIVE, link=link, credit=0, cause=cause)
        if told is None:
            return None
        columns = {"credit": told.credit, "unsettled_count": told.unsettled}
        return row_of(RecordKind.CREDIT, RecordEvent.LIVE, link=link, **columns)

    # Connections
    def tell_opened(self, connection: int, role: str, endpoint: Endpoint) -> None:
        """Record that a connection opened, with the container-id from the peer's OPEN, and how the peer connected."""
        self.tell(RecordKind.CONNECTION, RecordEvent.OPENED, **_connection_columns(connection, role, endpoint))

    def tell_lost(self, connection: int, links: Iterable[int], reason: str) -> None:
        """Record the end of a connection, and the end of each of ``links``, the links that were still attached.

        Free text of the peer in ``reason`` is left out.
        """
        cause = without_words(reason)
        for link in links:
            self.tell_detached(link, connection, cause)
        self.tell(RecordKind.CONNECTION, RecordEvent.CLOSED, connection=connection, cause=cause)

    # Links
    def tell_detached(self, link: int, connection: int, cause: str | None) -> None:
        self._starving.pop(link, None)
        self._lacking.pop(link, None)
        self.standstill.forget(link)
        self.tell(RecordKind.LINK, RecordEvent.CLOSED, link=link, connection=connection, cause=cause)

    def is_moving(self, link: int, end: LinkEnd) -> None:
        """Note that ``link`` is new, or may have moved deliveries, so that the next `tell_standing` checks the link."""
        self.standstill.on_move(link, end)

    def _tell_what_it_has(self, link: int, has: LinkCounts) -> None:
        self.tell(RecordKind.CREDIT, RecordEvent.CHANGED, link=link, credit=has.credit, unsettled_count=has.unsettled)

    # Time without credit
    def is_starving(self, link: int, end: StarvedEnd) -> None:
        """Note that the sender of ``link`` has or had no credit, so that `tell_starving` records for how long."""
        self._starving[link] = end

    def tell_starving(self, cause_of: Callable[[int, Any], str | None]) -> None:
        """Record how long senders had no credit, if 1 ms or longer, for at most AT_ONCE of the links noted, in turn.

        A lack of credit that was recorded while it lasted gets a record of its end, too: one with the present credit,
        however short the rest of the lack was. ``cause_of(link number, end)`` returns the cause of the lack; for a link
        that is gone None, for no record.
        """
        for link in list(islice(self._starving, AT_ONCE)):
            end = self._starving.pop(link)
            cause = cause_of(link, end)
            if cause is not None:
                self.tell_credit(link, end, cause)
                if end.starves:
                    self._starving[link] = end
                elif link in self._lacking:
                    self._tell_end(link, max(0, end.link.credit))

    def tell_credit(self, link: int, end: StarvedEnd, cause: str) -> None:
        starved_us = end.take_starved_us()
        if starved_us >= LEAST_STARVED_US:
            credit = max(0, end.link.credit)
            self.tell(
                RecordKind.CREDIT, RecordEvent.CHANGED, link=link, credit=credit, starved_us=starved_us, cause=cause
            )
            self.standstill.on_told(link, credit)
            if end.starves:
                if CreditStalled.is_wanted and self._lacking.get(link) != cause:
                    self._log(self._stalled(link, end, cause, starved_us))
                self._lacking[link] = cause
            elif self._lacking.pop(link, None) is not None:
                self._note_resumed(link, credit)

    @staticmethod
    def _stalled(link: int, end: StarvedEnd, cause: str, starved_us: int) -> CreditStalled:
        endpoint = end.link.endpoint
        client = f"{endpoint.peer_name} at {endpoint.peer.remote_address}"
        return CreditStalled(link, end.link.name, client, cause, starved_us // 1000)

    def _note_resumed(self, link: int, credit: int) -> None:
        if CreditResumed.is_wanted:
            self._log(CreditResumed(link, credit))

    def _tell_end(self, link: int, credit: int) -> None:
        self._note_resumed(link, credit)
        del self._lacking[link]
        self.tell(RecordKind.CREDIT, RecordEvent.CHANGED, link=link, credit=credit)
        self.standstill.on_told(link, credit)

    # Time
    def end_second(self) -> None:
        """Write the sums of the second's deliveries and messages, then up to AT_ONCE pending records.

        Without room in the ring, sums are lost and counted, and pending records stay pending.
        """
        self._recorder.end_second()
        self._tell_late(AT_ONCE)

    def tell_standing(self, now: float) -> None:
        """Record credit and unsettled deliveries of links that are new, stand still or moved again, AT_ONCE at most.

        Called once a second, after the second's other records.
        """
        self.standstill.look(now, AT_ONCE)

    def _tell_late(self, most: int) -> None:
        for _ in range(min(most, len(self._untold))):
            if not self._recorder.tell_late(self._untold.first()):
                return
            self._untold.drop_first()


def row_of(kind: RecordKind, event: RecordEvent | None, **columns: Any) -> Row:
    """Return a state record as a row with these columns, without those that are None."""
    row: Row = {"kind": kind, "event": event, **columns}
    return {name: value for name, value in row.items() if value is not None} if None in row.values() else row


def _connection_columns(connection: int, role: str, endpoint: Endpoint) -> Row:
    remote, peer = endpoint.remote, endpoint.peer
    return {
        "connection": connection,
        "role": role,
        "container": remote.container_id if remote is not None else None,
        "user": peer.user or peer.mesh_name,
        "remote_address": peer.remote_address,
        "direction": "incoming" if peer.listener is not None else "outgoing",
        "mechanism": peer.mechanism,
        "tls_version": peer.tls.version if peer.tls is not None else None,
        "tls_cipher": peer.tls.cipher if peer.tls is not None else None,
    }
