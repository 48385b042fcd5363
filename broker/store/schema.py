"""The tables of a store, the SQL statements that write rows, and the numbers that identify a database as a store.

FORMAT.md describes the content of the tables.
"""

from __future__ import annotations

from zlib import crc32

from broker.store.batch import CauseRow, QueueRow

FORMAT_VERSION = 7
APPLICATION_ID = int.from_bytes(b"AMQm", "big")

QUEUE = """
CREATE TABLE queue (
    queue_id     INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    container_id TEXT    NOT NULL,
    link_name    TEXT    NOT NULL,
    owner        TEXT,
    used_at_s    INTEGER NOT NULL DEFAULT 0
) STRICT
"""
MARK = """
CREATE TABLE mark (
    queue_id  INTEGER NOT NULL,
    priority  INTEGER NOT NULL,
    seen_mark INTEGER NOT NULL,
    PRIMARY KEY (queue_id, priority)
) STRICT, WITHOUT ROWID
"""
CAUSE = """
CREATE TABLE cause (
    queue_id       INTEGER NOT NULL,
    message_id     INTEGER NOT NULL,
    reason         TEXT    NOT NULL,
    origin         TEXT    NOT NULL,
    delivery_count INTEGER NOT NULL,
    at_ms          INTEGER NOT NULL,
    PRIMARY KEY (queue_id, message_id)
) STRICT, WITHOUT ROWID
"""
ANNOTATION = """
CREATE TABLE annotation (
    queue_id   INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    section    BLOB    NOT NULL,
    checksum   INTEGER NOT NULL,
    PRIMARY KEY (queue_id, message_id)
) STRICT, WITHOUT ROWID
"""
SEGMENT = """
CREATE TABLE segment (
    segment_id    INTEGER PRIMARY KEY,
    message_index BLOB NOT NULL,
    bodies        BLOB NOT NULL
) STRICT
"""
HOLDING = """
CREATE TABLE holding (
    queue_id   INTEGER NOT NULL,
    segment_id INTEGER NOT NULL,
    counts     BLOB NOT NULL,
    checksum   INTEGER,
    PRIMARY KEY (queue_id, segment_id)
) STRICT, WITHOUT ROWID
"""
LOG_NUMBER = """
CREATE TABLE log_number (
    one   INTEGER PRIMARY KEY,
    stamp BLOB NOT NULL
) STRICT
"""
TABLES = (QUEUE, MARK, CAUSE, SEGMENT, HOLDING, LOG_NUMBER, ANNOTATION)
TABLES_OF_QUEUES = ("holding", "mark", "cause", "annotation", "queue")

PUT_QUEUE = "REPLACE INTO queue (queue_id, kind, address, container_id, link_name, owner, used_at_s)"
PUT_MARK = "REPLACE INTO mark (queue_id, priority, seen_mark)"
PUT_CAUSE = "REPLACE INTO cause (queue_id, message_id, reason, origin, delivery_count, at_ms)"
PUT_ANNOTATION = "REPLACE INTO annotation (queue_id, message_id, section, checksum)"
PUT_SEGMENT = "INSERT INTO segment (segment_id, message_index, bodies)"
PUT_LOG_NUMBER = "REPLACE INTO log_number (one, stamp)"
PUT_HOLDING = "REPLACE INTO holding (queue_id, segment_id, counts, checksum)"


def queue_values(row: QueueRow) -> tuple[int, str, str, str, str, str | None, int]:
    return row.queue_id, row.kind.value, row.address, row.container_id, row.link_name, row.owner, row.used_at_s


def cause_values(row: CauseRow) -> tuple[int, int, str, str, int, int]:
    queue_id, message_id, cause = row
    return queue_id, message_id, cause.reason.value, cause.origin, cause.delivery_count, cause.at_ms


def annotation_values(key: tuple[int, int], section: bytes) -> tuple[int, int, bytes, int]:
    return *key, section, crc32(section)
