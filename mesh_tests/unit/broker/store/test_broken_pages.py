"""Of a small store each page in turn is overwritten: what is lost then, and is everything else given out once?"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from shutil import copytree, ignore_patterns

import pytest

from broker.events import MessageUnreadable
from broker.store.batch import MessageRow, QueueKind, QueueRow, WriteBatch
from broker.store.copying import back_up
from broker.store.dump import stored_messages
from broker.store.message_index import read_index
from broker.store.read_store import reading
from broker.store.sqlite import SqliteStore
from broker.store.store_check import check
from mesh_tests.unit.broker.rig import Rig
from mesh_tests.unit.broker.store.damaging import PAGE_BYTES, checkpoint, pages_of, root_of, spoil
from wire.delivery import ACCEPTED
from wire.message import Message, decode, encode

LINK_BYTES = 4
"""A page of a long row begins with the number of the next one."""
PIECE = 24
"""Bytes by which a place among random ones is known."""
QUEUES = {1: "orders", 2: "parked"}


@dataclass(frozen=True)
class Body:
    """A message, and where its bytes lie among those of its segment."""

    segment_id: int
    begin: int
    end: int


@dataclass(frozen=True)
class Written:
    directory: Path
    bodies: dict[int, Body]
    """message_id -> where"""
    segments: dict[int, tuple[bytes, bytes]]
    """segment_id -> its index and bodies"""
    messages: dict[str, list[tuple[int, bytes]]]
    """address -> (message_id, body), in order"""
    content: bytes

    @property
    def page_count(self) -> int:
        return len(self.content) // PAGE_BYTES

    def page(self, number: int) -> bytes:
        return self.content[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]

    def of_segments(self, segment_ids: Iterable[int]) -> set[int]:
        wanted = set(segment_ids)
        return {message_id for message_id, body in self.bodies.items() if body.segment_id in wanted}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    directory = tmp_path_factory.mktemp("broken") / "data"
    random = Random(1)
    store = SqliteStore(directory)
    store.load()
    next_id = 1
    store.commit(WriteBatch(queues=[QueueRow(number, QueueKind.QUEUE, name) for number, name in QUEUES.items()]))
    # Bodies over many pages, an index over many, and rows that are together on one.
    for count, least, most in [(30, 60, 3000), (256, 30, 40), (25, 2000, 9000), *[(1, 1200, 1300)] * 12]:
        messages: list[MessageRow] = []
        for message_id in range(next_id, next_id + count):
            data = encode(Message(body=random.randbytes(random.randint(least, most))))
            messages.append((message_id, len(data), 4, None, data))
        entries = [(1 + message_id % 2, message_id, 0) for message_id, *_ in messages]
        store.commit(WriteBatch(messages=messages, entries=entries))
        next_id += count
    store.load()
    store.close()
    checkpoint(directory)
    return read_all(directory)


def read_all(directory: Path) -> Written:
    bodies: dict[int, Body] = {}
    segments: dict[int, tuple[bytes, bytes]] = {}
    with reading(directory) as store:
        for (segment_id,) in store.segment_ids().rows:
            row = store.segment(segment_id)
            assert row is not None
            segments[segment_id] = row.message_index, row.bodies
            bounds = pairwise([0, *accumulate(size for size, *_ in read_index(row.message_index))])
            bodies |= {number: Body(segment_id, *place) for number, place in enumerate(bounds, segment_id)}
        messages: dict[str, list[tuple[int, bytes]]] = {address: [] for address in QUEUES.values()}
        for stored in stored_messages(store):
            assert isinstance(stored.body, bytes)
            messages[stored.queue.address].append((stored.message_id, stored.body))
    return Written(directory, bodies, segments, messages, (directory / "store.db").read_bytes())


def bodies_lost_with(written: Written, page: int) -> set[int] | None:
    """Those that end on the page or behind it, in its segment; None for a page that has other things than bodies."""
    piece = written.page(page)[LINK_BYTES : LINK_BYTES + PIECE]
    for segment_id, (_, bodies) in written.segments.items():
        place = bodies.find(piece)
        if place >= 0:
            return {number for number in written.of_segments([segment_id]) if written.bodies[number].end > place}
    return None


def segments_on(written: Written, page: int) -> Iterator[int]:
    """Those whose index, or row, has bytes there."""
    content = written.page(page)
    for segment_id, (index, _) in written.segments.items():
        pieces = {index[at : at + PIECE] for at in range(0, len(index) - PIECE + 1, PIECE)}
        if any(piece in content for piece in pieces):
            yield segment_id


def most_that_is_lost_with(written: Written, page: int) -> set[int]:
    everything = set(written.bodies)
    with_others = pages_of(written.directory, "segment")
    if page in (1, root_of(written.directory, "mark"), root_of(written.directory, "cause")):
        return set()
    if page in pages_of(written.directory, "holding") + pages_of(written.directory, "queue") or page == with_others[0]:
        return everything
    return written.of_segments(segments_on(written, page))


def told_by(findings: list[str]) -> tuple[set[int], int]:
    """Of bodies: messages that are named one by one, and how many are behind a page."""
    named = [re.match(r"message (\d+): its \d+ bytes do not match their checksum", told) for told in findings]
    behind = [re.search(r"a page of its bodies cannot be read, nor can (\d+) message", told) for told in findings]
    return {int(found[1]) for found in named if found}, sum(int(found[1]) for found in behind if found)


def came_of(rig: Rig, written: Written) -> list[int]:
    """Message ids, of what a consumer of each queue was given and has accepted."""
    came = []
    for address, messages in written.messages.items():
        ids = {decode(body).body: message_id for message_id, body in messages}
        consumer = rig.client(f"reads {address}").consumer(address, credit=1000)
        came += [ids[received.message.body] for received in consumer.received]
        for received in consumer.received:
            received.give(ACCEPTED, runs=False)
    rig.run()
    return came


def test_a_page_that_is_overwritten_takes_what_it_has_and_the_bodies_behind_it(
    written: Written, tmp_path: Path
) -> None:
    """For pages of bodies this is exactly so, for others at most what has bytes there."""
    kinds = {"bodies": 0, "rows": 0, "nothing": 0}
    for page in range(1, written.page_count + 1):
        data = tmp_path / f"page {page}"
        copytree(written.directory, data, ignore=ignore_patterns("reserve"))
        spoil(data, (page - 1) * PAGE_BYTES, Random(page).randbytes(PAGE_BYTES))
        bodies = bodies_lost_with(written, page)
        if bodies is not None:
            assert_tools_know(data, written, bodies)
        is_sound = page != 1 and check(data).is_sound
        rig = Rig(data)
        came = came_of(rig, written)
        lost = set(written.bodies) - set(came)
        assert len(came) == len(set(came)), f"page {page}: a message came twice"
        if bodies is not None:
            assert lost == bodies, f"page {page}"
            assert away(rig) == bodies
            assert sum(rig.queue(address).queue.unreadable_count for address in QUEUES.values()) == len(bodies)
        assert lost <= (bodies if bodies is not None else most_that_is_lost_with(written, page)), f"page {page}"
        assert not (lost and is_sound), f"page {page}: nothing is wrong, says check"
        assert_goes_on(rig)
        kinds["bodies" if bodies is not None else "rows" if lost else "nothing"] += 1
    assert min(kinds.values()) > 1, kinds
    assert kinds["bodies"] > 30, kinds


def assert_tools_know(data: Path, written: Written, lost: set[int]) -> None:
    report = check(data)
    named, behind = told_by(report.findings)
    assert named <= lost
    assert len(named) + behind == len(lost)
    assert report.messages == len(written.bodies), "they stay in their queues"
    assert back_up(data, data.with_name(f"copy of {data.name}")).findings == report.findings
    with reading(data) as store:
        stored = list(stored_messages(store))
    assert {one.message_id for one in stored if one.is_damaged} == lost
    whole = [(one.message_id, one.body) for one in stored if not one.is_damaged]
    assert whole == [pair for messages in written.messages.values() for pair in messages if pair[0] not in lost]


def away(rig: Rig) -> set[int]:
    return {event.message_id for event in rig.log if isinstance(event, MessageUnreadable)}


def assert_goes_on(rig: Rig) -> None:
    producer = rig.client("sends").producer("renamed")
    assert producer.outcomes[producer.send("new")] == ACCEPTED
    rig.crash_damaged()
    assert rig.client("reads again").consumer("renamed").bodies == ["new"]
    for address in QUEUES.values():
        assert rig.client(f"reads {address} again").consumer(address, credit=1000).bodies == [], "it came again"
    rig.store.close()


def test_without_checksums_nothing_of_a_segment_with_such_a_page_is_given_out(written: Written, tmp_path: Path) -> None:
    copytree(written.directory, tmp_path / "data", ignore=ignore_patterns("reserve"))
    index, bodies = written.segments[1]
    with closing(sqlite3.connect(tmp_path / "data" / "store.db")) as database, database:
        database.execute("UPDATE segment SET message_index = ? WHERE segment_id = 1", (as_format_2(index),))
    checkpoint(tmp_path / "data")
    content = (tmp_path / "data" / "store.db").read_bytes()
    page = content.index(bodies[len(bodies) // 2 :][:PIECE]) // PAGE_BYTES
    spoil(tmp_path / "data", page * PAGE_BYTES, bytes(PAGE_BYTES))
    named, behind = told_by(check(tmp_path / "data").findings)
    rig = Rig(tmp_path / "data")
    lost = set(written.bodies) - set(came_of(rig, written))
    assert lost == away(rig) == written.of_segments([1])
    assert (named, behind) == (set(), len(lost))
    rig.store.close()


def as_format_2(index: bytes) -> bytes:
    """No checksums; and no bit that says that there are."""
    slots = [bytearray(index[at : at + 16]) for at in range(0, len(index), 24)]
    slots[0][7] &= 0xEF
    return b"".join(slots)
