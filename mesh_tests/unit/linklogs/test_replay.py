"""What was moved, added up without Spark: as many as there were, whatever the batches, files and parts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest

from linklogs.moments import TimeSpan
from linklogs.parquet import batch_of_rows, metadata, open_writer
from linklogs.replay import aggregation, file_slices, state_rows
from linklogs.replay.aggregation import Aggregation
from linklogs.replay.clock_offsets import RunClock
from linklogs.replay.codes import CAME
from linklogs.replay.facts import UNKNOWN, Facts
from linklogs.replay.levels import FLOWS, LATENCY, LEVELS, TIME, WHOLE, TotalLevels, WindowLevels
from linklogs.replay.state_rows import CARRIED, FILE, StateRows
from linklogs.replay.sums import Sums
from linklogs.replay.windows import MOST_ROWS, widened
from mesh_tests.link_logs import RUN, START_US, Row, S, delivery, for_workers, write

WINDOW_US = 10 * S
NO_CLOCKS: Mapping[str, Mapping[int, RunClock]] = {}
NODES = ("r1", "r2")
LINKS = range(1, 6)
UNTOLD = 3
OUTCOMES = ("accepted", "accepted", "released", "modified", "none")


def facts(*, wanted: tuple[int, ...] = tuple(LINKS), is_cut: bool = False) -> Facts:
    """Links 1, 2 and 4 are of clients, 5 is within the mesh; of UNTOLD nothing was told."""
    rows = [
        {
            "node": node,
            "run": RUN,
            "link": link,
            "connection": link % 2,
            "address": f"a{link % 3}",
            "user": "ada",
            "peer": 0 if link < 5 else None,
            "is_wanted": link in wanted,
        }
        for node in NODES
        for link in LINKS
        if link != UNTOLD
    ]
    schema = pyarrow.schema(
        [("node", pyarrow.string()), ("run", pyarrow.int64()), ("link", pyarrow.int64()),
         ("connection", pyarrow.int64()), ("address", pyarrow.string()), ("user", pyarrow.string()),
         ("peer", pyarrow.int32()), ("is_wanted", pyarrow.bool_())]
    )  # fmt: skip
    table = pyarrow.Table.from_pylist(rows, schema)
    return Facts.of(table, [(node, RUN) for node in NODES], NODES, is_cut=is_cut)


def told(root: Path, clocks: Mapping[str, Mapping[int, RunClock]] = NO_CLOCKS) -> list[pyarrow.RecordBatch]:
    paths = sorted(root.rglob("*.parquet"))
    return list(StateRows(TimeSpan(), clocks)(for_workers(path) for path in paths))


def moved(root: Path, clocks: Mapping[str, Mapping[int, RunClock]] = NO_CLOCKS) -> Iterator[pyarrow.RecordBatch]:
    """What was carried of small files, and the names of others."""
    for batch in told(root, clocks):
        carried = batch.filter(pyarrow.compute.equal(batch["kind"], CARRIED))
        named = for_workers().schema
        nothing = {field.name: pyarrow.nulls(len(carried), field.type) for field in named}
        yield pyarrow.record_batch({**nothing, "node": carried["node"], "moved": carried["moved"]})
    for path in sorted(root.rglob("*.parquet")):
        if path.stat().st_size > file_slices.SMALL_BYTES:
            yield for_workers(path).append_column("moved", pyarrow.nulls(1, pyarrow.binary()))


@pytest.fixture(params=["small", "large"], autouse=True)
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are small, and opened once; or they are large, and opened twice."""
    if request.param == "large":
        monkeypatch.setattr(file_slices, "SMALL_BYTES", 0)
        monkeypatch.setattr(state_rows, "SMALL_BYTES", 0)


def random_logs(root: Path, seed: int, count: int) -> dict[str, list[Row]]:
    """Several files of each node, full and summary, multicast and failures."""
    draw = random.Random(seed)
    rows = {
        node: [
            delivery(
                draw.uniform(0, 45),
                draw.choice(LINKS),
                draw.choice([0, *LINKS]),
                draw.randrange(10**6),
                outcome=draw.choice(OUTCOMES),
                size_bytes=draw.randrange(1000),
                part=draw.choice(("whole", "whole", "many", "copy")),
                count=draw.randrange(1, 4),
                kind=draw.choice(("delivery", "traffic")),
            )
            for _ in range(count)
        ]
        for node in NODES
    }
    for node, each in rows.items():
        for place in range(3):
            write(root, node, each[place::3], name=f"1-{place}")
    return rows


