"""The recordings of decisions that operators have begun: of which address, until when, and the links they name.

While an address is recorded, its groups note each decision in the node's decision record (`recording.decisions`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from addressing.address import Address
from addressing.book import AddressPolicy
from recording.decisions import Decisions
from router.forwarding.address import AddressGroup
from router.timers import Timer, Timers

MOST_SECONDS: Final = 60
MOST_AT_ONCE: Final = 8
KEPT_S: Final = 120.0
"""How long the decisions stay after the last recording is over."""


@dataclass(slots=True, eq=False)
class Recording:
    """A recording of ``address``; ``pattern``: the pattern whose circuits the address shares; None for an address
    with circuits of its own.

    ``ends``: by the number of a link, what the link leads to, of the links that decisions named so far.
    """

    number: int
    address: Address
    pattern: Address | None
    until_s: float
    timer: Timer
    ends: dict[int, dict[str, Any]] = field(default_factory=dict)


class AddressRecordings:
    """``on_changed`` is called when a recording began or ended, to mark the groups anew (`number_for`)."""

    def __init__(self, decisions: Decisions, timers: Timers, on_changed: Callable[[], None]) -> None:
        self._decisions, self._timers, self._on_changed = decisions, timers, on_changed
        self._known: dict[Address, Recording] = {}
        self._count = 0

    def begin(self, policy: AddressPolicy, seconds: object) -> dict[str, Any]:
        """Record the decisions about ``policy``'s address for ``seconds``; a recording that is on goes on for as long.

        Several operators may so record an address: the recording ends after the longest time that an operator asked
        for. Return `seconds`, those that are left, and `after`, the number of the newest decision before. Raises
        ValueError for a time out of bounds, or too many recordings at once.
        """
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds <= MOST_SECONDS:
            raise ValueError(f"seconds: expected a number above 0, and at most {MOST_SECONDS}, got {seconds!r:.80}")
        until_s = self._timers.now + seconds
        before = self._known.get(policy.address)
        if before is not None and self._is_on(before):
            if until_s > before.until_s:
                before.timer.cancel()
                before.until_s, before.timer = until_s, self._timers.after(seconds, lambda: self._end(before))
            return self._told(before)
        running = [each for each in self._known.values() if self._is_on(each)]
        if len(running) >= MOST_AT_ONCE:
            names = ", ".join(sorted(each.address.text for each in running))
            raise ValueError(f"expected at most {MOST_AT_ONCE} recorded addresses at once: {names} are recorded")
        self._decisions.open()
        self._count += 1
        timer = self._timers.after(seconds, lambda: self._end(begun))
        begun = Recording(self._count, policy.address, policy.shared, until_s, timer)
        self._known[policy.address] = begun
        self._on_changed()
        return self._told(begun)

    def _told(self, recording: Recording) -> dict[str, Any]:
        return {"seconds": recording.until_s - self._timers.now, "after": self._decisions.newest}

    def _is_on(self, recording: Recording) -> bool:
        return recording.until_s > self._timers.now

    def _end(self, recording: Recording) -> None:
        recording.until_s = min(recording.until_s, self._timers.now)
        self._on_changed()
        self._timers.after(KEPT_S, self._forget_old)

    def _forget_old(self) -> None:
        """Forget recordings that ended a while ago, and free the memory of the decisions after the last of them."""
        self._known = {
            address: each for address, each in self._known.items() if each.until_s + KEPT_S > self._timers.now
        }
        if not self._known:
            self._decisions.close()

    def number_for(self, address: Address) -> int:
        """Return the number of the recording to which the groups of ``address`` belong now; 0 for none."""
        for each in self._known.values():
            if self._is_on(each) and address in (each.address, each.pattern):
                return each.number
        return 0

    @property
    def is_any(self) -> bool:
        """True if an address is recorded now."""
        return any(map(self._is_on, self._known.values()))

    def read(
        self,
        address: Address,
        after: int,
        most: int,
        groups: Iterable[AddressGroup],
        describe: Callable[[Any], dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the first ``most`` decisions about ``address`` behind the number ``after``, and the links they name.

        ``groups``: the recorded groups; ``describe`` returns role, name and peer of a link. Raises ValueError if the
        address is not recorded, and was not a short while ago.
        """
        recording = self._known.get(address)
        if recording is None:
            raise ValueError(f"address {address.text!r} is not recorded: expected `record_decisions` first")
        rows, newest, lost = self._decisions.after(after, recording.number, most)
        named = {number for row in rows for number in _named_in(row)}
        for group in groups:
            if group.recording == recording.number:
                for end in itertools.chain[Any](group.inlets, group.takers):
                    if end.number in named:
                        recording.ends[end.number] = describe(end)
        return {
            "address": address.text,
            "seconds_left": max(0.0, recording.until_s - self._timers.now),
            "next": newest,
            "lost": lost,
            "decisions": rows,
            "links": {str(number): recording.ends[number] for number in sorted(named & recording.ends.keys())},
        }


def _named_in(row: Mapping[str, Any]) -> Iterator[int]:
    yield row["from"]
    if row["chosen"] is not None:
        yield row["chosen"]
    for candidate in row["candidates"]:
        yield candidate["link"]
