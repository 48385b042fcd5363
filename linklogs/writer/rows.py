"""Parses text records of a ring, in JSON, into rows: dicts of the columns that a record fills in."""

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
    """Return the row of a text record; None if the bytes are no record, or a record of an unknown kind.

    Unknown columns, and values of a wrong type, are left out.
    """
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_known(found.get("kind")):
        return None
    return {name: value for name, value in found.items() if _fits(value, _TYPES.get(name))}


def rows_in(slots: Slots, spans: list[Span]) -> Iterator[tuple[Row, int]]:
    """Yield (row, place of the first slot) of each text record in ``slots``, except records that `parse` refuses."""
    for span in spans:
        row = parse(text_of(slots, span))
        if row is not None:
            yield row, span[0]


def format_row(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _is_known(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _KINDS


def _fits(value: Any, wanted: type[str] | type[int] | None) -> bool:
    # Compare the types: by isinstance, JSON's true would count as a number.
    if wanted is None or type(value) is not wanted:
        return False
    return _is_text(value) if isinstance(value, str) else -_MOST <= value < _MOST


def _is_text(value: str) -> bool:
    """Whether the text can be encoded: JSON can contain half a surrogate pair, which has no bytes in UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
