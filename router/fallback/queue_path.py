"""The path from this router's producers to the fallback queue of an address.

To keep order, one link or circuit is used at a time: to the keeper, the router that keeps a share of the queue, of the
first broker that can be reached. Large deliveries get a link or circuit of their own, as they do elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from router.circuits.spec import CircuitKind
from router.distribution.reach import fallback_phase
from router.fallback.announcements import ShareAnnouncements
from router.fallback.context import FallbackContext, FallbackServices
from router.fallback.queue_share import unsettled_to
from router.forwarding.ends import Inlet, Taker
from router.routing.spf import Path
from wire.errors import AmqpError

_LOOK_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class QueueTarget:
    broker: str
    keeper: str

    def __str__(self) -> str:
        return f"{self.broker} over {self.keeper}"


class QueuePath:
    """Opens and closes the taker (link or circuit) over which deliveries of producers here go to the fallback queue.

    Always: ``group.fallback`` is None, or leads to the broker of ``_target`` over the keeper of ``_target``.
    """

    def __init__(self, backed: FallbackContext, ways: FallbackServices, keeping: ShareAnnouncements) -> None:
        self._entry = backed.entry
        self._group = backed.group
        self._queue = backed.queue
        self._ways = ways
        self._keeping = keeping
        self._found: QueueTarget | None = None
        self._target: QueueTarget | None = None
        self._taker: Taker | None = None
        self._streams: dict[Inlet, Taker] = {}

    # Target
    def find(self) -> bool:
        """Find the first broker of the queue with a keeper in reach; return True if broker or keeper changed."""
        before, self._found = self._found, self._first_in_reach()
        return self._found != before

    def _first_in_reach(self) -> QueueTarget | None:
        for broker in self._queue.brokers:
            keeper = self._ways.reach.keeper_of(broker)
            if keeper is not None:
                return QueueTarget(broker, keeper)
        return None

    @property
    def exists(self) -> bool:
        return self._found is not None

    @property
    def is_up(self) -> bool:
        """True if there is a link or circuit to the queue that has had credit, so that it may have had deliveries."""
        return self._taker is not None and self._taker.had_credit

    # Opening
    def settle(self, *, is_needed: bool) -> None:
        wanted = self._found if is_needed else None
        if self._taker is None:
            if wanted is not None and self._ways.upkeep.may_try(self._entry, str(wanted), self._path_to(wanted)):
                self._open(wanted)
        else:
            self._group.set_fallback(self._taker, self._target != wanted)
            self._close_if_idle(self._taker)

    def _open(self, target: QueueTarget) -> None:
        taker = self._open_link(target) if target.keeper == self._ways.reach.router_id else self._open_circuit(target)
        if taker is None:
            self._ways.upkeep.on_refused(self._entry, str(target), None, self._path_to(target))
            return
        self._target, self._taker = target, taker
        self._group.set_fallback(taker, False)

    def _path_to(self, target: QueueTarget) -> Path | None:
        """Return the path of a circuit to the keeper of ``target``; None if that is this router, or out of reach."""
        reach = self._ways.reach
        return None if target.keeper == reach.router_id else reach.routing.path(target.keeper)

    def _open_link(self, target: QueueTarget) -> Taker | None:
        share = self._keeping.share(target.broker)
        if share is None:
            return None
        return self._ways.links.open_fallback(self._group, self._queue, target.broker, share, is_own=True)

    def _open_circuit(self, target: QueueTarget, kind: CircuitKind = CircuitKind.ANYCAST) -> Taker | None:
        path = self._path_to(target)
        phase = fallback_phase(self._queue, target.broker)
        return self._ways.circuits.open(self._entry, kind, path, phase) if path is not None else None

    def stream(self, inlet: Inlet) -> Taker | None:
        """Return the stream of ``inlet``: a link or circuit to the queue for large deliveries of this inlet alone.

        The stream is opened at the first call without unsettled deliveries of ``inlet``. Return None until the stream
        can take a delivery.
        """
        taker = self._streams.get(inlet)
        # While the inlet has unsettled deliveries, perhaps on a stream that is ending, no new stream overtakes them.
        if taker is None and self._target is not None and not inlet.unsettled_count:
            taker = self._open_stream(self._target)
            if taker is not None:
                self._streams[inlet] = taker
        return taker if taker is not None and taker.can_take else None

    def _open_stream(self, target: QueueTarget) -> Taker | None:
        if target.keeper != self._ways.reach.router_id:
            taker = self._open_circuit(target, CircuitKind.STREAM)
            if taker is not None:
                self._group.add_stream(taker)
            return taker
        share = self._keeping.share(target.broker)
        if share is None:
            return None
        return self._ways.links.open_stream(self._group, self._queue, target.broker, share)

    # Closing
    def _close_if_idle(self, taker: Taker) -> None:
        if taker is not self._taker or not taker.is_closing:
            return
        # The path is closed without waiting for a large message that is half sent: the message ends on its own stream,
        # and nothing else waits for it.
        if taker.unsettled_count or any(unsettled_to(stream) for stream in self._streams.values()):
            self._ways.timers.after(_LOOK_AGAIN_S, lambda: self._close_if_idle(taker))
            return
        taker.on_left(True, None)

    def on_lost(self, end: Inlet | Taker, error: AmqpError | None) -> None:
        """Close the stream of the inlet ``end``, which is gone; or forget the taker ``end`` if it leads to the queue.

        After an error, the same path to the queue is tried again only after a delay (`Upkeep.on_refused`).
        """
        if isinstance(end, Inlet):
            self._close_stream(end)
            return
        self._streams = {inlet: stream for inlet, stream in self._streams.items() if stream is not end}
        if end is self._taker and self._target is not None:
            if error is not None:
                self._ways.upkeep.on_refused(self._entry, str(self._target), error, self._taker.path)
            self._taker = self._target = None
            for inlet in list(self._streams):
                self._close_stream(inlet)

    def _close_stream(self, inlet: Inlet) -> None:
        stream = self._streams.pop(inlet, None)
        if stream is not None:
            self._ways.upkeep.retire(self._entry, stream, at_once=True)
