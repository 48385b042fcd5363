"""Encodes a spool, records from a ring, as a Parquet file of the link log.

The file has a row group of state records, then one for each kind of movement of which the spool has records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy
import pyarrow

from linklogs.parquet import TOLD, batch, batch_of_rows, metadata, open_writer, same
from linklogs.writer.live_state import as_of
from linklogs.writer.rows import Row, rows_in
from linklogs.writer.slots import Slots, at_us, records, text_spans
from linklogs.writer.spool import Content, joined
from recording.columns import DROPPED_KEY, RecordKind
from recording.ring_format import DELIVERY, KINDS, OUTCOMES, PARTS, TRAFFIC

Numbers = numpy.ndarray[Any, Any]
_UNKNOWN: Final = -1


def encode(content: Content, redact: Callable[[Row], Row], began_us: int) -> pyarrow.Buffer:
    """Return the content of the Parquet file for a spool.

    ``redact`` redacts the spool's text. ``began_us``, the UTC time of the spool's first record, becomes the time of the
    live state's records, with which the file opens.
    """
    owner = content.head.owner
    sink = pyarrow.BufferOutputStream()
    described = metadata(owner.node, owner.run, owner.mesh)
    with open_writer(sink, described | {DROPPED_KEY: str(_dropped(content))}) as writer:
        for group in _groups(content, redact, began_us):
            writer.write_batch(group)
    return sink.getvalue()


def _dropped(content: Content) -> int:
    return content.chunks[-1].dropped if content.chunks else content.head.dropped


def _groups(content: Content, redact: Callable[[Row], Row], began_us: int) -> Iterator[pyarrow.RecordBatch]:
    slots, clocks = joined(content.chunks)
    spans = text_spans(slots)
    times = at_us(slots, clocks)
    begin_us = int(at_us(slots[:1], 0)[0])
    live = [redact({**as_of(row, begin_us), "at_us": began_us}) for row in content.head.live]
    rows = live + [redact({**row, "at_us": int(times[head])}) for row, head in rows_in(slots, spans)]
    run = content.head.owner.run
    if told := [{**row, "run": run} for kind in TOLD for row in rows if row["kind"] == kind]:
        yield batch_of_rows(told)
    yield from _slot_groups(slots, times, records(slots, spans), run)


def _slot_groups(slots: Slots, times: Numbers, mask: Numbers, run: int) -> Iterator[pyarrow.RecordBatch]:
    kinds = slots["kind"]
    for wanted, columns in (
        (kinds == DELIVERY, _delivery_columns),
        (kinds == TRAFFIC, _traffic_columns),
        ((kinds != DELIVERY) & (kinds != TRAFFIC), _message_columns),
    ):
        chosen = mask & wanted
        count = int(numpy.count_nonzero(chosen))
        if count == len(slots):
            yield batch(_common_columns(slots, times, run) | columns(slots), count)
        elif count:
            some = slots[chosen]
            yield batch(_common_columns(some, times[chosen], run) | columns(some), count)


def _common_columns(slots: Slots, times: Numbers, run: int) -> dict[str, Any]:
    return {
        "at_us": times,
        "run": numpy.full(len(slots), run, numpy.int64),
        "size_bytes": _numbers(slots["size_bytes"]),
        "took_us": _numbers(slots["took_us"]),
    }


def _delivery_columns(slots: Slots) -> dict[str, Any]:
    count = numpy.ones(len(slots), numpy.int64)
    return _moved_columns(slots) | {"kind": same(RecordKind.DELIVERY, len(slots)), "count": count}


def _traffic_columns(slots: Slots) -> dict[str, Any]:
    return _moved_columns(slots) | {"kind": same(RecordKind.TRAFFIC, len(slots)), "count": _numbers(slots["count"])}


def _moved_columns(slots: Slots) -> dict[str, Any]:
    return {
        "incoming": _numbers(slots["incoming"]),
        "outgoing": _numbers(slots["outgoing"]),
        "outcome": _OUTCOMES(slots["outcome"]),
        "part": _PARTS(slots["part"]),
    }


def _message_columns(slots: Slots) -> dict[str, Any]:
    return {
        "kind": same(RecordKind.MESSAGE, len(slots)),
        "event": _EVENTS(slots["kind"]),
        "queue": _numbers(slots["incoming"]),
        "count": _numbers(slots["count"]),
    }


def _numbers(field: Numbers) -> Numbers:
    return field.astype(numpy.int64)


class _Words:
    """Turns the codes of one byte in a ring's slots into a column of words; an unknown code becomes null."""

    def __init__(self, words: Mapping[int, str]) -> None:
        dictionary = sorted(set(words.values()))
        self._dictionary = pyarrow.array(dictionary, pyarrow.string())
        self._place = numpy.full(256, _UNKNOWN, numpy.int32)
        for code, word in words.items():
            self._place[code] = dictionary.index(word)

    def __call__(self, codes: Numbers) -> pyarrow.DictionaryArray:
        places = self._place[codes]
        unknown = places == _UNKNOWN
        indices = pyarrow.array(places, pyarrow.int32(), mask=unknown if unknown.any() else None)
        return pyarrow.DictionaryArray.from_arrays(indices, self._dictionary)


_OUTCOMES: Final = _Words(OUTCOMES)
_PARTS: Final = _Words(PARTS)
_EVENTS: Final = _Words({code: event for code, (_, event) in KINDS.items() if event is not None})
