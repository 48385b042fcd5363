"""The text of a state record in the ring is the JSON of its row, whatever the values of its columns are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mesh_tests.rings import Ring
from recording.columns import RecordEvent, RecordKind
from recording.records import Recorder

ROWS: list[dict[str, Any]] = [
    {},
    {"kind": RecordKind.LINK, "event": RecordEvent.OPENED, "link": 7, "name": 'quote " and \\ and \x00'},
    {"name": "Grüße \U0001f600 \ud800", "count": -(2**70), "share": 0.25, "is_it": True, "none": None},
    {"list": [1, "a"], "map": {"a": 1.5}},
]


@pytest.mark.parametrize("row", ROWS)
def test_a_record_with_text_is_read_as_the_row_that_was_told(row: dict[str, Any]) -> None:
    ring = Ring(64)
    Recorder(ring.memory, "full").tell(row)
    assert ring.take()[1] == [json.loads(json.dumps(row))]
