"""What is live follows from the text records, in order."""

from __future__ import annotations

import pytest

from linklogs.writer.live_state import LiveState, as_of
from linklogs.writer.rows import Row


def live_after(*rows: Row) -> list[Row]:
    """Without the node."""
    live = LiveState({"role": "router"})
    for row in rows:
        live.on_row(row, 0)
    return live.rows(5, 0)[1:]


def test_the_node_comes_first_with_its_clock_and_what_it_lost() -> None:
    live = LiveState({"role": "router", "version": "1"})
    live.on_row({"kind": "link", "event": "opened", "link": 1}, 0)
    live.on_row({"kind": "node", "event": "opened", "topology": "abc"}, 0)
    live.on_row({"kind": "node", "event": "lost", "count": 7}, 0)
    assert live.rows(5, 9)[0] == {
        "kind": "node", "event": "live", "role": "router", "version": "1", "topology": "abc", "clock_us": 5, "count": 9,
    }  # fmt: skip


def test_the_load_of_a_node_is_of_the_moment() -> None:
    live = LiveState({"role": "router"})
    load: Row = {"cpu_us": 5, "resident_bytes": 6, "connections": 7, "links": 8}
    live.on_row({"kind": "node", "event": "changed", **load}, 0)
    assert live.rows(5, 9)[0] == {"kind": "node", "event": "live", "role": "router", "clock_us": 5, "count": 9}


def test_what_opened_is_live_until_it_closes() -> None:
    for kind, key in (("connection", "connection"), ("link", "link"), ("queue", "queue")):
        opened: Row = {"kind": kind, "event": "opened", key: 3}
        assert live_after(opened) == [opened | {"event": "live"}]
        assert live_after(opened, {"kind": kind, "event": "closed", key: 3, "cause": "x"}) == []
        assert live_after(opened, {"kind": kind, "event": "closed", key: 4}) == [opened | {"event": "live"}]


def test_neighbors_and_paths_go_by_the_router_at_the_other_end() -> None:
    up: Row = {"kind": "neighbor", "event": "opened", "neighbor": "r2", "cost": 1}
    path: Row = {"kind": "path", "event": "changed", "egress": "r3", "path": "r1>r2>r3", "cost": 2}
    longer: Row = {"kind": "path", "event": "changed", "egress": "r3", "path": "r1>r4>r3", "cost": 9}
    assert live_after(path, up, longer) == [up | {"event": "live"}, longer | {"event": "live"}]
    assert live_after(up, {"kind": "neighbor", "event": "closed", "neighbor": "r2"}) == []


def test_a_change_keeps_the_columns_that_it_does_not_name() -> None:
    queue: Row = {"kind": "queue", "event": "opened", "queue": 1, "address": "orders", "depth_count": 0}
    deeper: Row = {"kind": "queue", "event": "changed", "queue": 1, "depth_count": 9}
    assert live_after(queue, deeper) == [queue | {"event": "live", "depth_count": 9}]


def test_the_cause_of_a_lack_of_credit_goes_with_the_lack() -> None:
    link: Row = {"kind": "link", "event": "opened", "link": 1}
    lack: Row = {"kind": "credit", "event": "changed", "link": 1, "credit": 0, "starved_us": 9, "cause": "takers"}
    live = {"kind": "credit", "event": "live", "link": 1}
    assert live_after(link, lack)[1] == live | {"credit": 0, "cause": "takers"}
    assert live_after(link, lack, lack | {"credit": 3})[1] == live | {"credit": 3}


def test_what_waits_in_a_queue_gets_older_though_nobody_tells_so() -> None:
    live = LiveState({})
    live.on_row({"kind": "queue", "event": "opened", "queue": 1, "address": "orders"}, 50)
    live.on_row({"kind": "queue", "event": "changed", "queue": 1, "depth_count": 2, "oldest_us": 30}, 100)
    _, queue = live.rows(0, 0)
    assert as_of(queue, 170)["oldest_us"] == 100
    heard_again = LiveState({})
    heard_again.on_list([queue])
    assert as_of(heard_again.rows(0, 0)[1], 270)["oldest_us"] == 200


