"""Whatever operators, producers and consumers do, a page shows what is in a queue, and what was asked for is done."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mesh_tests.unit.broker.operator import DURABLE, Operator
from mesh_tests.unit.broker.rig import Received, Rig, topology_with
from wire.delivery import ACCEPTED, MODIFIED_FAILED, RELEASED, rejected

ADDRESSES = {
    "orders": {"type": "queue", "dead_letter": "dead"},
    "dead": "queue",
    "parked": "queue",
    "news.#": "topic",
}
QUEUES = ("orders", "dead", "parked")
PLACES = (*QUEUES, "one", "two")
"""Queues, and the two subscriptions to the topic."""


class Shown:
    """A message as the model knows it in one place. ``number`` is 0 until a page showed it."""

    def __init__(self, body: str, *, origin: str | None = None) -> None:
        self.body, self.origin = body, origin
        self.attempts = 0
        self.number = 0
        self.received: Received | None = None


class BrowseWalk(RuleBasedStateMachine):
    """The model has the messages of each place in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.rig = Rig(self.directory / "data", topology_with(ADDRESSES))
        self.model: dict[str, list[Shown]] = {place: [] for place in PLACES}
        self.next_body = self.consumer_count = 0
        for name in ("one", "two"):
            self.rig.client("reader").consumer("news.#", name=name, **DURABLE).detach()
        self._connect()
        self.fill("orders", [4])
        self.fill("dead", [4])
        self.fill("parked", [4])

    def _connect(self) -> None:
        self.operator = Operator(self.rig)
        self.client = self.rig.client("user")
        self.producers = {address: self.client.producer(address, address) for address in (*QUEUES, "news.sport")}

    def teardown(self) -> None:
        self.rig.store.close()
        shutil.rmtree(self.directory)

    # Producers and consumers

    @rule(address=st.sampled_from(QUEUES), priorities=st.lists(st.integers(0, 9), min_size=1, max_size=6))
    def fill(self, address: str, priorities: list[int]) -> None:
        for priority in priorities:
            self.next_body += 1
            self.producers[address].send(str(self.next_body), priority=priority)
            self.model[address].append(Shown(str(self.next_body)))

    @rule()
    def publish(self) -> None:
        self.next_body += 1
        self.producers["news.sport"].send(str(self.next_body))
        for place in ("one", "two"):
            self.model[place].append(Shown(str(self.next_body)))

    @rule(
        address=st.sampled_from(QUEUES),
        credit=st.integers(1, 4),
        verdicts=st.lists(st.sampled_from(["accept", "reject", "release", "fail", "hold"]), min_size=4, max_size=4),
    )
    def consume(self, address: str, credit: int, verdicts: list[str]) -> None:
        # Without credit to spare, a message that goes back is not given to the same consumer again.
        credit = min(credit, len(self._free(address)))
        if not credit:
            return
        # A link of the same name in a container of the same name would take the place of an earlier one.
        self.consumer_count += 1
        client = self.rig.client(f"consumer {self.consumer_count}")
        consumer = client.consumer(address, credit=credit)
        for received, verdict in zip(consumer.received[:credit], verdicts, strict=False):
            message = self._find(address, received.message.body)
            if verdict == "hold":
                message.received = received
                continue
            if verdict in ("accept", "reject"):
                self.model[address].remove(message)
            if verdict == "fail":
                message.attempts += 1
            if verdict == "reject" and address == "orders":
                self.model["dead"].append(Shown(message.body, origin="orders"))
            received.give(
                {
                    "accept": ACCEPTED,
                    "reject": rejected("amqp:internal-error", "no"),
                    "release": RELEASED,
                    "fail": MODIFIED_FAILED,
                }[verdict]
            )

    def _find(self, place: str, body: str) -> Shown:
        (found,) = [each for each in self.model[place] if each.body == body and each.received is None][:1]
        return found

    @precondition(lambda self: any(each.received for messages in self.model.values() for each in messages))
    @rule()
    def give_back(self) -> None:
        for messages in self.model.values():
            for each in messages:
                if each.received is not None:
                    each.received.give(RELEASED)
                    each.received = None

    @rule(is_orderly=st.booleans())
    def restart(self, is_orderly: bool) -> None:
        self.give_back()
        self.rig.now += 1
        before = [each.number for messages in self.model.values() for each in messages]
        if is_orderly:
            self.rig.restart()
        else:
            self.rig.crash()
        self._connect()
        # A crash may raise the count of what a consumer may have seen, and puts messages into the order of their ids.
        for place, messages in self.model.items():
            pages = {each["body"]["text"]: each for each in self._pages(place, 100)}
            for each in messages:
                assert pages[each.body]["attempts"] >= each.attempts
                each.attempts = pages[each.body]["attempts"]
                each.number = pages[each.body]["number"]
                assert each.number > max(before)
            messages.sort(key=lambda each: each.number)

    # Operators

    def _arguments(self, place: str) -> dict[str, Any]:
        if place in QUEUES:
            return {"address": place}
        return {"address": "news.#", "subscriber": f"reader|{place}"}

    def _pages(self, place: str, limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = None
        while True:
            (page,) = self.operator.do("browse", **self._arguments(place), bodies=True, after=after, limit=limit)
            found += page["messages"]
            after = page["next"]
            if after is None:
                return found

    def _free(self, place: str) -> list[Shown]:
        return [each for each in self.model[place] if each.received is None]

    @rule(place=st.sampled_from(PLACES), share=st.floats(0, 1))
    def purge_up_to(self, place: str, share: float) -> None:
        every = self.model[place]
        up_to = every[int(share * (len(every) - 1))].number if every else 1
        gone = [each for each in self._free(place) if each.number <= up_to]
        assert self.operator.count("purge", **self._arguments(place), up_to=up_to) == len(gone)
        self.model[place] = [each for each in every if each not in gone]

    @rule(place=st.sampled_from(PLACES), picks=st.lists(st.integers(0, 20), min_size=1, max_size=5))
    def remove(self, place: str, picks: list[int]) -> None:
        numbers = self._picked(place, picks)
        gone = [each for each in self._free(place) if each.number in numbers]
        (found,) = self.operator.do("remove", **self._arguments(place), numbers=numbers)
        self._check(place, found, numbers, gone)
        self.model[place] = [each for each in self.model[place] if each not in gone]

    def _picked(self, place: str, picks: list[int]) -> list[int]:
        every = self.model[place]
        return [every[pick].number if pick < len(every) else 10**15 + pick for pick in picks]

    def _check(self, place: str, found: dict[str, Any], numbers: list[int], done: list[Shown]) -> None:
        known = {each.number: each for each in self.model[place]}
        assert found["messages"] == len(done)
        assert found["missing"] == sorted({number for number in numbers if number not in known})
        assert found["locked"] == sorted(
            {number for number in numbers if number in known and known[number].received is not None}
        )

    @rule(place=st.sampled_from(("orders", "dead", "one")), picks=st.lists(st.integers(0, 20), min_size=1, max_size=5))
    def move_numbers(self, place: str, picks: list[int]) -> None:
        numbers = self._picked(place, picks)
        there = {each.body for each in self.model["parked"]} if place == "one" else set()
        gone = [each for each in self._free(place) if each.number in numbers and each.body not in there]
        source = self._arguments(place)
        source["source"] = source.pop("address")
        (found,) = self.operator.do("move", **source, target="parked", numbers=numbers)
        self._check(place, found, numbers, gone)
        self._moved(place, "parked", gone, is_back=False)

    @rule(up_to_share=st.floats(0, 1))
    def move_up_to(self, up_to_share: float) -> None:
        every = self.model["orders"]
        up_to = every[int(up_to_share * (len(every) - 1))].number if every else 1
        gone = [each for each in self._free("orders") if each.number <= up_to]
        # The move is in the order of delivery: a page tells priorities.
        priorities = {each["number"]: each["priority"] for each in self._pages("orders", 100)}
        gone.sort(key=lambda each: (-priorities[each.number], each.number))
        assert self.operator.count("move", source="orders", target="parked", up_to=up_to) == len(gone)
        self._moved("orders", "parked", gone, is_back=False)

    @rule(picks=st.lists(st.integers(0, 20), min_size=1, max_size=5))
    def redrive_numbers(self, picks: list[int]) -> None:
        numbers = self._picked("dead", picks)
        gone = [each for each in self._free("dead") if each.number in numbers and each.origin == "orders"]
        stay = [each for each in self._free("dead") if each.number in numbers and each.origin is None]
        (answer,) = self.operator.ask("redrive", address="dead", numbers=numbers)
        if not gone and stay:
            assert not answer["ok"]
            return
        self._check("dead", answer["redrive"], numbers, gone)
        self._moved("dead", "orders", gone, is_back=True)

    def _moved(self, place: str, target: str, gone: list[Shown], *, is_back: bool) -> None:
        self.model[place] = [each for each in self.model[place] if each not in gone]
        self.model[target] += [Shown(each.body, origin=None if is_back else each.origin) for each in gone]

    # What pages show

    @invariant()
    def pages_show_what_is_there(self) -> None:
        # The answers to an operator of the rig are limited by the credit of its link.
        self.operator.client.vanish()
        self.operator = Operator(self.rig)
        for place, messages in self.model.items():
            pages = self._pages(place, 3)
            assert [(each["body"]["text"], each["is_locked"], each["attempts"]) for each in pages] == [
                (each.body, each.received is not None, each.attempts) for each in messages
            ]
            numbers = [each["number"] for each in pages]
            assert numbers == sorted(set(numbers))
            for each, page in zip(messages, pages, strict=True):
                assert each.number in (0, page["number"])
                each.number = page["number"]
                if each.origin is not None:
                    assert (page["reason"], page["origin"]) == ("rejected", each.origin)


TestBrowseWalk = BrowseWalk.TestCase
TestBrowseWalk.settings = settings(
    max_examples=8,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # A failure is shown as found: to shrink it takes longer than a test may.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
