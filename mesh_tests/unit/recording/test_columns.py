"""The link log's schema: what its columns are, how latencies are sorted, and what a ring looks like."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

import pytest

from addressing.topology.descriptions import meanings_of
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current
from recording import columns as link_log
from recording import ring_format as ring
from recording.columns import (
    BUCKET_ERROR,
    COLUMNS,
    SCHEMA_VERSION,
    DeliveryPart,
    RecordEvent,
    RecordKind,
    RecordOutcome,
    bounds_of,
    bucket_of,
)

REFERENCE = ROOT / "docs" / "reference" / "linklog.md"

HEAD = f"""\
# Link logs: the files

Schema version {SCHEMA_VERSION}. Made from `recording/columns.py` and `recording/ring_format.py`; a test compares.
"""


def test_every_latency_lies_in_its_bucket_and_no_further_from_the_middle_than_stated():
    samples = [*range(5000), *(2**power + near for power in range(13, 40) for near in (-1, 0, 1))]
    for took_us in samples:
        least, most = bounds_of(bucket_of(took_us))
        assert least <= took_us <= most
        assert abs((least + most) / 2 - took_us) <= BUCKET_ERROR * took_us


def test_buckets_follow_each_other_without_a_gap():
    bounds = [bounds_of(bucket) for bucket in range(500)]
    assert bounds[0] == (0, 0)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(bounds))
    assert [bucket_of(least) for least, _ in bounds] == list(range(500))


def test_columns_have_names_of_their_own_and_types_that_all_readers_know():
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
    assert {column.type for column in COLUMNS} == {"string", "int64"}


@pytest.mark.parametrize("kind", RecordKind)
def test_every_kind_of_record_has_columns_of_its_own(kind: RecordKind):
    assert any(kind in column.kinds for column in COLUMNS)


def test_a_slot_is_as_long_as_the_ring_says_and_codes_are_of_one_byte():
    assert struct.calcsize(ring.SLOT) == ring.SLOT_BYTES
    assert ring.HEADER_BYTES % ring.SLOT_BYTES == 0
    assert all(0 <= code <= 255 for code in (*ring.KINDS, *ring.OUTCOMES, *ring.PARTS, ring.TEXT))
    assert set(ring.OUTCOMES.values()) == set(RecordOutcome)
    assert set(ring.PARTS.values()) == set(DeliveryPart)


def test_the_reference_shows_every_column_and_every_word():
    assert_current(REFERENCE, "\n".join(reference()) + "\n")


def reference() -> Iterator[str]:
    yield HEAD
    yield text_of(link_log).partition("\n\n")[2]
    yield from ("", "## Columns", "", "| column | type | of records of kind | meaning |", "|---|---|---|---|")
    for column in COLUMNS:
        kinds = ", ".join(f"`{kind}`" for kind in column.kinds) or "all"
        yield f"| `{column.name}` | {column.type} | {kinds} | {column.meaning} |"
    for title, words in (
        ("Kinds", RecordKind),
        ("Events", RecordEvent),
        ("Outcomes", RecordOutcome),
        ("Parts", DeliveryPart),
    ):
        meanings = meanings_of(words)
        yield from ("", f"## {title}", "", "| value | meaning |", "|---|---|")
        yield from (f"| `{word}` | {meanings.get(word.name, '')} |".replace("|  |", "| |") for word in words)
    yield from ("", "## Latencies", "")
    yield (
        "`took_us` is sorted into buckets that add up: exact below 16 us, then 16 for each doubling, so the middle of "
        f"a bucket is within {BUCKET_ERROR:.1%} of each latency in it."
    )
    yield from ("", "## The ring between a node and the writer", "", "```text", text_of(ring), "```")


def text_of(module: ModuleType) -> str:
    assert module.__doc__ is not None
    return module.__doc__.strip()