def replayed(
    root: Path,
    known: Facts,
    windows_us: dict[str, int],
    parts: int,
    span: TimeSpan,
    asked: frozenset[str] | None = None,
) -> list[dict[str, Any]]:
    """All rows, by window and in all, as the workers of Spark make them. ``asked``: nodes."""
    add = Aggregation(WINDOW_US, max(windows_us.values()), parts, span, known.by_node(), {}, asked)
    sums = list(add(moved(root)))
    rows: list[dict[str, Any]] = []
    for part in range(parts):
        mine = [batch.filter(pyarrow.compute.equal(batch["part"], part)) for batch in sums]
        rows += [row for batch in WindowLevels(known, windows_us)(iter(mine)) for row in batch.to_pylist()]
    whole = pyarrow.RecordBatch.from_pydict({"sums": [row["sums"] for row in rows if row["level"] == WHOLE]})
    in_all = TotalLevels(known, 50.0)(iter([whole]))
    return rows + [{**row, "in_all": True} for batch in in_all for row in batch.to_pylist()]


def expected(rows: dict[str, list[Row]], windows_us: int | None) -> Counter[tuple[Any, ...]]:
    """Messages, bytes and failures of each link and side, one record after the other."""
    found: Counter[tuple[Any, ...]] = Counter()
    for node, each in rows.items():
        for row in each:
            at_us = int(row["at_us"] or 0) - (row["kind"] == "traffic")
            window = None if windows_us is None else at_us // windows_us * windows_us
            for side, link, not_part in (("in", "incoming", "copy"), ("out", "outgoing", "many")):
                if row[link] and row["part"] != not_part:
                    key = (window, node, row[link], side)
                    found[*key, "messages"] += int(row["count"] or 0)
                    found[*key, "size_bytes"] += int(row["size_bytes"] or 0)
                    found[*key, str(row["outcome"])] += int(row["count"] or 0)
                    found[*key, "max_us"] = max(found[*key, "max_us"], int(row["took_us"] or 0))
    return found


def of_links(rows: list[dict[str, Any]], *, in_all: bool) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        if row["level"] == "links" and bool(row.get("in_all")) == in_all:
            key = (row["window"], row["node"], row["link"], row["side"])
            for name in ("messages", "size_bytes", "max_us", *OUTCOMES):
                found[*key, name] = row[name]
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("at_once", "parts"), [(7, 3), (1 << 20, 1)])
def test_links_have_all_that_came_and_went_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int, parts: int
) -> None:
    monkeypatch.setattr(aggregation, "AT_ONCE", at_once)
    logs = random_logs(tmp_path, seed, 200)
    windows_us = {level.name: WINDOW_US for level in LEVELS}
    rows = replayed(tmp_path, facts(), windows_us, parts, TimeSpan())
    assert +of_links(rows, in_all=False) == +expected(logs, WINDOW_US)
    assert +of_links(rows, in_all=True) == +expected(logs, None)


def test_levels_of_wider_windows_add_up_to_the_same(tmp_path: Path) -> None:
    logs = random_logs(tmp_path, 1, 300)
    windows_us = {level.name: WINDOW_US * (2 if level.name == "links" else 1) for level in LEVELS}
    rows = replayed(tmp_path, facts(), windows_us, 2, TimeSpan())
    assert +of_links(rows, in_all=False) == +expected(logs, 2 * WINDOW_US)


