"""A store with something of everything, for tests of what looks after stores."""

from __future__ import annotations

from pathlib import Path

from broker.store.batch import QueueKind, QueueRow, WriteBatch
from broker.store.sqlite import SqliteStore
from wire.message import Message, encode

ORDERS = QueueRow(1, QueueKind.QUEUE, "orders")
NEWS = QueueRow(2, QueueKind.SUBSCRIPTION, "news.#", "reader", "mine")
COUNT = 300
LARGE_ID = 301
LARGE_BYTES = 100_000
EXPIRES_AT_MS = 1_800_000_000_000


def body_of(number: int) -> bytes:
    return encode(Message(body={"sequence": number}, message_id=number))


def write_store(directory: Path) -> SqliteStore:
    """Orders 1 to 300 and a large one, 301; even ones are news too, 3 was given before, and 10 to 19 are settled."""
    store = SqliteStore(directory)
    store.load()
    numbers = range(1, COUNT + 1)
    bodies = {number: body_of(number) for number in numbers}
    messages = [(number, len(body), 4, EXPIRES_AT_MS if number == 5 else None, body) for number, body in bodies.items()]
    entries = [
        (queue, number, int(number == 3)) for number in numbers for queue in ((1, 2) if number % 2 == 0 else (1,))
    ]
    store.commit(
        WriteBatch(
            queues=[ORDERS, NEWS],
            messages=[*messages, (LARGE_ID, LARGE_BYTES, 4, None, None)],
            entries=[*entries, (1, LARGE_ID, 0)],
            pieces=[(LARGE_ID, bytes(LARGE_BYTES))],
            sealed=[LARGE_ID],
        )
    )
    settled = list(range(10, 20))
    store.commit(WriteBatch(archived={1: settled, 2: settled[::2]}, dropped_messages=settled))
    return store
