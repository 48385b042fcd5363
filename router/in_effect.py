"""When are the filters of this router's consumers in effect at every router concerned?

A change of a filter set is accepted once each delivery that begins anywhere is matched by it. So its router asks all
routers in reach (CHECK in `router.routing.messages`). A router answers once three things are true of it:

* it has the addresses that the asking router advertises, in the version asked for;
* its own addresses are settled: new deliveries wait for, or go to, the branches that lead to the new takers;
* the edge routers behind it have what it told them, so that their producers send here.

An edge router asks its active uplink, which asks all others before it answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from router.routing.actions import Action, ConfirmationRequest
from router.routing.edges import EdgeRouters
from router.routing.mobile import Version
from router.routing.plane import Plane
from router.timers import Timers


@dataclass(slots=True, eq=False)
class _Wait:
    """Something that waits for confirmations, until ``until_s`` at most.

    ``asker`` and ``version``: an interior router that asked, and the version of its addresses. Without an asker,
    ``version`` is that of this router's addresses, which others confirm. ``number``: that of the question to the edge
    routers behind this one; 0 before it is sent. ``done`` is called at the end, with whether the wait was long enough.
    """

    asker: str | None
    version: Version
    until_s: float
    done: Callable[[bool], None]
    number: int = 0


class ChangesInEffect:
    """Calls back once this router's advertised filters are in effect in the mesh, and answers others that ask.

    ``is_settled`` says whether all addresses of this router are up to date. Nothing waits longer than ``patience_s``.
    """

    def __init__(
        self,
        plane: Plane,
        edges: EdgeRouters,
        is_settled: Callable[[], bool],
        act: Callable[[Iterable[Action]], None],
        timers: Timers,
        patience_s: float,
    ) -> None:
        self._plane = plane
        self._edges = edges
        self._is_settled = is_settled
        self._act = act
        self._timers = timers
        self._patience_s = patience_s
        self._own: deque[_Wait] = deque()
        """The waits for other routers to have this router's addresses, oldest first: they end in this order."""
        self._asked: list[_Wait] = []
        """The waits for this router to have the addresses of interior routers that asked."""
        self._unasked: list[_Wait] = []
        """Those of all waits about which the edge routers were not asked yet."""
        self.is_waiting = False
        """Whether `look` has to be called after each input."""
        self._number = 0

    def wait(self, done: Callable[[], None]) -> None:
        """Call ``done`` once the filters that this router advertises by now are in effect at all routers in reach.

        If a router does not answer in time, ``done`` is called all the same.
        """
        self._wait_for_others(lambda _: done())

    def on_asked(self, asked: ConfirmationRequest) -> None:
        """Answer the router that asked once its addresses are in effect here, or, for an edge router, everywhere.

        If that takes too long, there is no answer: the router that asked does not wait longer either.
        """
        router, version = asked.router, asked.version
        if asked.is_edge:
            self._wait_for_others(lambda is_true: self._act(self._edges.confirm(router, version[1]) if is_true else []))
        elif all(wait.asker != router or wait.version != version for wait in self._asked):
            self._asked.append(
                self._new(
                    router, version, lambda is_true: self._act(self._plane.confirm(router, version) if is_true else [])
                )
            )

    def _wait_for_others(self, done: Callable[[bool], None]) -> None:
        version, actions = self._plane.want_confirmed(self._timers.now)
        self._own.append(self._new(None, version, done))
        self._act(actions)

    def _new(self, asker: str | None, version: Version, done: Callable[[bool], None]) -> _Wait:
        wait = _Wait(asker, version, self._timers.now + self._patience_s, done)
        self._unasked.append(wait)
        self.is_waiting = True
        # `look` follows each input, also that of a timer.
        self._timers.after(self._patience_s, lambda: None)
        return wait

    def look(self) -> None:
        """End the waits that are over; called after each input, when addresses were settled, while there are waits."""
        if self._unasked and self._is_settled():
            self._ask_edges()
        while self._own and self._is_over(self._own[0]):
            self._end(self._own.popleft())
        for wait in [wait for wait in self._asked if self._is_over(wait)]:
            self._asked.remove(wait)
            self._end(wait)
        self.is_waiting = bool(self._own or self._asked)

    def _is_over(self, wait: _Wait) -> bool:
        return self._timers.now >= wait.until_s or self._is_true(wait)

    def _end(self, wait: _Wait) -> None:
        if not wait.number:
            self._unasked.remove(wait)
        wait.done(self._is_true(wait))

    def _ask_edges(self) -> None:
        """Ask the edge routers behind this router, once for all waits that have not had them asked yet."""
        new = [wait for wait in self._unasked if self._is_here(wait)]
        if not new:
            return
        self._number += 1
        for wait in new:
            wait.number = self._number
        self._unasked = [wait for wait in self._unasked if not wait.number]
        self._act(self._edges.check(self._number))

    def _is_here(self, wait: _Wait) -> bool:
        """True if this router itself has the addresses that are to be in effect."""
        return wait.asker is None or self._plane.has_seen(wait.asker, wait.version)

    def _is_true(self, wait: _Wait) -> bool:
        if not wait.number or not self._edges.is_confirmed(wait.number):
            return False
        return wait.asker is not None or self._plane.is_confirmed(wait.version)
