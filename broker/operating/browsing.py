"""A page of the messages in a queue, for an operator: in order of arrival, searched, with or without their bodies.

Messages are looked at in steps of a few, and stay in their queue. A page ends after ``limit`` messages, after
PAGE_BYTES, or when SCANNED_MESSAGES messages were searched: the next page goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from broker.queueing.held_queue import HeldQueue
from broker.queueing.look import BrowsedMessage, Look
from broker.queueing.message import QueueEntry
from broker.queueing.message_store import MessageStore
from wire.message_json import FIELDS, MessageParts, body_to_json, parts_of
from wire.value_json import Json, texts_of

MOST_LISTED = 100
MOST_BODY_BYTES = 65536
BODY_BYTES = 4096
MOST_SEARCHED_CHARACTERS = 256
PAGE_BYTES = 262_144
"""A page ends with the message that makes it longer than this, in characters of JSON."""
SCANNED_MESSAGES = 10_000
LOOK_MESSAGES = 100
LOOK_BYTES = 131_072
HEAD_BYTES = 65536
"""Of a large message, which is in a file of its own, so many bytes are read for its headers, and BODY_BYTES more."""
STEP_MESSAGES = 8
"""So many messages are decoded in a step."""
_SHOWN_FIELDS = tuple(name for name in FIELDS if name != "expiry_time")
_IN_NUMBERS = frozenset(b"0123456789abcdeftzni-:.+")
"""The characters in the texts of numbers, times and uuids, which are not found in the bytes of a message."""
UNREADABLE = "the message cannot be read: its body in the store is damaged or missing"


@dataclass(frozen=True, slots=True)
class BrowseQuery:
    """What an operator wants to see: at most ``limit`` messages with numbers above ``after`` that have ``search``.

    ``search`` is looked for in the fields, properties and annotations and, ``with_bodies``, in the bodies, in any case
    of ASCII letters; None finds all. At most ``body_bytes`` of each body are shown.
    """

    after: int
    limit: int
    search: str | None
    with_bodies: bool
    body_bytes: int


def page_steps(
    message_store: MessageStore,
    held: HeldQueue,
    query: BrowseQuery,
    wall_offset_s: float,
    refuse_deleted: Callable[[], None],
) -> Iterator[Look | dict[str, Any] | None]:
    """Make one page in steps: yield a Look when its bodies have to be read, None after other steps, and last the page.

    ``refuse_deleted`` raises an error if the queue was deleted meanwhile.
    """
    page = _Page(held, query, message_store, wall_offset_s)
    while page.has_more:
        refuse_deleted()
        look = Look(
            message_store, held, page.next, LOOK_MESSAGES if query.search else query.limit, LOOK_BYTES, page.read_bytes
        )
        try:
            yield look
            for count, seen in enumerate(look.messages, 1):
                if not page.take(seen):
                    break
                if count % STEP_MESSAGES == 0:
                    yield None
            else:
                page.end_look(look)
        finally:
            look.end()
    yield page.answer()


class _Page:
    """The page so far. ``next`` is the number of the last message that is on the page, or that was searched in vain."""

    def __init__(self, held: HeldQueue, query: BrowseQuery, message_store: MessageStore, wall_offset_s: float) -> None:
        self._held, self._query = held, query
        self._message_store, self._wall_offset_s = message_store, wall_offset_s
        self._last = held.queue.snapshot().next_position - 1
        self._needle = None if query.search is None else Needle(query.search)
        self._messages: list[dict[str, Any]] = []
        self._bytes = self._scanned = 0
        self.next = query.after
        self.has_more = True
        self._is_end = False
        self.read_bytes = HEAD_BYTES + (query.body_bytes if query.with_bodies else 0)

    def take(self, seen: BrowsedMessage) -> bool:
        """Put a message on the page, if it is searched for; return False if the page was full before it."""
        if self._is_full():
            self.has_more = False
            return False
        self.next = seen.entry.position
        self._scanned += 1
        if seen.is_gone or (self._needle is not None and not self._needle.may_be_in(seen.body)):
            return True
        parts = _parts(seen)
        if self._needle is None or self._needle.is_in(parts, with_bodies=self._query.with_bodies):
            message = self._message(seen, parts)
            self._bytes += len(json.dumps(message, ensure_ascii=False))
            self._messages.append(message)
        return True

    def end_look(self, look: Look) -> None:
        self.next = max(self.next, look.last_position)
        self._is_end = not look.has_more
        self.has_more = not self._is_end and not self._is_full()

    def answer(self) -> dict[str, Any]:
        return {
            "messages": self._messages,
            "next": None if self._is_end else self.next,
            "last": self._last,
            "scanned": self._scanned,
        }

    def _is_full(self) -> bool:
        return (
            len(self._messages) >= self._query.limit or self._bytes >= PAGE_BYTES or self._scanned >= SCANNED_MESSAGES
        )

    def _message(self, seen: BrowsedMessage, parts: MessageParts) -> dict[str, Any]:
        entry = seen.entry
        body = {"body": body_to_json(parts, self._query.body_bytes)} if self._query.with_bodies else {}
        return {
            "number": entry.position,
            "priority": entry.message.priority,
            "durable": parts.is_durable,
            "expires_at": expires_at(entry, self._wall_offset_s),
            "stored_at": time_text(self._message_store.came_at_s(self._held, entry)),
            "attempts": entry.delivery_count,
            "bytes": entry.message.size_bytes,
            **{name: parts.properties.get(name) for name in _SHOWN_FIELDS},
            "properties": parts.application,
            "annotations": parts.annotations,
            "is_locked": seen.is_locked,
            "reason": None if entry.cause is None else entry.cause.reason.value,
            "origin": None if entry.cause is None else entry.cause.origin,
            "why": parts.why,
            "left_out": parts.left_out,
            **body,
        }


class Needle:
    """A text that is searched for in messages; the case of ASCII letters does not count."""

    def __init__(self, text: str) -> None:
        self._text = _folded(text)
        self._may_be_number = set(self._text) <= _IN_NUMBERS

    def may_be_in(self, encoded: bytes | None) -> bool:
        """Whether a message with these bytes may have the text: False only if the message need not be decoded."""
        return encoded is not None and (self._may_be_number or self._text in encoded.lower())

    def is_in(self, parts: MessageParts, *, with_bodies: bool) -> bool:
        forms: tuple[Json, ...] = (*parts.properties.values(), parts.application, parts.annotations)
        if any(self._text in _folded(text) for form in forms for text in texts_of(form)):
            return True
        return with_bodies and self._text in parts.body.lower()


def _folded(text: str) -> bytes:
    return text.encode("utf-8", "replace").lower()


def _parts(seen: BrowsedMessage) -> MessageParts:
    if seen.body is None:
        return MessageParts(why=UNREADABLE)
    message = seen.entry.message
    parts = parts_of(seen.body, message.size_bytes if message.is_large else None)
    if seen.annotations is not None:
        added = parts_of(seen.annotations).annotations
        if "$map" not in parts.annotations and "$map" not in added:
            parts.annotations = {**parts.annotations, **added}
    return parts


def expires_at(entry: QueueEntry, wall_offset_s: float) -> str | None:
    """Return the time at which an entry's message expires, as text; a message that was moved never expires."""
    at_s = entry.message.expires_at_s if entry.cause is None else None
    return time_text(None if at_s is None else at_s + wall_offset_s)


def time_text(unix_s: float | None) -> str | None:
    """Return a Unix time as text; the end of the year 9999 for a later one, which a sender may give."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(min(unix_s, _LATEST_S), UTC).isoformat(timespec="milliseconds")


_LATEST_S = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
