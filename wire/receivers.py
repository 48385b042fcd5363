"""What has the receiver of each outgoing link when nothing moves: credit that it gave, and deliveries that it keeps?

While deliveries come and go, both change all the time. So they are told of a link in its first second; then when it has
stood still for STILL_S with other numbers than were told last; and when it moves again that stood for want of credit or
with deliveries that nobody settled. Of one that moves, what is unsettled is told as none. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from addressing.link_log import STILL_S


class Receiver(Protocol):
    """The outgoing end of a link. ``deliveries_out`` rises with each; ``is_moving``: one is half written."""

    @property
    def credit(self) -> int: ...
    @property
    def unsettled_count(self) -> int: ...
    @property
    def deliveries_out(self) -> int: ...
    @property
    def is_moving(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Held:
    """Numbers of deliveries."""

    credit: int
    unsettled: int

    @property
    def is_held_up(self) -> bool:
        return self.credit == 0 or self.unsettled > 0


@dataclass(slots=True)
class _Link:
    end: Receiver
    seen: tuple[int, int, int] = field(default=(-1, -1, -1))
    since_s: float = 0.0
    told: Held | None = None


class Receivers:
    """``tell``: of a link by its number.

    Always: a link of which nothing is to be looked at has stood still for STILL_S, and what it has then was told.
    """

    def __init__(self, tell: Callable[[int, Held], None]) -> None:
        self._tell = tell
        self._links: dict[int, _Link] = {}
        self._moving: dict[int, _Link] = {}

    def on_move(self, link: int, end: Receiver) -> None:
        """It is new, or something of it may have changed."""
        self._moving[link] = self._links.setdefault(link, _Link(end))

    def forget(self, link: int) -> None:
        self._links.pop(link, None)
        self._moving.pop(link, None)

    def look(self, now: float, most: int) -> None:
        """Once a second; at ``most`` so many, in turn."""
        for number in list(islice(self._moving, most)):
            link = self._moving.pop(number)
            if not self._is_still(number, link, now):
                self._moving[number] = link

    def _is_still(self, number: int, link: _Link, now: float) -> bool:
        end = link.end
        seen = end.deliveries_out, end.unsettled_count, end.credit
        if seen != link.seen:
            link.seen, link.since_s = seen, now
        is_still = now - link.since_s >= STILL_S
        has = Held(max(0, end.credit), end.unsettled_count - end.is_moving if is_still else 0)
        if has != link.told and (is_still or link.told is None or link.told.is_held_up):
            link.told = has
            self._tell(number, has)
        return is_still
