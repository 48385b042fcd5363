"""Of a wait for credit that a node tells of each second, one row is enough."""

from __future__ import annotations

import random
from typing import Any

import pyarrow

from linklogs.moments import TimeSpan
from linklogs.parquet import batch_of_rows
from linklogs.replay.wait_spans import joined
from mesh_tests.link_logs import RUN, START_US, Row, S

ALL = TimeSpan()


def wait(at_s: float, starved_s: float = 1, link: int = 7, cause: str | None = "no_taker", run: int = RUN) -> Row:
    row: Row = {"kind": "credit", "event": "changed", "at_us": START_US + round(at_s * S), "run": run, "link": link}
    return row | {"starved_us": round(starved_s * S), "credit": 0} | ({"cause": cause} if cause else {})


def few(rows: list[Row], span: TimeSpan = ALL) -> list[tuple[Any, ...]]:
    """Link, cause, until when, for how long in all and from first to last, and how many."""
    found = joined(pyarrow.Table.from_batches([batch_of_rows(rows)]), span, "times").to_pylist()
    return sorted(
        (row["link"], row["cause"] or "", (row["at_us"] - START_US) / S, row["starved_us"] / S, row["took_us"] / S,
         row["times"]) for row in found
    )  # fmt: skip


def test_what_goes_on_without_a_gap_is_one_row() -> None:
    rows = [wait(second) for second in range(3, 63)]
    random.Random(1).shuffle(rows)
    assert few(rows) == [(7, "no_taker", 62, 60, 60, 60)]


def test_what_is_one_row_already_goes_on_with_others() -> None:
    rows = [*(wait(second) for second in range(3, 63)), wait(63.05)]
    half = pyarrow.Table.from_batches([batch_of_rows(rows[:40])])
    whole = pyarrow.Table.from_batches([batch_of_rows(rows[40:])])
    one = pyarrow.concat_tables([joined(half, ALL, "times"), whole], promote_options="default")
    [row] = joined(one, ALL, "times").to_pylist()
    assert (row["starved_us"], row["took_us"], row["times"]) == (61 * S, round(61.05 * S), 61)


def test_rows_of_nodes_stay_apart() -> None:
    table = pyarrow.Table.from_batches([batch_of_rows([wait(1), wait(2)])])
    named = table.append_column("node", pyarrow.array(["r1", "r2"]))
    assert len(joined(named, ALL, "times")) == 2


def test_small_gaps_are_no_time_without_credit() -> None:
    assert few([wait(10), wait(11.05), wait(12.1)]) == [(7, "no_taker", 12.1, 3, 3.1, 3)]


def test_waits_apart_of_another_cause_link_or_run_stay_apart() -> None:
    rows = [
        wait(10), wait(12), wait(13, cause="takers"), wait(14, cause=None), wait(11, link=8), wait(12, link=8, run=9)
    ]  # fmt: skip
    assert [each[:4] for each in few(rows)] == [
        (7, "", 14, 1),
        (7, "no_taker", 10, 1),
        (7, "no_taker", 12, 1),
        (7, "takers", 13, 1),
        (8, "no_taker", 11, 1),
        (8, "no_taker", 12, 1),
    ]


def test_none_goes_over_an_end_of_the_time_that_is_asked_for() -> None:
    rows = [wait(second) for second in range(1, 31)]
    span = TimeSpan(START_US + 10 * S, START_US + 20 * S)
    assert [(each[2], each[3], each[5]) for each in few(rows, span)] == [(9, 9, 9), (19, 10, 10), (30, 11, 11)]


def test_all_else_stays_as_it_is() -> None:
    others: list[Row] = [
        {"kind": "link", "event": "opened", "at_us": START_US, "run": RUN, "link": 7},
        {"kind": "credit", "event": "changed", "at_us": START_US, "run": RUN, "link": 7, "credit": 5},
        {"kind": "credit", "event": "drain", "at_us": START_US, "run": RUN, "link": 7, "count": 2},
        {"kind": "credit", "event": "changed", "run": RUN, "link": 7, "starved_us": 5},
    ]
    table = pyarrow.Table.from_batches([batch_of_rows([*others, wait(1), wait(2)])])
    found = joined(table, ALL, "times").to_pylist()
    kept = [{name: row[name] for name in each} for each, row in zip(others, found, strict=False)]
    assert kept == others
    assert len(found) == len(others) + 1
    none = table.filter(pyarrow.array([True] * 4 + [False] * 2))
    assert joined(none, ALL, "times") is none
    assert joined(none.select(["kind", "at_us"]), ALL, "times").num_rows == 4