def test_every_level_counts_what_its_links_count(tmp_path: Path) -> None:
    random_logs(tmp_path, 2, 300)
    rows = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 2, TimeSpan())
    for is_whole in (False, True):
        mine = [row for row in rows if bool(row.get("in_all")) == is_whole]
        total = {name: sum(row["messages"] for row in mine if row["level"] == name) for name in names()}
        at_edge = sum(row["messages"] for row in mine if row["level"] == "links" and row["peer"] is not None)
        told = sum(row["messages"] for row in mine if row["level"] == "links" and row["link"] != UNTOLD)
        assert total["routers"] == total["links"]
        assert total["connections"] == told
        assert total["mesh"] == total["addresses"] == total["users"] == at_edge
        assert at_edge < told < total["links"]
    latency = sum(row["messages"] for row in rows if row["level"] == LATENCY)
    assert latency == total["mesh"]


def test_a_connection_counts_its_links_and_no_row_comes_twice(tmp_path: Path) -> None:
    logs = random_logs(tmp_path, 4, 300)
    rows = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 3, TimeSpan())
    for level in LEVELS:
        mine = [row for row in rows if row["level"] == level.name]
        assert len({tuple(row[name] for name in ("window", *level.names)) for row in mine}) == len(mine)
    wanted: Counter[tuple[Any, ...]] = Counter()
    for (_, node, link, side, name), count in expected(logs, None).items():
        if name == "messages" and link != UNTOLD:
            wanted[node, link % 2, side] += count
    whole = [row for row in rows if row["level"] == "connections" and row.get("in_all")]
    assert {(row["node"], row["connection"], row["side"]): row["messages"] for row in whole} == wanted


def test_records_of_several_kinds_may_lie_together(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", [])
    rows = [delivery(1, 1, 2), {"kind": "link", "event": "opened", "at_us": START_US, "run": RUN, "link": 1}]
    with open_writer(path, metadata("r1", RUN, "test")) as writer:
        writer.write_batch(batch_of_rows(rows))
    kinds = [row["kind"] for batch in told(tmp_path) for row in batch.to_pylist() if row["kind"] != CARRIED]
    assert kinds == ["link", FILE]
    made = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 1, TimeSpan())
    assert {row["link"] for row in made if row["level"] == "links"} == {1, 2}
    assert [row["messages"] for row in made if row["level"] == FLOWS and row["side"] == "all"] == [1]


def test_records_of_a_run_that_no_file_tells_of_are_counted_by_node_and_in_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", [delivery(1, 1, 2), *(delivery(1, 1, 2, run=9) for _ in range(3))])
    write(tmp_path, "r2", [delivery(1, 1, 2, run=None), delivery(1, 1, 2, run=9, outcome="released")])
    assert path.exists()
    made = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 1, TimeSpan())
    whole = [row for row in made if row.get("in_all")]
    counted = {(row["node"], row["run"]): row["messages"] for row in whole if row["side"] == "all"}
    assert counted == {("r1", RUN): 1, ("r1", None): 3, ("r2", None): 2}
    others = {row["level"] for row in made if row["side"] != "all" and (row["node"], row["run"]) != ("r1", RUN)}
    assert others <= {"mesh", "routers", "addresses", "users", TIME, WHOLE, LATENCY}
    assert {row["messages"] for row in whole if row["level"] in ("mesh", "routers", "addresses", "users")} == {1}


def names() -> list[str]:
    return [level.name for level in LEVELS]


def test_a_cut_report_has_wanted_links_only(tmp_path: Path) -> None:
    random_logs(tmp_path, 3, 100)
    known = facts(wanted=(2,), is_cut=True)
    rows = replayed(tmp_path, known, {level.name: WINDOW_US for level in LEVELS}, 1, TimeSpan())
    assert {row["link"] for row in rows if row["level"] == "links"} == {2}
    assert {row["address"] for row in rows if row["level"] == "addresses"} == {"a2"}


def test_of_nodes_that_have_nothing_to_do_with_what_is_asked_for_records_are_counted_and_no_more(
    tmp_path: Path,
) -> None:
    random_logs(tmp_path, 4, 200)
    known, windows_us = facts(wanted=(2,), is_cut=True), {level.name: WINDOW_US for level in LEVELS}
    whole, cut = (replayed(tmp_path, known, windows_us, 1, TimeSpan(), asked) for asked in (None, frozenset(NODES[:1])))
    for level in ("flows", TIME):
        wanted, found = (
            sorted(
                (row["node"], row["window"], row["other"], row["messages"])
                for row in rows
                if row["level"] == level and row["side"] in ("all", None)
            )
            for rows in (whole, cut)
        )
        assert found == wanted != []
    of_all, of_asked = ([row for row in rows if row["level"] == "links"] for rows in (whole, cut))
    assert (
        [row for row in of_all if row["node"] == NODES[0]] == [row for row in of_asked if row["node"] == NODES[0]] != []
    )
    # What was carried of a small file has all of it.
    assert {row["node"] for row in of_asked} == set(NODES if file_slices.SMALL_BYTES else NODES[:1])


