"""Turns in which a node tells the owners of links that the links' connection is lost.

Thousands of links may be lost at once with a connection between two nodes. A node that told all owners in one go would
serve nobody for so long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wire.endpoint import Endpoint
from wire.link import Link, OutgoingLink

LINKS_AT_ONCE = 32
TURN_S = 0.001
"""The time between two turns; the node serves its other inputs in between."""


def _nothing() -> None:
    pass


@dataclass(slots=True)
class _Loss:
    links: list[Link]
    """The links whose owners are not told yet, the next one last."""
    tell: Callable[[Link], None]
    done: Callable[[], None]


class LostLinks:
    """Tells the owners of the links of lost connections: of 32 links at once, of the others in turns of 32 links.

    ``want_turn()`` is called when `take_turn` is to be called after `TURN_S`.
    """

    def __init__(self, want_turn: Callable[[], None]) -> None:
        self._want_turn = want_turn
        self._losses: dict[Endpoint, _Loss] = {}

    def on_closed(self, endpoint: Endpoint, tell: Callable[[Link], None]) -> None:
        """Call ``tell`` for each link of ``endpoint``, whose peer has closed the connection, for the first 32 now.

        `on_lost` follows, perhaps while links are left.
        """
        self._begin(endpoint, _Loss(endpoint.links[::-1], tell, _nothing))

    def on_lost(self, endpoint: Endpoint, tell: Callable[[Link], None], done: Callable[[], None] = _nothing) -> None:
        """Call ``tell`` for each link of ``endpoint``, whose connection is gone, for the first 32 now; then ``done``.

        An endpoint with more links is kept (`Endpoint.is_kept`), and freed after ``done``. No link has credit any more,
        so what arrives for a link whose owner is not told yet waits for another path.
        """
        for link in endpoint.links:
            if isinstance(link, OutgoingLink):
                link.end_credit()
        if not self._begin(endpoint, _Loss(endpoint.links[::-1], tell, done)):
            endpoint.is_kept = True
            # A delivery that the node passes to a lost link before its owner is told counts as never written.
            endpoint.is_output_blocked = True

    def _begin(self, endpoint: Endpoint, loss: _Loss) -> bool:
        """Take the first turn, and keep ``loss`` for others; return whether no link is left."""
        has_turn = bool(self._losses)
        self._losses.pop(endpoint, None)
        if _go_on(loss):
            loss.done()
            return True
        self._losses[endpoint] = loss
        if not has_turn:
            self._want_turn()
        return False

    def take_turn(self) -> None:
        """Tell the owners of the next 32 links; do nothing if none are left."""
        try:
            for endpoint, loss in list(self._losses.items())[:1]:
                if _go_on(loss):
                    del self._losses[endpoint]
                    loss.done()
                    if endpoint.is_kept:
                        endpoint.free()
        finally:
            if self._losses:
                self._want_turn()


def _go_on(loss: _Loss) -> bool:
    """Tell the owners of the next links; return whether none is left."""
    for _ in range(min(LINKS_AT_ONCE, len(loss.links))):
        loss.tell(loss.links.pop())
    return not loss.links
