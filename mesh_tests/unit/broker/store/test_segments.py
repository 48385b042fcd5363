"""Which rows does a batch become, and when do they go?"""

from __future__ import annotations

import array

import pytest

from broker.store.batch import WriteBatch
from broker.store.message_index import SLOT_BYTES, read_index
from broker.store.segments import SEGMENT_BYTES, SEGMENT_MESSAGES, Segments

MOST = 65_535


def batch_of(*ids: int, queues: tuple[int, ...] = (1,), body: bytes = b"hello") -> WriteBatch:
    messages = [(message_id, len(body), 4, None, body) for message_id in ids]
    return WriteBatch(
        messages=list(messages), entries=[(queue_id, message_id, 0) for message_id in ids for queue_id in queues]
    )


def counts_of(blob: bytes) -> list[int]:
    return array.array("H", blob).tolist()


def index_of(*priorities: int) -> bytes:
    """Of a segment with messages of these priorities."""
    messages = [(number, 1, priority, None, b"x") for number, priority in enumerate(priorities, 1)]
    ((_, message_index, _),) = Segments().apply(WriteBatch(messages=messages)).segments
    return message_index


def gone(*ids: int, queue: int = 1) -> WriteBatch:
    return WriteBatch(archived={queue: list(ids)}, dropped_messages=list(ids))


def test_what_arrives_together_lies_together() -> None:
    rows = Segments().apply(batch_of(1, 2, 3))
    ((first, message_index, bodies),) = rows.segments
    assert (first, bodies) == (1, b"hello" * 3)
    assert read_index(message_index) == [(5, 4, None, False)] * 3
    assert [(queue_id, first, counts_of(blob)) for queue_id, first, blob in rows.holdings] == [(1, 1, [1, 1, 1])]


@pytest.mark.parametrize(
    ("ids", "firsts"),
    [
        ((1, 2, 9, 10), [1, 9]),
        ((6, 7, 5, 8), [6, 5, 8]),
        (tuple(range(1, SEGMENT_MESSAGES + 2)), [1, SEGMENT_MESSAGES + 1]),
    ],
    ids=["a gap", "one that began before", "as many as there may be"],
)
def test_a_segment_has_consecutive_messages_and_not_too_many(ids: tuple[int, ...], firsts: list[int]) -> None:
    assert [row[0] for row in Segments().apply(batch_of(*ids)).segments] == firsts


