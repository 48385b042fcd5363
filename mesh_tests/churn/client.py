"""A client of the churn: a connection that keeps nothing of what is over, so that it may stay for half an hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mesh_tests.live.wire_client import WireClient
from wire.delivery import ACCEPTED
from wire.events import Closed, Event, LinkDetached, LinkEstablished
from wire.link import IncomingLink, Link, OutgoingLink, Session

CREDIT = 20


class ChurnClient(WireClient):
    """Settles what arrives, and counts what becomes of what it sends. Nothing waits: the churn steps all clients."""

    def __init__(self, port: int, container_id: str, counts: Counter[str]) -> None:
        super().__init__(port, container_id=container_id, is_awaited=False)
        self.counts = counts
        self.has_output = True
        """Something was done since the last ``work`` that the router has to hear of."""
        self._session: Session | None = None
        self._on_established: dict[Link, Callable[[], None]] = {}

    def begin(self) -> Session:
        """All links share one session."""
        self._session = self._session or super().begin()
        return self._session

    def call_when_established(self, link: Link, action: Callable[[], None]) -> None:
        """Call ``action`` once the router has accepted the attach of ``link``, unless the link ends before."""
        self._on_established[link] = action

    def work(self) -> None:
        """Write and read what there is, and take note of all events and outcomes."""
        self.has_output = False
        self.step()
        events, self.events = self.events, []
        for event in events:
            self._on_event(event)
        for number in list(self.outcomes):
            outcome = self.outcomes.pop(number)
            self.counts["settled" if outcome is None else outcome.kind.name.lower()] += 1

    def _on_event(self, event: Event) -> None:
        match event:
            case LinkEstablished(link):
                action = self._on_established.pop(link, None)
                if action is not None and not link.is_refused:
                    action()
            case LinkDetached(link, _, error):
                self.counts[f"detached by the router: {error.condition if error is not None else 'no error'}"] += 1
                self.end(link)
            case Closed(error):
                if error is not None:
                    self.counts[f"closed by the router: {error.condition}"] += 1

    def on_delivery(self, link: IncomingLink, delivery: Any) -> None:
        super().on_delivery(link, delivery)
        arrived, self.arrived = self.arrived, []
        for each in arrived:
            each.settle(ACCEPTED)
        self.counts["arrived"] += len(arrived)
        if link.credit <= CREDIT // 2 and not link.has_left:
            link.grant(CREDIT - link.credit)

    def send_if_possible(self, link: OutgoingLink, data: bytes) -> bool:
        """Send one message if ``link`` has credit; return whether it went out."""
        if self.has_ended or link.is_gone or link.has_left or link.credit <= 0:
            return False
        self.send_bytes(link, data)
        self.has_output = True
        self.counts["sent"] += 1
        return True

    def end(self, link: Link, *, keeps_terminus: bool = False) -> None:
        """Close ``link``, or detach it so that its terminus, as a durable subscription, stays."""
        if self.has_ended or link.is_gone or link.has_left:
            return
        if keeps_terminus:
            link.detach()
        else:
            link.close()
        self._forget(link)
        self.has_output = True

    def _opened(self, link: Any, is_awaited: bool) -> Any:
        self.has_output = True
        return super()._opened(link, is_awaited)

    def _forget(self, link: Link) -> None:
        """Drop what this client still has of a link, with the deliveries whose outcomes can no longer come."""
        self._on_established.pop(link, None)
        self._parts.pop(link, None)  # type: ignore[call-overload]
        for pointer in [pointer for pointer, (_, own) in self._numbers.items() if own is link]:
            del self._pointers[self._numbers.pop(pointer)[0]]
            self.counts["without an outcome"] += 1

    def leave(self) -> None:
        """Close the connection in order; ``work`` then goes on until ``has_ended``."""
        self._on_established.clear()
        self.endpoint.close()
        self.has_output = True

    def drop(self) -> None:
        """Drop the socket, in order or not."""
        with suppress(OSError):
            self.kill()
