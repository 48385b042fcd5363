"""Files repeat what there is: once is enough, as long as everything that is made of it stays the same."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow

from linklogs.moments import TimeSpan
from linklogs.parquet import batch_of_rows
from linklogs.replay.repeats import TIMES, merged
from mesh_tests.link_logs import RUN, START_US, Row, S

ALL = TimeSpan()
FACTS = ("role", "address", "user")


def link(at_s: float, number: int, event: str = "live", **facts: str | int) -> Row:
    return {"kind": "link", "event": event, "at_us": START_US + round(at_s * S), "run": RUN, "link": number, **facts}


def credit(at_s: float, number: int, **facts: str | int) -> Row:
    return {**link(at_s, number), "kind": "credit", "credit": 250, **facts}


def once(rows: list[Row], span: TimeSpan = ALL) -> list[dict[str, Any]]:
    table = pyarrow.Table.from_batches([batch_of_rows(rows)])
    texts = table.cast(pyarrow.schema([(each.name, _plain(each.type)) for each in table.schema]))
    kept = [{key: value for key, value in row.items() if value is not None} for row in merged(texts, span).to_pylist()]
    return sorted(kept, key=lambda row: (row["kind"], row["at_us"], row.get("link", 0)))


def _plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def test_a_link_that_each_file_tells_of_is_one_row_of_the_last_time() -> None:
    rows = once([link(second, 7, address="orders") for second in (20, 0, 10)])
    assert rows == [{**link(20, 7, address="orders"), TIMES: 3}]


def test_of_the_time_that_is_asked_for_there_are_as_many_as_there_were() -> None:
    told = [link(second, 7, address="orders") for second in (0, 9, 10, 15, 19, 20, 30, 40)]
    rows = once(told, TimeSpan(START_US + 10 * S, START_US + 20 * S))
    assert [(row["at_us"] - START_US, row[TIMES]) for row in rows] == [(9 * S, 2), (19 * S, 3), (40 * S, 3)]
    since = once(told, TimeSpan(START_US + 10 * S))
    assert [(row["at_us"] - START_US, row[TIMES]) for row in since] == [(9 * S, 2), (40 * S, 6)]


def test_a_path_that_each_file_tells_of_is_one_row_of_the_last_time() -> None:
    path = {"kind": "path", "event": "live", "run": RUN, "egress": "r3", "path": "r1>r2>r3", "cost": 2}
    told = [{**path, "at_us": START_US + at_us} for at_us in (5, 9, 0)]
    other: Row = {**path, "at_us": START_US + 7, "path": "r1>r4>r3"}
    assert once([*told, other]) == [{**other, TIMES: 1}, {**path, "at_us": START_US + 9, TIMES: 3}]


def test_costs_of_neighbors_are_of_their_own_times() -> None:
    neighbor = {"kind": "neighbor", "event": "live", "run": RUN, "neighbor": "r2"}
    told: list[Row] = [
        {**neighbor, "at_us": START_US + at_us, "cost": cost} for at_us, cost in ((0, 1), (1, 5), (2, 1))
    ]
    assert once(told) == told


def test_what_opened_closed_or_says_something_else_stays() -> None:
    told = [link(0, 7, "opened"), link(1, 7), link(2, 7, address="orders"), link(3, 8), link(4, 7, "closed")]
    assert [row["at_us"] for row in once(told)] == [row["at_us"] for row in told]


def test_time_without_credit_is_added_up_by_others() -> None:
    told = [credit(0, 7, starved_us=5), credit(1, 7, starved_us=5), credit(2, 7, starved_us=0), credit(3, 7)]
    assert [row.get("starved_us") for row in once([*told, credit(4, 7)])] == [5, 5, 0, None]


def test_depths_of_queues_are_of_their_own_times() -> None:
    depth: Row = {"kind": "queue", "event": "live", "at_us": START_US, "run": RUN, "queue": 1, "depth_count": 3}
    assert len(once([depth, depth])) == 2


def test_files_without_anything_to_repeat_stay_as_they_are() -> None:
    told = [link(0, 7, "opened"), link(1, 7, "closed")]
    assert once(told) == told


def test_whatever_is_repeated_the_last_of_each_fact_and_the_count_are_the_same() -> None:
    draw = random.Random(7)
    for _ in range(200):
        told = [
            link(
                second,
                draw.randrange(3),
                draw.choice(("live", "live", "opened", "closed")),
                **{name: draw.choice("ab") for name in FACTS if draw.random() < 0.7},
            )
            for second in range(30)
        ]
        rows = once(draw.sample(told, len(told)))
        assert sum(row.get(TIMES, 1) for row in rows) == len(told)
        assert _last(rows) == _last(told)


def _last(rows: list[Any]) -> dict[Any, Any]:
    """Of each fact of a link what was told last, and when; and when it opened and closed."""
    found: defaultdict[Any, Any] = defaultdict(lambda: (0, None))
    for row in rows:
        for name in (*FACTS, "event"):
            key = (row["link"], name, row["event"] if name == "event" and row["event"] != "live" else None)
            if row.get(name) is not None:
                found[key] = max(found[key], (row["at_us"], row[name]))
    return found
