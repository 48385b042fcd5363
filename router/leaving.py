"""When is a detach answered? Once every complete delivery that came before it went on.

A producer that sends, settles and leaves at once has done all it has to: what it sent may still wait here, for a taker,
for room or for a circuit. A detach with an error, or of a session or connection that is lost, is obeyed at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from router.forwarding.anonymous import AnonymousProducer
from router.forwarding.ends import Inlet
from router.timers import Timer, Timers
from wire.events import Event, LinkDetached
from wire.link import Link


@dataclass(slots=True)
class _Leaver:
    event: LinkDetached
    progress: tuple[int, ...]
    timer: Timer


class Leaving:
    """``obey(event)`` carries a detach out. Nobody is waited for longer than ``patience_s`` without progress."""

    def __init__(self, timers: Timers, patience_s: float, obey: Callable[[LinkDetached], None]) -> None:
        self._timers = timers
        self._patience_s = patience_s
        self._obey = obey
        self.leavers: dict[Link, _Leaver] = {}

    def keeps(self, event: Event) -> bool:
        """True when it is a detach that has to wait."""
        if not isinstance(event, LinkDetached) or not _has_more(event.link) or event.error is not None:
            return False
        link = event.link
        if link.is_gone or link.has_left or link.session.is_over:
            return False
        self.leavers[link] = _Leaver(event, _progress(link), self._watch(link))
        return True

    def look(self) -> None:
        """Something moved, perhaps the last of what was waited for."""
        for link in [link for link in self.leavers if not _has_more(link)]:
            self._end(link)

    def _watch(self, link: Link) -> Timer:
        return self._timers.after(self._patience_s, lambda: self._on_late(link))

    def _on_late(self, link: Link) -> None:
        leaver = self.leavers[link]
        progress = leaver.progress
        leaver.progress = _progress(link)
        if leaver.progress == progress:
            self._end(link)
        else:
            leaver.timer = self._watch(link)

    def _end(self, link: Link) -> None:
        leaver = self.leavers.pop(link)
        leaver.timer.cancel()
        if not link.is_gone and not link.has_left:
            self._obey(leaver.event)


def _has_more(link: Link) -> bool:
    owner = link.owner
    return isinstance(owner, Inlet | AnonymousProducer) and not link.is_gone and owner.has_more


def _progress(link: Link) -> tuple[int, ...]:
    owner = link.owner
    return owner.progress if isinstance(owner, Inlet | AnonymousProducer) else ()
