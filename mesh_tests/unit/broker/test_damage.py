"""One damaged page or file takes its messages away, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.events import MessageUnreadable
from broker.store.checking import check
from broker.store.sqlite import SqliteStore
from mesh_tests.unit.broker.rig import Rig
from wire.delivery import ACCEPTED

HALF = bytes(15_000)
COUNT = 60
LARGE = bytes(600_000)


def page_of(directory: Path, needle: bytes) -> tuple[int, int]:
    """Where a message lies in the file: its offset there, and that of the page."""
    content = (directory / "store.db").read_bytes()
    offset = content.index(needle)
    return offset, offset // 4096 * 4096


def spoil(directory: Path, offset: int, by: bytes) -> None:
    with (directory / "store.db").open("r+b") as file:
        file.seek(offset)
        file.write(by)


def flip_a_byte(directory: Path, needle: bytes) -> None:
    offset, _ = page_of(directory, needle)
    spoil(directory, offset, b"~")


def break_the_chain(directory: Path, needle: bytes) -> None:
    """The page's pointer to the next one leads nowhere."""
    _, page = page_of(directory, needle)
    spoil(directory, page, b"\x7f\xff\xff\xff")


def fill(rig: Rig) -> None:
    """Message n says so in its subject, and in the middle of its body."""
    producer = rig.client().producer("orders")
    for number in range(COUNT):
        producer.send(HALF + b"needle %03d" % number + HALF, subject=f"number {number:03}")


@pytest.mark.parametrize("damage", [flip_a_byte, break_the_chain])
def test_messages_of_a_damaged_page_stay_away_and_all_others_come(
    rig: Rig, damage: Callable[[Path, bytes], None]
) -> None:
    fill(rig)
    rig.restart()
    rig.crash(lambda: damage(rig.data, b"needle 030"))
    consumer = rig.client().consumer("orders", credit=1000)
    came = {received.message.subject for received in consumer.received}
    away = {event.message_id for event in rig.log if isinstance(event, MessageUnreadable)}
    assert "number 030" not in came
    assert len(came) == COUNT - len(away)
    assert 1 <= len(away) < COUNT // 2
    assert rig.queue("orders").queue.unreadable_count == len(away)
    assert check_says_so(rig)
    for received in consumer.received:
        received.give(ACCEPTED)
    rig.client("other").producer("orders").send("new")
    assert consumer.bodies[-1] == "new"


def check_says_so(rig: Rig) -> bool:
    rig.store.close()
    is_sound = check(rig.data).is_sound
    rig.store = SqliteStore(rig.data)
    rig.store.load()
    return not is_sound


def test_a_queue_with_a_damaged_message_can_be_drained(rig: Rig) -> None:
    fill(rig)
    rig.restart()
    rig.crash(lambda: flip_a_byte(rig.data, b"needle 030"))
    consumer = rig.client().consumer("orders", credit=0)
    consumer.link.request_drain(1000)
    rig.run()
    assert not consumer.link.is_drain_pending
    assert len(consumer.received) == COUNT - 1


def test_a_large_body_that_is_cut_is_void_for_who_was_being_given_it(rig: Rig) -> None:
    client = rig.client()
    producer = client.producer("orders")
    producer.send(LARGE), producer.send("small")
    (path,) = (rig.data / "large").iterdir()
    path.write_bytes(path.read_bytes()[:300_000])
    consumer = client.consumer("orders")
    assert consumer.bodies == ["small"]
    assert rig.queue("orders").queue.unreadable_count == 1
