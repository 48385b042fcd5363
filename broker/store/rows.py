"""Decodes rows of tables queue and cause; a damaged value affects only its own row.

Columns of text are read as bytes: otherwise one damaged text would end the read of the whole table with "could not
decode".
"""

from __future__ import annotations

from typing import Any

from broker.store.batch import QueueKind, QueueRow
from broker.store.cause import Cause, Reason

QUEUE_COLUMNS = (
    "queue_id, "
    + ", ".join(f"CAST({name} AS BLOB)" for name in ("kind", "address", "container_id", "link_name", "owner"))
    + ", used_at_s"
)
CAUSE_COLUMNS = "queue_id, message_id, CAST(reason AS BLOB), CAST(origin AS BLOB), delivery_count, at_ms"


def queue_of(row: tuple[Any, ...]) -> QueueRow:
    """Return the queue or subscription in a row of table queue; raises ValueError for impossible values."""
    queue_id, kind, address, container_id, link_name, owner, used_at_s = row
    return QueueRow(
        queue_id,
        QueueKind(_text(kind)),
        _text(address),
        _text(container_id),
        _text(link_name),
        None if owner is None else _text(owner),
        _number(used_at_s),
    )


def cause_of(row: tuple[Any, ...]) -> Cause:
    """Return the cause of a message's move in a row of table cause; raises ValueError for impossible values."""
    _, _, reason, origin, delivery_count, at_ms = row
    return Cause(Reason(_text(reason)), _text(origin), _number(delivery_count), _number(at_ms))


def _text(value: object) -> str:
    if not isinstance(value, bytes):
        raise ValueError(f"expected text in a column of text of table queue or cause, got {value!r}")
    return value.decode()


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError(f"expected a number in a column of numbers of table queue or cause, got {value!r}")
    return value
