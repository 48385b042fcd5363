"""Delay the answer to a producer's detach or close until each complete delivery that came before was passed on.

The answer comes at the latest when none of the deliveries has moved for ``path_wait_s``.

A producer that sends, settles and leaves at once has done its part, but its deliveries may still wait in the router,
for a taker, for room or for a circuit. A detach with an error, the end of a session and the loss of a connection take
effect at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from router.forwarding.anonymous import AnonymousProducer
from router.forwarding.ends import Inlet
from router.timers import Timer, Timers
from wire.endpoint import Endpoint
from wire.events import Event, LinkDetached
from wire.link import Link

Progress = tuple[tuple[int, ...], ...]
# A union in the call would be made anew for each event of a connection.
_PRODUCERS = (Inlet, AnonymousProducer)


@dataclass(slots=True, eq=False)
class _Leaver:
    links: list[Link]
    obey: Callable[[], None]
    timer: Timer
    progress: Progress

    @property
    def has_more(self) -> bool:
        return any(map(_has_more, self.links))


class DetachWaits:
    """The detaches and closes of clients that are kept until the client's deliveries were passed on.

    ``obey(event)`` is called to carry out a detach, once the link's complete deliveries were all passed on, or none
    moved for ``patience_s``.
    """

    def __init__(self, timers: Timers, patience_s: float, obey: Callable[[LinkDetached], None]) -> None:
        self._timers = timers
        self._patience_s = patience_s
        self._obey = obey
        self.leavers: dict[Link | Endpoint, _Leaver] = {}

    def keeps(self, event: Event) -> bool:
        """Keep ``event`` for later, and return True, if ``event`` is a detach that has to wait; else return False.

        A detach has to wait if it has no error and complete deliveries of its link wait at this router.
        """
        if not isinstance(event, LinkDetached) or not _has_more(event.link) or event.error is not None:
            return False
        link = event.link
        if link.is_gone or link.has_left or link.session.is_over:
            return False
        self._wait_for(link, [link], lambda: self._detach(event))
        return True

    def may_close(self, endpoint: Endpoint) -> bool:
        """Return True if no complete delivery of ``endpoint``'s links waits here: the peer's close may be answered now.

        Else keep the close, to be answered once these deliveries were passed on, and return False.
        """
        links = [link for link in endpoint.links if _has_more(link)]
        if links:
            self._wait_for(endpoint, links, endpoint.answer_close)
        return not links

    def look(self) -> None:
        """Carry out each kept detach and close whose deliveries were all passed on; called when some may have moved."""
        for who in [who for who, leaver in self.leavers.items() if not leaver.has_more]:
            self._end(who)

    def _wait_for(self, who: Link | Endpoint, links: list[Link], obey: Callable[[], None]) -> None:
        self.leavers[who] = _Leaver(links, obey, self._watch(who), _progress(links))

    def _watch(self, who: Link | Endpoint) -> Timer:
        return self._timers.after(self._patience_s, lambda: self._on_late(who))

    def _on_late(self, who: Link | Endpoint) -> None:
        leaver = self.leavers[who]
        progress = _progress(leaver.links)
        if progress == leaver.progress:
            self._end(who)
        else:
            leaver.progress, leaver.timer = progress, self._watch(who)

    def _end(self, who: Link | Endpoint) -> None:
        leaver = self.leavers.pop(who)
        leaver.timer.cancel()
        leaver.obey()

    def _detach(self, event: LinkDetached) -> None:
        if not event.link.is_gone and not event.link.has_left:
            self._obey(event)


def _has_more(link: Link) -> bool:
    owner = link.owner
    return isinstance(owner, _PRODUCERS) and not link.is_gone and owner.has_more


def _progress(links: list[Link]) -> Progress:
    owners = [link.owner for link in links]
    return tuple(owner.progress for owner in owners if isinstance(owner, Inlet | AnonymousProducer))
