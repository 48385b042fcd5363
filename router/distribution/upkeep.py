"""Decide when an end (circuit, branch or broker link) that this router made for an address is tried again, and when
the end is closed."""

from __future__ import annotations

from functools import partial

from router.circuits.spec import NO_TAKER, PATH_LOST, Tree
from router.distribution.changed_addresses import ChangedAddresses
from router.distribution.entries import AddressEntry, Refusal
from router.events import CircuitRefused
from router.forwarding.ends import Taker
from router.routing.spf import Path
from router.timers import Timers
from wire.errors import AmqpError
from wire.log import Emit

IDLE_S = 10.0
RETRY_S = {PATH_LOST: 0.05}
_RETRY_DEFAULT_S = 2.0
_LOOK_AGAIN_S = 0.05
_MOST_LOOK_AGAIN_S = 1.0


class Upkeep:
    """Times the retries of circuits, branches and broker links that this router makes for addresses, and closes them.

    The entry of an address is added to ``changed`` when a retry is due. In all methods, ``name`` is the router or
    broker at the other side of the circuit, branch or link.
    """

    def __init__(self, timers: Timers, changed: ChangedAddresses, emit: Emit) -> None:
        self._timers = timers
        self._changed = changed
        self._emit = emit

    # Retrying
    def may_try(self, entry: AddressEntry, name: str, path: Path | Tree | None = None) -> bool:
        refusal = entry.ends.refusals.get(name)
        return refusal is None or refusal.until_s <= self._timers.now or refusal.path != path

    def on_refused(
        self, entry: AddressEntry, name: str, error: AmqpError | None, path: Path | Tree | None = None
    ) -> None:
        """Note that an end was refused or lost, or could not be made: a new try over ``path`` has to wait.

        The wait is 0.05 s if the path was lost or the end could not be made, else 2 s. An ``error`` is logged, unless
        the path was lost or the consumer of a dynamic address is gone.
        """
        delay_s = RETRY_S.get(error.condition if error else PATH_LOST, _RETRY_DEFAULT_S)
        entry.ends.refusals[name] = Refusal(self._timers.now + delay_s, path)
        self._timers.after(delay_s, partial(self._changed.add, entry))
        if error is not None and error.condition not in (PATH_LOST, NO_TAKER):
            self._emit(CircuitRefused(entry.group.address.text, name, error.condition, error.description))

    # Closing
    def retire(self, entry: AddressEntry, taker: Taker, *, at_once: bool) -> None:
        """Close a circuit or branch that the entry does not need now.

        ``at_once``: as soon as no delivery on the taker is unsettled. Otherwise all circuits and branches of the entry
        are closed after IDLE_S, if the entry has no producer then.
        """
        if at_once or taker.is_closing:
            self.keep(entry, taker, is_needed=False)
        elif entry.idle_timer is None:
            entry.idle_timer = self._timers.after(IDLE_S, lambda: self._on_idle(entry))

    def _on_idle(self, entry: AddressEntry) -> None:
        entry.idle_timer = None
        if entry.has_producer:
            return
        for taker in [*entry.ends.circuits.values(), *(taker for _, taker in entry.ends.branches.values())]:
            # A circuit to an edge router is kept while the address has an inlet: the edge router may take deliveries
            # that other routers' circuits bring here.
            if not (taker.edge and entry.group.inlets):
                self.keep(entry, taker, is_needed=False)

    def keep(self, entry: AddressEntry, taker: Taker, *, is_needed: bool) -> None:
        """Close a taker that is not needed as soon as none of its deliveries is unsettled.

        A taker that is about to close and is needed again stays open, and the entry is brought up to date again.
        """
        if taker.is_closing != is_needed:
            return
        if not is_needed:
            taker.is_closing = True
            self._close_if_idle(entry, taker)
        else:
            taker.go_on()
            self._changed.add(entry)

    def leave(self, entry: AddressEntry, taker: Taker) -> None:
        """Close ``taker``, which another taker replaces, once its deliveries are settled and were passed on."""
        self._timers.after(_MOST_LOOK_AGAIN_S, lambda: self._close_if_idle(entry, taker))

    @staticmethod
    def _has_passed_on(entry: AddressEntry, taker: Taker) -> bool:
        """True unless the taker was replaced, and may have deliveries that the egress has not passed on yet.

        The caller itself looks at unsettled deliveries: this answer is about pre-settled ones.
        """
        return not taker.is_left or entry.group.has_passed_on(taker)

    def _close_if_idle(self, entry: AddressEntry, taker: Taker, again_s: float = _LOOK_AGAIN_S) -> None:
        if not taker.is_closing:
            return
        if taker.unsettled_count or not self._has_passed_on(entry, taker):
            later_s = min(2 * again_s, _MOST_LOOK_AGAIN_S)
            self._timers.after(again_s, lambda: self._close_if_idle(entry, taker, later_s))
            return
        entry.forget(taker)
        if entry.group.has(taker):
            taker.on_left(True, None)
