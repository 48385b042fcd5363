"""Loads the message annotations that consumers added [3.4.5], as far as their rows are readable.

An unreadable row loses only these annotations: the message is delivered as the producer sent it.
"""

from __future__ import annotations

import sqlite3
from typing import Any
from zlib import crc32

from broker.store.aside import put_aside
from broker.store.readable_rows import ReadableRows, read_what_can_be
from broker.store.schema import ANNOTATION, PUT_ANNOTATION, annotation_values
from broker.store.statements import Statements

Annotations = dict[tuple[int, int], bytes]
"""Encoded sections of message annotations, by (queue_id, message_id)."""


def readable_annotations(connection: sqlite3.Connection) -> ReadableRows:
    """Return the rows of table annotation that can be read, as `section_of` expects them."""
    columns = "queue_id, message_id, section, checksum"
    return read_what_can_be(connection, "annotation", columns, ("queue_id", "message_id"))


def section_of(row: tuple[Any, ...]) -> bytes:
    """Return the encoded annotations in a row of table annotation. Raises ValueError for damaged annotations."""
    _, _, section, checksum = row
    if not isinstance(section, bytes) or crc32(section) != checksum:
        raise ValueError("the annotations do not match their checksum")
    return section


def load_annotations(statements: Statements) -> tuple[Annotations, list[str]]:
    """Return the readable annotations, and sentences about losses; delete damaged rows, or put the table aside."""
    found = readable_annotations(statements.connection)
    annotations: Annotations = {}
    spoiled: dict[int, list[int]] = {}
    sentences: list[str] = []
    for row in found.rows:
        queue_id, message_id = row[:2]
        try:
            annotations[queue_id, message_id] = section_of(row)
        except ValueError as error:
            spoiled.setdefault(queue_id, []).append(message_id)
            what = f"the annotations that consumers added to message {message_id} are lost"
            sentences.append(f"queue {queue_id}: {what}: {error}")
    if found.gap is not None:
        rows = [annotation_values(key, section) for key, section in annotations.items()]
        aside = put_aside(statements, "annotation", ANNOTATION, PUT_ANNOTATION, rows)
        sentences.append(
            f"table annotation was damaged, and was renamed to {aside}: {len(rows)} of its rows could be read"
        )
    elif spoiled:
        with statements.transaction():
            for queue_id, message_ids in spoiled.items():
                forget_annotations(statements, queue_id, message_ids)
    return annotations, sentences


def forget_annotations(statements: Statements, queue_id: int, message_ids: list[int]) -> None:
    """Delete the annotations of these messages in one queue. Call within a transaction."""
    statements.delete("DELETE FROM annotation WHERE queue_id = ? AND message_id", message_ids, (queue_id,))


def write_annotations(statements: Statements, written: dict[tuple[int, int], bytes | None]) -> None:
    """Write the annotations in ``written``, by (queue_id, message_id); None deletes them. Call within a transaction."""
    put = [annotation_values(key, section) for key, section in written.items() if section is not None]
    statements.insert(PUT_ANNOTATION, put)
    gone: dict[int, list[int]] = {}
    for (queue_id, message_id), section in written.items():
        if section is None:
            gone.setdefault(queue_id, []).append(message_id)
    for queue_id, message_ids in gone.items():
        forget_annotations(statements, queue_id, message_ids)
