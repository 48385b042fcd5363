"""A link over which a peer sends requests to this node itself: each message is a request, settled with an outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wire import delivery as deliveries
from wire.delivery import Outcome
from wire.engine import Pointer
from wire.errors import AmqpError, LinkError
from wire.link import RECEIVE_FIRST, IncomingLink


class LaterOutcome:
    """The outcome of a request that is not known yet: `tell` is called once when it is."""

    def __init__(self) -> None:
        self._told: Outcome | None = None
        self._settle: Callable[[Outcome], None] | None = None

    def tell(self, outcome: Outcome) -> None:
        """Settle the request's delivery with ``outcome``; without effect if its link has ended meanwhile."""
        self._told = outcome
        if self._settle is not None:
            self._settle(outcome)

    def settle_by(self, settle: Callable[[Outcome], None]) -> None:
        """Have ``settle`` called with the outcome, now if it is known."""
        self._settle = settle
        if self._told is not None:
            settle(self._told)


OnRequest = Callable[[bytes], Outcome | LaterOutcome]
"""Takes the encoded message of a request, and returns the outcome of its delivery."""


class RequestLink:
    """Reads the requests that arrive on a link, one message of at most ``most_bytes`` each, and settles them.

    ``fail(link, error)`` closes the link: for a request that is too large, and for a refused one that was pre-settled,
    whose sender could not learn of the refusal otherwise.
    """

    def __init__(
        self,
        link: IncomingLink,
        on_request: OnRequest,
        most_bytes: int,
        credit: int,
        fail: Callable[[IncomingLink, AmqpError], None],
    ) -> None:
        self._link = link
        self._on_request = on_request
        self._most_bytes = most_bytes
        self._credit = credit
        self._fail = fail
        self._request = b""

    def prepare(self) -> None:
        """Set the terms of the answer to the peer's attach, but for the target, which the caller sets."""
        self._link.copy_source(self._link)
        self._link.set_settle_modes(self._link.remote_settle_modes[0], RECEIVE_FIRST)
        self._link.set_max_message_bytes(self._most_bytes)

    def open(self) -> None:
        """Become the owner of the link, answer the peer's attach and grant credit."""
        self._link.owner = self
        self._link.open()
        self._link.grant(self._credit)

    def on_delivery(self) -> None:
        while not self._link.is_gone and not self._link.has_left and (delivery := self._link.current) is not None:
            while piece := self._link.recv(max(deliveries.pending(delivery), 1)):
                self._request += piece
            if len(self._request) > self._most_bytes:
                what = f"the request is too large: expected at most {self._most_bytes} bytes"
                self._fail(self._link, LinkError("amqp:link:message-size-exceeded", what))
                return
            if deliveries.is_partial(delivery):
                return
            request, self._request = self._request, b""
            self._link.advance()
            if deliveries.is_aborted(delivery):
                deliveries.settle(delivery)
                self._link.set_credit(self._credit)
                continue
            outcome = self._on_request(request)
            if isinstance(outcome, LaterOutcome):
                outcome.settle_by(partial(self._settle, delivery))
            else:
                self._settle(delivery, outcome)

    def _settle(self, delivery: Pointer, outcome: Outcome) -> None:
        link = self._link
        if link.is_gone or link.has_left:
            return
        error = None
        if not deliveries.is_settled(delivery):
            deliveries.set_outcome(delivery, outcome)
        else:
            error = outcome.error
        deliveries.settle(delivery)
        link.endpoint.mark_dirty()
        if error is not None:
            self._fail(link, error)
            return
        link.set_credit(self._credit)
