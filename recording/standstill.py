"""Records of links that stand still: the credit from the receiver, and deliveries that the receiver has not settled.

While deliveries come and go, both numbers change all the time. So both are recorded in the first second of a link; when
the link has stood still for STILL_S with numbers other than the last recorded; and when an outgoing link moves again
after a standstill without credit or with unsettled deliveries. A moving outgoing link is recorded with 0 unsettled
deliveries, an incoming link always without their number. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from recording.columns import STILL_S


class LinkEnd(Protocol):
    """A node's end of a link, incoming or outgoing, as `Standstill` reads it.

    ``kept_count``: number of deliveries sent completely and without an outcome; None for an incoming link.
    ``moved_count`` rises with each delivery, except on a link where each delivery changes ``credit``.
    """

    @property
    def credit(self) -> int: ...
    @property
    def kept_count(self) -> int | None: ...
    @property
    def moved_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Numbers that a record gives of a link: credit, and unsettled deliveries, which are None for an incoming link."""

    credit: int
    unsettled: int | None

    @property
    def is_held_up(self) -> bool:
        """Whether the receiver of an outgoing link withholds credit (0 is left) or outcomes (some are missing).

        Always false for an incoming link, whose lack of credit has records of its own.
        """
        return self.unsettled is not None and (self.credit == 0 or self.unsettled > 0)


@dataclass(slots=True)
class _Link:
    end: LinkEnd
    seen: tuple[int, int | None, int] | None = None
    since_s: float = 0.0
    told: LinkCounts | None = None


class Standstill:
    """Decides when the credit and unsettled deliveries of a link are recorded, and calls ``tell(link number, counts)``.

    Always: a link outside of ``_moving`` has stood still for STILL_S, and its last record gives its numbers.
    """

    def __init__(self, tell: Callable[[int, LinkCounts], None]) -> None:
        self._tell = tell
        self._links: dict[int, _Link] = {}
        self._moving: dict[int, _Link] = {}

    def __len__(self) -> int:
        """Return the number of links that `on_move` noted and `forget` has not dropped."""
        return len(self._links)

    def on_move(self, number: int, end: LinkEnd) -> None:
        """Note that link ``number`` is new, or may have moved deliveries, so that the next `look` checks the link."""
        link = self._links.get(number)
        if link is None:
            link = self._links[number] = _Link(end)
        self._moving[number] = link

    def on_told(self, number: int, credit: int) -> None:
        """Note that a record of time without credit gave the ``credit`` of incoming link ``number``.

        While the link has this credit, `look` does not record it again.
        """
        link = self._links.get(number)
        if link is not None:
            link.told = LinkCounts(credit, None)

    def told(self, number: int) -> LinkCounts | None:
        """Return the numbers that the last record of link ``number`` gave; None for a link without a record."""
        link = self._links.get(number)
        return link.told if link is not None else None

    def forget(self, number: int) -> None:
        self._links.pop(number, None)
        self._moving.pop(number, None)

    def look(self, now: float, most: int) -> None:
        """Check at most ``most`` of the links that are new or move, in turn, and record their numbers where due.

        The module's docstring says when a record is due. Called once a second.
        """
        for number in list(islice(self._moving, most)):
            link = self._moving.pop(number)
            if not self._is_still(number, link, now):
                self._moving[number] = link

    def _is_still(self, number: int, link: _Link, now: float) -> bool:
        end = link.end
        kept = end.kept_count
        seen = end.moved_count, kept, end.credit
        if seen != link.seen:
            link.seen, link.since_s = seen, now
        is_still = now - link.since_s >= STILL_S
        has = LinkCounts(max(0, end.credit), kept if is_still or kept is None else 0)
        if has != link.told and (is_still or link.told is None or link.told.is_held_up):
            link.told = has
            self._tell(number, has)
        return is_still
