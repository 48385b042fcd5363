"""Parses text records into rows: the columns that a record fills in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from linklogs.writer.slots import Slots, Span, text_of
from recording.columns import COLUMNS, RecordKind

Row = dict[str, str | int]

_TYPES: Final = {column.name: {"string": str, "int64": int}[column.type] for column in COLUMNS}
_KINDS: Final = frozenset(RecordKind)
_MOST: Final = 2**63


def parse(data: bytes) -> Row | None:
    """None for bytes that are no record, or a record of an unknown kind. Columns that do not fit are left out."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_known(found.get("kind")):
        return None
    return {name: value for name, value in found.items() if _fits(value, _TYPES.get(name))}


def rows_in(slots: Slots, spans: list[Span]) -> Iterator[tuple[Row, int]]:
    """The text records among ``slots``, each with its first slot. Records that `parse` refuses are left out."""
    for span in spans:
        row = parse(text_of(slots, span))
        if row is not None:
            yield row, span[0]


def format_row(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _is_known(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _KINDS


def _fits(value: Any, wanted: type[str] | type[int] | None) -> bool:
    # Not isinstance: true is no number.
    if wanted is None or type(value) is not wanted:
        return False
    return _is_text(value) if isinstance(value, str) else -_MOST <= value < _MOST


def _is_text(value: str) -> bool:
    """Half a surrogate pair, which JSON can say, has no bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
