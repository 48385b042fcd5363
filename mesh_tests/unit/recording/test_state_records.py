"""What finds no room in the ring is told later: whoever listened knows then what is there, and nothing else."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from linklogs.writer.live_state import LiveState
from mesh_tests.rings import Ring
from mesh_tests.seeds import seeds
from recording import ring_format as layout
from recording.columns import RecordEvent, RecordKind
from recording.pending_records import PendingRecords
from recording.records import Recorder
from recording.state_records import AT_ONCE, LEAST_STARVED_US, StateRecorder

Row = dict[str, Any]


def teller_on(ring: Ring) -> StateRecorder:
    return StateRecorder(Recorder(ring.memory, "full"))


def row(kind: RecordKind, event: RecordEvent | None, **columns: Any) -> Row:
    return {"kind": kind, **({"event": event} if event is not None else {}), **columns}


def late(*rows: Row) -> list[Row]:
    untold = PendingRecords()
    for each in rows:
        untold.add(each)
    found = []
    while untold:
        found.append(untold.first())
        untold.drop_first()
    return found


OPENED = row(RecordKind.LINK, RecordEvent.OPENED, link=5, connection=1, address="orders")
CLOSED = row(RecordKind.LINK, RecordEvent.CLOSED, link=5, connection=1)
NO_CREDIT = row(RecordKind.CREDIT, RecordEvent.CHANGED, link=5, credit=0, starved_us=2000, cause="takers")
SOME_CREDIT = row(RecordKind.CREDIT, RecordEvent.CHANGED, link=5, credit=7, starved_us=3000, cause="no_taker")
UP = row(RecordKind.NEIGHBOR, RecordEvent.OPENED, neighbor="r2", cost=1)
DOWN = row(RecordKind.NEIGHBOR, RecordEvent.CLOSED, neighbor="r2", cost=1, cause="silent")


def test_what_is_there_is_told_as_what_was_there_already():
    assert late(OPENED) == [OPENED | {"event": "live"}]


def test_what_came_and_went_is_not_told_nor_is_its_credit():
    assert late(OPENED, NO_CREDIT, row(RecordKind.DROP, None, link=5, count=3), CLOSED) == []


def test_the_end_of_what_was_told_of_is_told_behind_its_credit():
    assert late(NO_CREDIT, CLOSED) == [NO_CREDIT, CLOSED]


def test_time_without_credit_adds_up_and_the_last_that_was_said_of_it_counts():
    assert late(NO_CREDIT, SOME_CREDIT) == [SOME_CREDIT | {"starved_us": 5000}]


HAS = row(RecordKind.CREDIT, RecordEvent.CHANGED, link=5, credit=3, unsettled_count=7)
DRAINED = row(RecordKind.CREDIT, RecordEvent.DRAIN, link=5, count=2, credit=0)


def test_drains_and_what_a_link_has_are_told_apart():
    assert late(DRAINED, HAS, DRAINED) == [DRAINED | {"count": 4}, HAS]
    assert late(OPENED, DRAINED, HAS, CLOSED) == []


class End:
    credit = 4
    kept_count = 0
    moved_count = 0


def test_of_links_that_are_gone_nothing_is_kept():
    teller = teller_on(Ring(1 << 12))
    for number in range(4):
        teller.is_moving(number, End())
    teller.tell_standing(1.0)
    teller.tell_detached(0, 1, None)
    teller.tell_lost(1, [1, 2], "gone")
    assert len(teller.standstill) == 1


class Sender:
    """The end of a link whose sender lacks credit now and then; times in us."""

    def __init__(self) -> None:
        self.link: Any = SimpleNamespace(credit=5)
        self.starved_us = 0

    @property
    def starves(self) -> bool:
        return bool(self.link.credit == 0)

    def take_starved_us(self) -> int:
        taken, self.starved_us = self.starved_us, 0
        return taken


def second_of(teller: StateRecorder, sender: Sender, ring: Ring) -> list[Row]:
    teller.tell_starving(lambda link, end: "takers")
    return [each for each in ring.take()[1] if each["kind"] == "credit"]


def lacks(sender: Sender, teller: StateRecorder, credit: int, starved_us: int) -> None:
    sender.link.credit, sender.starved_us = credit, starved_us
    teller.is_starving(7, sender)


def test_the_end_of_a_lack_of_credit_is_told_once_however_short_its_rest_was():
    ring, sender = Ring(1 << 10), Sender()
    teller = teller_on(ring)
    lacks(sender, teller, 0, 5000)
    assert second_of(teller, sender, ring) == [NO_CREDIT | {"link": 7, "starved_us": 5000}]
    sender.link.credit, sender.starved_us = 9, 300
    assert second_of(teller, sender, ring) == [row(RecordKind.CREDIT, RecordEvent.CHANGED, link=7, credit=9)]
    assert second_of(teller, sender, ring) == []


def test_a_lack_that_was_over_before_it_was_told_has_no_record_of_its_end():
    ring, sender = Ring(1 << 10), Sender()
    teller = teller_on(ring)
    lacks(sender, teller, 3, 300)
    assert second_of(teller, sender, ring) == []
    lacks(sender, teller, 3, 3000)
    assert second_of(teller, sender, ring) == [NO_CREDIT | {"link": 7, "starved_us": 3000, "credit": 3}]
    assert second_of(teller, sender, ring) == []


def test_nothing_is_told_of_the_end_of_a_lack_once_the_link_is_gone():
    ring, sender = Ring(1 << 10), Sender()
    teller = teller_on(ring)
    lacks(sender, teller, 0, 5000)
    second_of(teller, sender, ring)
    teller.tell_detached(7, 1, None)
    lacks(sender, teller, 3, 0)
    assert second_of(teller, sender, ring) == []


@pytest.mark.parametrize("seed", seeds(20))
def test_a_reader_always_knows_who_lacks_credit_by_one_record_a_second_at_most(seed: int):
    chance, ring, sender = random.Random(seed), Ring(1 << 14), Sender()
    teller = teller_on(ring)
    sure_us, waits = 0, False
    for _ in range(500):
        starved_us = chance.choice((0, 300, 900, 2000, 1_000_000))
        if starved_us or sender.starves:
            lacks(sender, teller, chance.choice((0, 4)) if starved_us else 4, starved_us)
        sure_us += starved_us if starved_us >= LEAST_STARVED_US else 0
        rows = second_of(teller, sender, ring)
        assert len(rows) <= 1
        for each in rows:
            waits = each["credit"] == 0 and "cause" in each
            sure_us -= each.get("starved_us", 0)
        assert not waits or sender.starves
        assert waits or not sender.starves or starved_us < LEAST_STARVED_US
    assert sure_us == 0


def test_copies_that_were_missed_add_up():
    missed = row(RecordKind.DROP, None, link=5, count=3, cause="stalled")
    assert late(missed, missed) == [missed | {"count": 6}]


def test_a_neighbor_that_was_lost_and_is_back_is_there_and_one_that_is_lost_again_is_not():
    assert late(DOWN, UP | {"cost": 4}) == [UP | {"event": "live", "cost": 4}]
    assert late(DOWN, UP, DOWN) == [DOWN]


def test_a_change_of_what_is_still_to_be_told_goes_with_it():
    queue = row(RecordKind.QUEUE, RecordEvent.OPENED, queue=3, address="orders")
    depth = row(RecordKind.QUEUE, RecordEvent.CHANGED, queue=3, depth_count=9)
    assert late(queue, depth) == [queue | {"event": "live", "depth_count": 9}]
    assert late(depth, depth | {"depth_count": 2}) == [depth | {"depth_count": 2}]


def test_a_queue_that_is_empty_by_then_has_no_age():
    full = row(RecordKind.QUEUE, RecordEvent.CHANGED, queue=3, depth_count=9, oldest_us=5000)
    empty = row(RecordKind.QUEUE, RecordEvent.CHANGED, queue=3, depth_count=0)
    assert late(full, empty) == [empty]


def test_what_has_no_room_is_told_once_there_is_some_and_only_once():
    ring = Ring(10)
    teller = teller_on(ring)
    for number in range(1, 6):
        teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=number, address="orders")
    told = ring.take()[1]
    assert len(told) == 3
    while len(told) < 5:
        teller.end_second()
        more = ring.take()[1]
        assert more
        told += more
    assert [each["link"] for each in told] == [1, 2, 3, 4, 5]
    assert {each["event"] for each in told[3:]} == {"live"}
    teller.end_second()
    assert ring.take() == ([], [])


def test_only_what_could_not_be_told_when_it_happened_counts_as_dropped():
    ring = Ring(16)
    teller = teller_on(ring)
    for number in range(20):
        teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=number, address="orders")
    dropped = ring.number(layout.DROPPED_AT)
    assert dropped > 0
    for _ in range(20):
        teller.end_second()
    assert ring.number(layout.DROPPED_AT) == dropped


def test_what_is_longer_than_the_ring_keeps_nobody_from_telling_more():
    ring = Ring(16)
    teller = teller_on(ring)
    teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=1, address="x" * 1000)
    teller.tell(RecordKind.LINK, RecordEvent.OPENED, link=2)
    assert [each["link"] for each in ring.take()[1]] == [2]
    assert ring.number(layout.DROPPED_AT) == 1


def test_in_one_second_no_more_is_told_late_than_a_loop_can_do_beside_its_work():
    ring = Ring(1 << 16)
    teller = teller_on(ring)
    number = 0
    while ring.number(layout.DROPPED_AT) == 0:
        number += 1
        teller.tell(RecordKind.QUEUE, RecordEvent.OPENED, queue=number, address="x" * 200)
    for each in range(2 * AT_ONCE + 500):
        teller.tell(RecordKind.QUEUE, RecordEvent.OPENED, queue=number + each, address="x" * 200)
    ring.take()
    counts = []
    for _ in range(4):
        teller.end_second()
        counts.append(len(ring.take()[1]))
    assert counts == [AT_ONCE, AT_ONCE, 500, 0]


class Node:
    """A life that is told of; ``live`` is what is there, as a file would list it."""

    def __init__(self, random: random.Random, teller: StateRecorder) -> None:
        self._random = random
        self._teller = teller
        self._last = 0
        self.live: dict[tuple[RecordKind, Any], Row] = {}
        self.starved_us: dict[int, int] = {}

    def step(self) -> None:
        self._random.choice([self.connect, self.attach, self.attach, self.detach, self.starve, self.route, self.lose])()

    def connect(self) -> None:
        self._last += 1
        self._tell(RecordKind.CONNECTION, RecordEvent.OPENED, self._last, connection=self._last, container="c")

    def attach(self) -> None:
        connections = self._all(RecordKind.CONNECTION)
        if connections:
            self._last += 1
            connection = self._random.choice(connections)
            self._tell(
                RecordKind.LINK,
                RecordEvent.OPENED,
                self._last,
                link=self._last,
                connection=connection,
                address="a" * 40,
            )

    def detach(self) -> None:
        links = self._all(RecordKind.LINK)
        if links:
            self._close(RecordKind.LINK, self._random.choice(links), "link")

    def starve(self) -> None:
        links = self._all(RecordKind.LINK)
        if links:
            link, starved_us = self._random.choice(links), self._random.randint(1, 1000)
            self._teller.tell(
                RecordKind.CREDIT, RecordEvent.CHANGED, link=link, credit=self._last, starved_us=starved_us
            )
            self.live[RecordKind.CREDIT, link] = row(RecordKind.CREDIT, RecordEvent.LIVE, link=link, credit=self._last)
            self.starved_us[link] = self.starved_us.get(link, 0) + starved_us

    def route(self) -> None:
        router, cost = f"r{self._random.randint(1, 3)}", self._random.randint(1, 5)
        is_known = (RecordKind.NEIGHBOR, router) in self.live
        event = RecordEvent.CHANGED if is_known else RecordEvent.OPENED
        self._tell(RecordKind.NEIGHBOR, event, router, neighbor=router, cost=cost)

    def lose(self) -> None:
        connections = self._all(RecordKind.CONNECTION)
        if self._random.random() < 0.3 and connections:
            connection = self._random.choice(connections)
            links = [
                link
                for link in self._all(RecordKind.LINK)
                if self.live[RecordKind.LINK, link]["connection"] == connection
            ]
            self._teller.tell_lost(connection, links, "lost")
            for link in links:
                self._forget(RecordKind.LINK, link)
            self._forget(RecordKind.CONNECTION, connection)
        for router in self._all(RecordKind.NEIGHBOR)[:1]:
            self._close(RecordKind.NEIGHBOR, router, "neighbor")

    def _all(self, kind: RecordKind) -> list[Any]:
        return [key for each, key in self.live if each is kind]

    def _tell(self, kind: RecordKind, event: RecordEvent, key: Any, **columns: Any) -> None:
        self._teller.tell(kind, event, **columns)
        self.live[kind, key] = row(kind, RecordEvent.LIVE, **columns)

    def _close(self, kind: RecordKind, key: Any, column: str) -> None:
        self._teller.tell(kind, RecordEvent.CLOSED, **{column: key})
        self._forget(kind, key)

    def _forget(self, kind: RecordKind, key: Any) -> None:
        del self.live[kind, key]
        if kind is RecordKind.LINK:
            self.live.pop((RecordKind.CREDIT, key), None)


@pytest.mark.parametrize("seed", seeds(60))
def test_however_often_there_is_no_room_its_reader_knows_in_the_end_what_is_there(seed: int):
    chance = random.Random(seed)
    ring = Ring(chance.randint(24, 120))
    teller = teller_on(ring)
    node, reader = Node(chance, teller), LiveState({})
    told: list[Row] = []

    def listen() -> None:
        found = ring.take()[1]
        told.extend(found)
        for each in found:
            reader.on_row(each, 0)

    for _ in range(600):
        node.step()
        if chance.random() < 0.06:
            listen()
        if chance.random() < 0.1:
            teller.end_second()
    while (before := len(told)) >= 0:
        listen()
        teller.end_second()
        listen()
        if len(told) == before:
            break
    found = {(each["kind"], each[column_of(each)]): each for each in reader.rows(0, 0)[1:]}
    assert found == node.live
    for link in node._all(RecordKind.LINK):
        said = sum(each["starved_us"] for each in told if each["kind"] == RecordKind.CREDIT and each["link"] == link)
        assert said == node.starved_us.get(link, 0)
    assert ring.number(layout.DROPPED_AT) > 0


def column_of(each: Row) -> str:
    return {"credit": "link"}.get(each["kind"], each["kind"])