def test_a_list_of_a_version_before_has_ages_of_which_nobody_knows_when_they_were_told() -> None:
    live = LiveState({})
    live.on_list([{"kind": "queue", "event": "live", "queue": 1, "depth_count": 2, "oldest_us": 30}])
    assert as_of(live.rows(0, 0)[1], 10**12) == {"kind": "queue", "event": "live", "queue": 1, "depth_count": 2}


def test_a_queue_that_is_empty_again_has_no_age() -> None:
    live = LiveState({})
    live.on_row({"kind": "queue", "event": "changed", "queue": 1, "depth_count": 2, "oldest_us": 30}, 100)
    live.on_row({"kind": "queue", "event": "changed", "queue": 1, "depth_count": 0}, 120)
    assert as_of(live.rows(0, 0)[1], 170) == {"kind": "queue", "event": "live", "queue": 1, "depth_count": 0}


@pytest.mark.parametrize(("came_us", "at_us"), [(2**64, 0), (0, -(2**63)), (-(2**63), 2**63 - 1)])
def test_an_age_that_cannot_be_still_fits_its_column(came_us: int, at_us: int) -> None:
    live = LiveState({})
    live.on_row({"kind": "queue", "event": "changed", "queue": 1, "depth_count": 1, "oldest_us": 0}, came_us)
    assert 0 <= int(as_of(live.rows(0, 0)[1], at_us)["oldest_us"]) < 2**63


def test_what_opens_again_has_nothing_of_before() -> None:
    first: Row = {"kind": "link", "event": "opened", "link": 1, "address": "a"}
    again: Row = {"kind": "link", "event": "opened", "link": 1}
    assert live_after(first, again) == [again | {"event": "live"}]


def test_a_link_is_gone_with_its_connection_and_its_credit_with_the_link() -> None:
    rows: list[Row] = [
        {"kind": "connection", "event": "opened", "connection": 1},
        {"kind": "link", "event": "opened", "link": 5, "connection": 1},
        {"kind": "link", "event": "opened", "link": 6, "connection": 2},
        {"kind": "credit", "event": "changed", "link": 5, "credit": 0},
        {"kind": "credit", "event": "changed", "link": 6, "credit": 10},
    ]
    left = live_after(*rows, {"kind": "connection", "event": "closed", "connection": 1})
    assert [(row["kind"], row["link"]) for row in left] == [("link", 6), ("credit", 6)]
    assert len(live_after(*rows, {"kind": "link", "event": "closed", "link": 6})) == 3


def test_what_was_only_of_a_moment_is_not_told_again() -> None:
    starved: Row = {"kind": "credit", "event": "changed", "link": 5, "credit": 0, "starved_us": 100, "cause": "takers"}
    assert live_after(starved) == [
        {"kind": "credit", "event": "live", "link": 5, "credit": 0, "cause": "takers"},
    ]
    assert live_after({"kind": "drop", "link": 5, "count": 3}) == []


def test_who_kept_a_link_waiting_is_not_said_of_what_it_has_later() -> None:
    starved: Row = {"kind": "credit", "event": "changed", "link": 5, "credit": 0, "starved_us": 100, "cause": "takers"}
    still: Row = {"kind": "credit", "event": "changed", "link": 5, "credit": 7}
    assert live_after(starved, still) == [{"kind": "credit", "event": "live", "link": 5, "credit": 7}]


def test_rows_without_the_number_of_what_they_tell_of_change_nothing() -> None:
    assert live_after({"kind": "link", "event": "opened"}, {"kind": "link", "event": "closed"}) == []


def test_a_list_that_is_heard_again_is_the_same_list() -> None:
    first = LiveState({"role": "router"})
    first.on_row({"kind": "link", "event": "opened", "link": 1, "address": "a"}, 0)
    first.on_row({"kind": "credit", "event": "changed", "link": 1, "credit": 1}, 0)
    second = LiveState({})
    second.on_list(first.rows(5, 9))
    assert second.rows(5, 9) == first.rows(5, 9)
