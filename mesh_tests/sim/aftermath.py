"""Once a walk is over, all is healed and every consumer accepts: does everybody get what is due?

Every producer that is still there sends a few messages more. What must hold: it has the credit for them and hears that
they are accepted; every consumer of a multicast address or a topic gets a copy of each, and of each producer every
consumer gets them in order, from a broker those of one priority; no drain is left without an answer. In all its life
no consumer of a multicast address saw a message twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from mesh.simulation.clients import SimClient, SimReceiver, SimSender
from wire.delivery import ACCEPTED, RELEASED, Outcome, OutcomeCode

if TYPE_CHECKING:
    from mesh_tests.sim.walk import Walk

EACH = 5
PADDINGS = (50, 20_000, 150_000)
"""The last comes in parts, so it takes a circuit of its own."""
COPIED_BYTES = 65536
STANDSTILL_S, LONGEST_S = 20.0, 300.0
TO_ALL = ("prices", "news")
BY_PRIORITY = ("orders", "news")
"""A broker gives the most urgent first."""
SHARDED = "sharded"
"""Between two brokers there is no order."""


class Aftermath:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.senders = [each for each in walk.senders if _is_there(each)]
        self.receivers = [each for each in walk.receivers if _is_there(each)]
        self.sent: dict[SimSender, list[int]] = {sender: [] for _, _, sender in self.senders}
        """By the numbers that the messages say, in order."""

    def check(self) -> None:
        assert not (undrained := self.undrained()), f"drains without an answer: {undrained}"
        self.send_once_more()
        assert not (unaccepted := self.unaccepted()), f"not accepted: {unaccepted}"
        assert not (missing := self.not_copied()), f"no copy of {missing}"
        assert not (out_of_order := self.out_of_order()), f"out of order: {out_of_order}"
        assert not (copies := self.second_copies()), f"seen twice: {copies}"

    def undrained(self) -> list[str]:
        return [address for address, _, receiver in self.receivers if receiver.link.is_drain_pending]

    def send_once_more(self) -> None:
        """Each of them one after the other as long as it has credit: small ones come right behind large ones."""
        self._wait(self._have_all_sent)
        starved = [(address, sender.link.name) for address, _, sender in self.senders if self._left(sender)]
        assert not starved, f"starved: {starved}"
        self._wait(lambda: not self.unaccepted() and not self.not_copied())
        self.walk.mesh.run(1)

    def _have_all_sent(self) -> bool:
        for address, client, sender in self.senders:
            while self._left(sender) and self.walk.can_begin(client, sender):
                padding = self.walk.random.choice(PADDINGS)
                self.sent[sender].append(self.walk.send_one(address, sender, padding))
        return not any(map(self._left, self.sent))

    def _left(self, sender: SimSender) -> int:
        return EACH - len(self.sent[sender])

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Until nothing has moved for 20 s: twice the time after which a consumer that takes nothing is left out of a
        multicast. Hundreds of consumers that have a copy each take their time on a real machine."""
        now, moved = self.walk.mesh.now, self._moved()
        end, last = now + STANDSTILL_S, now + LONGEST_S
        while not condition() and self.walk.mesh.now < min(end, last):
            self.walk.serve()
            self.walk.mesh.run(0.05)
            if moved != (moved := self._moved()):
                end = self.walk.mesh.now + STANDSTILL_S

    def _moved(self) -> int:
        """A number that grows with each message and outcome."""
        arrived = sum(len(receiver.messages) for _, _, receiver in self.receivers)
        return arrived + sum(len(sender.outcomes) for _, _, sender in self.senders)

    def unaccepted(self) -> list[tuple[int, object]]:
        """Numbers of messages that were not accepted, with the outcome that they have."""
        return [
            (number, sender.outcomes.get(count))
            for sender, sent in self.sent.items()
            for count, number in self.walk.numbers[sender].items()
            if number in sent and not self._is_done(number, sender.outcomes.get(count))
        ]

    def _is_done(self, number: int, outcome: object) -> bool:
        """What is too large to be kept may come back to its producer from where a consumer rests."""
        sent = self.walk.sent[number]
        is_recalled = outcome == RELEASED and len(sent.body) > COPIED_BYTES and self._has_recalls(sent.address)
        is_refused = (
            sent.address in self.walk.REFUSING and isinstance(outcome, Outcome) and outcome.kind is OutcomeCode.REJECTED
        )
        return outcome == ACCEPTED or is_recalled or is_refused

    def not_copied(self) -> list[tuple[str, int, str]]:
        """What a consumer of a multicast address or a topic did not get, and which one. Those that share are as one."""
        seen: dict[int, set[int]] = {}
        who: dict[int, tuple[str, str]] = {}
        for address, client, receiver in self.receivers:
            if address in TO_ALL:
                sharers = self.walk.sharers(receiver)
                seen.setdefault(sharers, set()).update(self.walk.seen(receiver))
                who[sharers] = address, client.endpoint.settings.container_id
        return [
            (address, number, name)
            for sharers, (address, name) in who.items()
            for number in self._sent_to(address) - seen[sharers]
        ]

    def _sent_to(self, address: str) -> set[int]:
        return {number for sent in self.sent.values() for number in sent if self.walk.sent[number].address == address}

    def out_of_order(self) -> list[tuple[str, list[int]]]:
        """What consumers saw of one producer, where that is not the order in which it was sent."""
        return [
            (address, seen)
            for address, _, receiver in self.receivers
            for expected in self._in_order(address)
            if address != SHARDED and not self._has_recalls(address)
            if (seen := [number for number in self.walk.seen(receiver) if number in expected]) != sorted(seen)
        ]

    def _in_order(self, address: str) -> list[set[int]]:
        """Of what was sent, those of each producer that must not overtake each other."""
        level_of = self.walk.priority_of if address in BY_PRIORITY else lambda _: 0
        ordered: dict[tuple[SimSender, int], set[int]] = {}
        for sender, sent in self.sent.items():
            for number in sent:
                ordered.setdefault((sender, level_of(number)), set()).add(number)
        return list(ordered.values())

    def _has_recalls(self, address: str) -> bool:
        """What waited at a consumer who rests comes behind what went to another meanwhile."""
        return any(address == there and receiver in self.walk.resting for there, _, receiver in self.receivers)

    def second_copies(self) -> list[int]:
        all_seen = [self.walk.seen(receiver) for address, _, receiver in self.walk.receivers if address == "prices"]
        return [number for seen in all_seen for number, times in Counter(seen).items() if times > 1]


def _is_there(end: tuple[str, SimClient, SimSender | SimReceiver]) -> bool:
    _, client, party = end
    return not client.closed and bool(party.link.is_open)
