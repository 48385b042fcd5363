"""What has each link when nothing moves: credit that its receiver gave, and deliveries that this one keeps?

While deliveries come and go, both change all the time. So they are told of a link in its first second; then when it has
stood still for STILL_S with other numbers than were told last; and when it moves again that stood for want of credit or
with deliveries that nobody settled. Of one that moves, what is unsettled is told as none. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from addressing.link_log import STILL_S


class LinkEnd(Protocol):
    """``kept_count``: complete deliveries without an outcome, None of an incoming link, which is not asked for them;
    ``moved_count`` rises with each delivery."""

    @property
    def credit(self) -> int: ...
    @property
    def kept_count(self) -> int | None: ...
    @property
    def moved_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Has:
    """Numbers of deliveries."""

    credit: int
    unsettled: int | None

    @property
    def is_held_up(self) -> bool:
        """Of an incoming link that is told as time without credit."""
        return self.unsettled is not None and (self.credit == 0 or self.unsettled > 0)


@dataclass(slots=True)
class _Link:
    end: LinkEnd
    seen: tuple[int, int | None, int] | None = None
    since_s: float = 0.0
    told: Has | None = None


class Standstill:
    """``tell``: of a link by its number.

    Always: a link of which nothing is to be looked at has stood still for STILL_S, and what it has then was told.
    """

    def __init__(self, tell: Callable[[int, Has], None]) -> None:
        self._tell = tell
        self._links: dict[int, _Link] = {}
        self._moving: dict[int, _Link] = {}

    def __len__(self) -> int:
        """Links that are known."""
        return len(self._links)

    def on_move(self, number: int, end: LinkEnd) -> None:
        """It is new, or something of it may have changed."""
        link = self._links.get(number)
        if link is None:
            link = self._links[number] = _Link(end)
        self._moving[number] = link

    def on_told(self, number: int, credit: int) -> None:
        """Another record has said so of an incoming link."""
        link = self._links.get(number)
        if link is not None:
            link.told = Has(credit, None)

    def forget(self, number: int) -> None:
        self._links.pop(number, None)
        self._moving.pop(number, None)

    def look(self, now: float, most: int) -> None:
        """Once a second; at ``most`` so many, in turn."""
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
        has = Has(max(0, end.credit), kept if is_still or kept is None else 0)
        if has != link.told and (is_still or link.told is None or link.told.is_held_up):
            link.told = has
            self._tell(number, has)
        return is_still
