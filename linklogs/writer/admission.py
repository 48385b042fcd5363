"""Decides which records of a ring may enter the spool, the file of records that are not in a link log yet.

Invalid records are dropped, and text is redacted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy

from linklogs.writer.redaction import Redactor
from linklogs.writer.rows import Row, format_row, rows_in
from linklogs.writer.slots import SLOT_TYPE, Slots, Span, records, text_slots
from recording.ring_format import KINDS

_KNOWN: Final = numpy.isin(numpy.arange(256), list(KINDS))


@dataclass(frozen=True, slots=True)
class AdmittedRecords:
    """The records that enter the spool, as ``slots``, after drops and redaction.

    ``rows``: the text records among ``slots``, in order, each with its time on the monotonic clock. ``refused``: the
    number of invalid records that were dropped.
    """

    slots: Slots
    rows: list[tuple[Row, int]]
    refused: int


def admit(slots: Slots, spans: list[Span], redactor: Redactor) -> AdmittedRecords:
    """Drop the invalid records of ``slots``, and redact the text records, which lie at ``spans``.

    ``slots`` are whole records. A record of an unknown kind is dropped, too, since nobody can tell which part of its
    content is personal.
    """
    keep = records(slots, spans)
    unknown = int(numpy.count_nonzero(keep & ~_KNOWN[slots["kind"]]))
    if unknown:
        keep &= _KNOWN[slots["kind"]]
    rows = [(redactor.row(row), head) for row, head in rows_in(slots, spans)]
    refused = unknown + len(spans) - len(rows)
    told = [(row, int(slots["start_us"][head])) for row, head in rows]
    if not refused and not redactor.is_active:
        return AdmittedRecords(slots, told, 0)
    return AdmittedRecords(_rebuilt(slots, spans, keep, {head: row for row, head in rows}), told, refused)


def text_record(at_us: int, row: Row) -> Slots:
    """Return a row as the slots of a text record; ``at_us``: the record's time on the monotonic clock, where a negative
    time becomes 0.
    """
    return text_slots(max(0, at_us), format_row(row))


def _rebuilt(
    slots: Slots, spans: list[Span], keep: numpy.ndarray[tuple[int], numpy.dtype[numpy.bool_]], rows: dict[int, Row]
) -> Slots:
    """Return ``slots`` without dropped records, and with text records made again from their redacted rows.

    ``keep``: a mask of the slots that are whole records to keep. ``rows``: the redacted row of each text record to
    keep, by the place of its first slot; the other text records of ``spans`` are dropped.
    """
    pieces = [numpy.empty(0, SLOT_TYPE)]
    begin = 0
    for head, end in spans:
        pieces.append(slots[begin:head][keep[begin:head]])
        if head in rows:
            pieces.append(text_record(int(slots["start_us"][head]), rows[head]))
        begin = end
    pieces.append(slots[begin:][keep[begin:]])
    return numpy.concatenate(pieces)