def test_only_records_of_the_time_are_added(tmp_path: Path) -> None:
    write(tmp_path, "r1", [delivery(second, 1, 0) for second in range(40)])
    span = TimeSpan(START_US + 10 * S, START_US + 30 * S)
    rows = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 1, span)
    assert [row["messages"] for row in rows if row["level"] == "mesh"] == [10, 10, 20]
    times = [(row["window"] - START_US, row["other"] - START_US) for row in rows if row["level"] == TIME]
    assert times == [(10 * S, 20 * S)]


def test_failures_are_told_by_both_links_and_window(tmp_path: Path) -> None:
    odd = [delivery(1, 1, 2, outcome="released"), delivery(2, 1, 2, outcome="released"), delivery(1, 1, 3)]
    write(tmp_path, "r1", odd)
    rows = replayed(tmp_path, facts(), {level.name: WINDOW_US for level in LEVELS}, 1, TimeSpan())
    failed = [row for row in rows if row["level"] == FLOWS and row["side"] == "pair"]
    assert [(row["link"], row["other"], row["what"], row["messages"]) for row in failed] == [(1, 2, "released", 2)]


def test_a_torn_file_is_a_sentence_and_the_others_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", [delivery(1, 1, 2)])
    (path.parent / "0-0.parquet").write_bytes(path.read_bytes()[:-50])
    rows = [row for batch in told(tmp_path) for row in batch.to_pylist()]
    notices = [row["notice"] for row in rows if row["kind"] == FILE and row["notice"]]
    assert len(notices) == 1
    assert notices[0].startswith(f"{path.parent / '0-0.parquet'} is incomplete, or not a Parquet file")
    assert [row["count"] for row in rows if row["kind"] == FILE and row["notice"] is None] == [1]


def test_a_file_that_went_after_it_was_told_of_is_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", [delivery(1, 1, 2)])
    named = for_workers(path).append_column("moved", pyarrow.nulls(1, pyarrow.binary()))
    path.unlink()
    add = Aggregation(WINDOW_US, WINDOW_US, 1, TimeSpan(), facts().by_node(), {})
    notices = [notice for batch in add(iter([named])) for notice in batch["notice"].to_pylist()]
    assert notices == [f"{path} cannot be read: No such file or directory"]


def test_what_clocks_of_runs_of_a_node_were_ahead_is_taken_off_of_each(tmp_path: Path) -> None:
    """Small files are added up together, those of several runs, too."""
    for place, run in enumerate((RUN, RUN, 9, RUN)):
        write(tmp_path, "r1", [delivery(10 * place, 1, 2, run=run)], name=f"1-{place}")
    add = Aggregation(WINDOW_US, WINDOW_US, 1, TimeSpan(), facts().by_node(), {"r1": {9: RunClock(20 * S)}})
    assert windows_of(add(moved(tmp_path))) == [0, 0, 10, 30]


def test_of_a_clock_that_was_set_what_it_was_ahead_before_is_taken_off_once(tmp_path: Path) -> None:
    """It was 30 s ahead until 100 s, and is 10 s ahead since."""
    readings = [{"kind": "node", "event": "live", "run": RUN, "at_us": START_US + at_s * S, "clock_us": clock_us}
                for at_s, clock_us in ((0, 7), (80, -20 * S + 7))]  # fmt: skip
    write(tmp_path, "r1", [*readings, *(delivery(at_s, 1, 2) for at_s in (30, 90, 85, 110))])
    was_us = {7: 20 * S, -20 * S + 7: 0}
    add = Aggregation(WINDOW_US, WINDOW_US, 1, TimeSpan(), facts().by_node(), {"r1": {RUN: RunClock(10 * S, was_us)}})
    assert windows_of(add(moved(tmp_path, {"r1": {RUN: RunClock(0, was_us)}}))) == [0, 60, 70, 100]