def test_a_segment_is_no_larger_than_one_body_beyond_its_bound() -> None:
    body = bytes(SEGMENT_BYTES // 2)
    assert [row[0] for row in Segments().apply(batch_of(1, 2, 3, body=body)).segments] == [1, 3]


def test_a_large_one_has_its_size_and_no_body_there() -> None:
    rows = Segments().apply(
        WriteBatch(messages=[(1, 1 << 40, 9, 123, None), (2, 1, 0, None, b"x")], entries=[(1, 1, 0)])
    )
    ((_, message_index, bodies),) = rows.segments
    assert read_index(message_index) == [(1 << 40, 9, 123, True), (1, 0, None, False)]
    assert bodies == b"x"
    assert len(message_index) == 2 * SLOT_BYTES


def test_messages_leave_one_by_one_and_their_rows_at_the_end() -> None:
    segments = Segments()
    segments.apply(batch_of(1, 2, 3))
    rows = segments.apply(gone(2))
    assert [counts_of(blob) for _, _, blob in rows.holdings] == [[1, 0, 1]]
    assert (rows.gone_holdings, rows.gone_segments) == ({}, [])
    rows = segments.apply(gone(1, 3))
    assert (rows.holdings, rows.gone_holdings, rows.gone_segments) == ([], {1: [1]}, [1])
    assert len(segments) == 0


def test_a_segment_stays_until_every_queue_has_done_with_it() -> None:
    segments = Segments()
    segments.apply(batch_of(1, 2, queues=(1, 2, 3)))
    rows = segments.apply(WriteBatch(archived={1: [1, 2], 3: [1, 2]}))
    assert (rows.gone_holdings, rows.gone_segments) == ({1: [1], 3: [1]}, [])
    rows = segments.apply(WriteBatch(archived={2: [2, 1]}, dropped_messages=[2, 1]))
    assert (rows.gone_holdings, rows.gone_segments) == ({2: [1]}, [1])


def test_a_message_in_no_queue_has_its_body_until_it_is_dropped() -> None:
    segments = Segments()
    rows = segments.apply(WriteBatch(messages=[(1, 5, 4, None, b"probe")]))
    assert (len(rows.segments), rows.holdings) == (1, [])
    assert segments.apply(WriteBatch(dropped_messages=[1])).gone_segments == [1]


def test_a_queue_that_is_dropped_leaves_no_holding_behind() -> None:
    segments = Segments()
    segments.apply(batch_of(1, queues=(1, 2)))
    rows = segments.apply(WriteBatch(dropped_queues=[1], archived={1: [1]}))
    assert (rows.holdings, rows.gone_holdings) == ([], {})
    assert [(queue_id, counts_of(counts)) for queue_id, counts in segments.holdings_of(1)] == [(2, [1])]


def test_delivery_counts_are_kept_up_to_what_two_bytes_hold() -> None:
    segments = Segments()
    segments.apply(batch_of(1, 2))
    rows = segments.apply(WriteBatch(counts={(1, 1): 3, (1, 2): 1_000_000}))
    assert [counts_of(blob) for _, _, blob in rows.holdings] == [[4, MOST]]
    assert [counts_of(blob) for _, _, blob in segments.raise_counts(1, index_of(4, 4), {1: {4: 2}})] == [[5, MOST]]


def test_only_what_lies_up_to_the_mark_was_perhaps_seen() -> None:
    segments = Segments()
    segments.apply(batch_of(1, 2, 3))
    segments.apply(batch_of(4, 5))
    segments.apply(gone(1))
    assert [counts_of(blob) for _, _, blob in segments.raise_counts(1, index_of(4, 4, 4), {1: {4: 2}})] == [[0, 2, 1]]
    assert segments.raise_counts(4, index_of(4, 4), {1: {4: 2}}) == []
    assert segments.raise_counts(1, index_of(4, 4, 4), {2: {4: 9}}) == []


def test_what_is_less_urgent_was_not_seen_because_something_urgent_was() -> None:
    segments = Segments()
    segments.apply(batch_of(1, 2, 3))
    marks = {1: {9: 3, 0: 1}}
    assert [counts_of(blob) for _, _, blob in segments.raise_counts(1, index_of(0, 4, 9), marks)] == [[2, 1, 2]]


def test_what_was_written_is_what_is_loaded() -> None:
    before, after = Segments(), Segments()
    rows = before.apply(batch_of(4, 5, 6, queues=(1, 2)))
    for first, message_index, _ in rows.segments:
        after.load(first, len(message_index) // SLOT_BYTES)
    for holding in rows.holdings:
        after.load_holding(*holding)
    assert after.holdings_of(4) == before.holdings_of(4)
    assert after.count_needed(4) == 3
    assert [after.is_needed(message_id) for message_id in (3, 4, 6, 7)] == [False, True, True, False]
    assert after.apply(gone(5)).gone_segments == []


def test_a_holding_that_is_there_twice_is_the_later_one() -> None:
    before, after = Segments(), Segments()
    before.apply(batch_of(4, 5, 6))
    after.load(4, 3)
    for _ in range(2):
        for queue_id, counts in before.holdings_of(4):
            after.load_holding(queue_id, 4, counts)
    assert after.holdings_of(4) == before.holdings_of(4)
    assert after.apply(gone(4)).gone_holdings == {}


def test_the_next_message_comes_after_all_that_a_segment_ever_had() -> None:
    segments = Segments()
    assert segments.next_message_id == 1
    segments.apply(batch_of(1, 2, 3))
    segments.apply(gone(2, 3))
    assert segments.next_message_id == 4


def test_a_holding_of_another_length_than_its_segment_is_an_error() -> None:
    segments = Segments()
    segments.load(1, 2)
    with pytest.raises(KeyError, match="2 bytes of counts for 2 messages"):
        segments.load_holding(1, 1, b"\1\0")


@pytest.mark.parametrize("message_id", [1, 6])
def test_a_message_that_was_never_written_cannot_leave(message_id: int) -> None:
    segments = Segments()
    segments.apply(batch_of(4, 5))
    with pytest.raises(KeyError, match=f"no segment has message {message_id}"):
        segments.apply(gone(message_id))