def windows_of(batches: Iterator[pyarrow.RecordBatch]) -> list[int]:
    """Of what came on link 1, in seconds since the start, one for each message."""
    found = [Sums.unpacked(each.as_buffer()) for batch in batches for each in batch["sums"]]
    came = [sums.where((sums.side == CAME) & (sums.link == 1)) for sums in found]
    return sorted(
        second
        for sums in came
        for second, count in zip((sums.window - START_US) // S, sums.messages, strict=True)
        for _ in range(count)
    )


def test_windows_get_wider_only_where_a_table_would_be_too_long() -> None:
    known = facts()
    assert set(widened(known, 3600 * S, WINDOW_US).values()) == {WINDOW_US}
    windows = 3 * MOST_ROWS // len(known.key)
    wider = widened(known, windows * WINDOW_US, WINDOW_US)
    assert wider["links"] == 6 * WINDOW_US
    assert wider["mesh"] == 2 * WINDOW_US


def test_connections_are_counted_by_run_to_know_how_wide_windows_must_be() -> None:
    level = next(level for level in LEVELS if level.name == "connections")
    runs = [("r1", 1), *((f"r{number}", 1) for number in range(2, 12))]
    links = [("r1", number) for number in range(1, 1001)] + [(node, 1) for node, _ in runs[1:]]
    rows = [
        {"node": node, "run": 1, "link": number, "connection": number, "address": "a", "user": None, "peer": 0}
        for node, number in links
    ]
    table = pyarrow.Table.from_pylist([{**row, "is_wanted": True} for row in rows])
    assert level.things(Facts.of(table, sorted(runs), [], is_cut=False)) == 2 * len(links)


@pytest.mark.parametrize("number", [-1, 1 << 32, 1 << 62, (1 << 63) - 1])
def test_numbers_of_links_and_connections_may_be_any(number: int) -> None:
    runs = [(f"r{place}", 1) for place in range(1, 9)]
    rows = [
        {"node": node, "run": 1, "link": link, "connection": abs(link), "address": node, "user": None, "peer": 0}
        for node, _ in runs
        for link in (number, 7)
    ]
    table = pyarrow.Table.from_pylist([{**row, "is_wanted": True} for row in rows])
    known = Facts.of(table, runs, [], is_cut=False)
    asked = numpy.array([0, 7, 7, 3, 3, -1]), numpy.array([7, number, number - 1, 8, 0, 7])
    places = known.places(*asked)
    assert [known.addresses.words[known.address[place]] for place in places[:2]] == ["r1", "r8"]
    assert list(places[2:]) == [UNKNOWN] * 4
    level = next(level for level in LEVELS if level.name == "connections")
    assert level.things(known) == 2 * len(rows)


@pytest.mark.parametrize(
    ("said", "messages", "size_bytes", "max_us"),
    [
        ({"count": -5}, 1, 100, 1000),
        ({"count": 0}, 1, 100, 1000),
        ({"count": 2**62}, 2**32 - 1, 100, 1000),
        ({"size_bytes": -1}, 1, 0, 1000),
        ({"size_bytes": 2**63 - 1}, 1, 2**50, 1000),
        ({"took_us": 2**63 - 1}, 1, 100, 2**50),
        ({"count": None, "size_bytes": None, "took_us": None}, 1, 0, 0),
    ],
)
def test_sums_that_cannot_be_are_cut_to_what_can(
    tmp_path: Path, said: dict[str, int], messages: int, size_bytes: int, max_us: int
) -> None:
    count = 3
    write(tmp_path, "r1", [delivery(0, 1, 2, **said) for _ in range(count)])
    found = replayed(tmp_path, facts(), dict.fromkeys([level.name for level in LEVELS], WINDOW_US), 1, TimeSpan())
    for row in found:
        if row["level"] == "links":
            sums = row["messages"], row["size_bytes"], row["max_us"], row["accepted"]
            assert sums == (count * messages, count * size_bytes, max_us, count * messages)
            assert 0 <= row["p50_us"] <= max_us
