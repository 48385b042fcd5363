"""What is said of a mesh, in which order, and what is not worth saying."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from linklogs.moments import TimeSpan
from mesh.commands.cli import cli
from mesh.reports import credit_waits as waits
from mesh.reports import findings as told
from mesh.reports.findings import findings
from mesh_tests.link_logs import START_US
from mesh_tests.unit.mesh.reports.tables import LINK, MOVED, at, summary

S = 1_000_000


def texts(**tables: list[dict[str, Any]]) -> list[str]:
    return [finding.text for finding in findings(summary(**tables))]


def run(restart: int, ending: str | None) -> dict[str, Any]:
    return {"node": "r1", "restart": restart, "ending": ending, "first_at": at(10 * restart), "last_at": at(20)}


def test_of_a_mesh_in_order_nothing_is_said() -> None:
    assert texts(addresses=[{**MOVED, "address": "a"}], runs=[run(0, None)]) == []


OUTAGE = {"node": "r1", "neighbor": "r2", "cause": "c", "why": None, "lasted_s": 1.0, "failed": 0}


def test_an_outage_says_how_long_why_and_what_failed() -> None:
    outage = {**OUTAGE, "cause": "silent", "lasted_s": 3.5, "failed": 12}
    assert texts(outages=[outage]) == [
        "r1 lost its neighbor r2 for 3.5 s (silent); 12 messages were not accepted there meanwhile"
    ]


def test_an_outage_that_did_not_end_says_so() -> None:
    [text] = texts(outages=[{**OUTAGE, "cause": None, "lasted_s": None}])
    assert text.startswith("r1 lost its neighbor r2 and did not get it back (cause unknown)")


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("stopped", "it was stopped"),
        ("failed", "it ended by itself"),
        ("crashed", "it was killed, or its host failed"),
        ("connection", "closed"),
        (None, "closed"),
    ],
)
def test_an_outage_says_what_had_become_of_the_neighbor(why: str | None, said: str) -> None:
    [text] = texts(outages=[{**OUTAGE, "cause": "closed", "why": why}])
    assert text.startswith(f"r1 lost its neighbor r2 for 1 s ({said});")


def test_what_a_router_loses_as_it_ends_is_not_worth_saying() -> None:
    assert texts(outages=[{**OUTAGE, "why": "itself"}]) == []


def test_a_stop_without_harm_is_less_than_a_crash() -> None:
    weights = [findings(summary(outages=[{**OUTAGE, "why": why}]))[0].weight for why in ("stopped", "crashed")]
    assert weights == sorted(set(weights))


def test_of_many_outages_the_worst_are_told_and_the_rest_counted() -> None:
    rows = [{**OUTAGE, "node": f"r{number}", "neighbor": "x", "failed": number} for number in range(7)]
    found = texts(outages=rows)
    assert [text[:2] for text in found[:3]] == ["r6", "r5", "r4"]
    assert found[3] == "4 more outages of neighbors"


def test_messages_that_were_not_accepted_are_a_share_with_their_outcomes() -> None:
    row = {**MOVED, "address": "orders", "accepted": 90, "released": 8, "sender_lost": 2}
    [finding] = findings(summary(addresses=[row]))
    assert finding.text == ("10 % of the messages to orders from clients were not accepted (8 released, 2 sender lost)")
    assert finding.helps.startswith("No consumer took these messages")


def test_a_few_messages_among_thousands_are_not_worth_a_word() -> None:
    assert texts(addresses=[{**MOVED, "address": "a", "messages": 10_000, "released": 9}]) == []


def test_what_is_said_to_help_names_commands_that_there_are() -> None:
    sources = "".join(Path(module.__file__ or "").read_text() for module in (told, waits))
    named = re.findall(r"`amqpmesh ([^`]+)`", sources)
    assert named
    for line in named:
        command: click.Command = cli
        for word in line.split():
            if word.startswith("--"):
                assert any(word in option.opts for option in command.params), line
                continue
            assert isinstance(command, click.Group), line
            found = command.get_command(click.Context(command), word)
            assert found, line
            command = found


def test_an_old_message_in_a_queue_is_told() -> None:
    row = {"node": "b1", "address": "work", "subscriber": None, "oldest_us": 90 * S, "most_messages": 7}
    assert texts(queues=[{**row, "last_messages": 2}]) == [
        "a message waited in work at b1 for 90 s; the queue had 7 messages at most, 2 at the end"
    ]


def test_a_taker_with_more_than_its_share_is_told() -> None:
    row = {**LINK, "user": None, "role": "consumer", "treatment": "balanced", "takers": 4, "share": 0.5}
    assert texts(takers=[{**row, "times_even": 2.0}]) == [
        "one of 4 takers of orders (consumer app at r1) got 50 %: 2.0 times its even share"
    ]
    assert texts(takers=[{**row, "times_even": 1.4}]) == []
    assert texts(takers=[{**row, "times_even": 2.0, "treatment": "closest"}]) == []


def test_detours_are_added_up() -> None:
    row = {"address": "a", "path": "r1>r3>r2", "cheapest": "r1>r2", "is_detour": True, "messages": 5}
    [text] = texts(circuits=[row, {**row, "messages": 2}, {**row, "is_detour": False}])
    assert text == "7 messages took a detour, most of them a over r1>r3>r2 where r1>r2 was cheapest"


def test_missing_records_are_a_share_and_name_the_nodes() -> None:
    rows = [
        {"node": "r1", "lost": 10, "moved": 80, "told": 10, "untold": 0},
        {"node": "r2", "lost": 0, "moved": 100, "told": 0, "untold": 0},
    ]
    [text] = texts(missing=rows)
    assert text.startswith("5 % of the records are missing (10, lost at r1)")


def test_records_that_are_in_no_table_are_a_share_and_name_the_nodes() -> None:
    rows = [
        {"node": "r1", "lost": 0, "moved": 80, "told": 10, "untold": 0},
        {"node": "r1", "lost": 0, "moved": 0, "told": 0, "untold": 10},
    ]
    [text] = texts(missing=rows)
    assert text.startswith("10 % of the records (10, of r1) belong to runs without a description in any file")


def test_restarts_drops_and_clocks_are_told() -> None:
    drop = {"node": "r1", "address": "a", "cause": "full", "messages": 4}
    found = texts(
        runs=[
            run(0, "stopped"),
            run(1, "crashed"),
            run(2, None),
        ],
        drops=[drop],
        clocks=[{"node": "r3", "at": None, "set_by_us": None, "ahead_us": -2 * S}],
    )
    assert found == [
        "4 pre-settled messages, or copies of them, were dropped, most of them of a at r1 (full)",
        "r1 started again twice: once after it was killed, or its host failed; once after it was stopped",
        "the clock of r3 is 2 s behind the clocks of the other nodes; the report corrects its times by that difference",
    ]


@pytest.mark.parametrize(
    ("ending", "said", "weight"),
    [
        ("crashed", "it was killed, or its host failed", 0.5),
        ("failed", "it ended by itself", 0.3),
        ("stopped", "it was stopped", 0.3),
    ],
)
def test_one_restart_is_told_with_what_was_before_it_and_only_a_crash_weighs_more(
    ending: str, said: str, weight: float
) -> None:
    [finding] = findings(summary(runs=[run(0, ending), run(1, None)]))
    assert (finding.text, finding.weight, finding.since) == (f"r1 started again after {said}", weight, at(10))


def test_nodes_that_were_all_stopped_are_one_matter() -> None:
    names = ("b1", "r1", "r2", "r3")
    runs = [{**run(number, ending), "node": name} for name in names for number, ending in ((0, "stopped"), (1, None))]
    assert texts(runs=runs) == ["b1, r1, r2, r3 started again after they were stopped"]
    crash = [{**run(number, ending), "node": "r4"} for number, ending in ((0, "crashed"), (1, None))]
    assert len(texts(runs=[*runs, *crash])) == 2


@pytest.mark.parametrize(("from_s", "to_s", "count"), [(5, 15, 1), (10, 11, 1), (0, 10, 0), (11, 20, 0)])
def test_a_restart_out_of_the_time_of_a_report_is_not_told(from_s: int, to_s: int, count: int) -> None:
    made = summary(runs=[run(0, "crashed"), run(1, None)])
    order = replace(made.order, span=TimeSpan(START_US + from_s * S, START_US + to_s * S))
    assert sum("started again" in each.text for each in findings(replace(made, order=order))) == count


def test_a_clock_that_was_set_is_told_with_when_and_by_how_much() -> None:
    rows = [
        {"node": "r3", "at": at(9), "set_by_us": 20 * S, "ahead_us": 20 * S + 1000},
        {"node": "r1", "at": at(5), "set_by_us": -3 * S, "ahead_us": 2},
        {"node": "r2", "at": at(7), "set_by_us": None, "ahead_us": 4 * S},
        *({"node": "r4", "at": at(1), "set_by_us": S, "ahead_us": S} for _ in range(3)),
    ]
    assert texts(clocks=rows) == [
        "the clock of r3 was set by 20 s at 2026-11-24 00:00:09+00:00, and was then 20 s ahead of the clocks of the "
        "other nodes; the report corrects its times by that difference",
        "the clock of r1 was set back by 3 s at 2026-11-24 00:00:05+00:00, and was then in step with the clocks of "
        "the other nodes; the report corrects its times by that difference",
        "the clock of r4 was set by 1 s at 2026-11-24 00:00:01+00:00, and was then 1 s ahead of the clocks of the "
        "other nodes; the report corrects its times by that difference",
        "the clock of r2 was from 2026-11-24 00:00:07+00:00 on 4 s ahead of the clocks of the other nodes; "
        "the report corrects its times by that difference",
        "clocks were set 2 more times",
    ]


def test_a_slow_tail_is_told_where_it_is_long() -> None:
    row = {**MOVED, "address": "a", "p50_us": 1000.0, "p99_us": 200_000.0}
    assert texts(addresses=[row]) == ["one of 100 messages to a took 200 ms or longer; half took 1 ms at most"]
    assert texts(addresses=[{**row, "p50_us": 50_000.0}]) == []
    assert texts(addresses=[{**row, "p50_us": 10.0, "p99_us": 99_000.0}]) == []


def test_files_that_were_left_out_are_told_by_the_first() -> None:
    [finding] = findings(summary(notices=("x is torn", "y is torn")))
    assert finding.text == "2 files or directories were left out; the first: x is torn"


def test_the_worst_comes_first() -> None:
    found = findings(
        summary(
            notices=("x is torn",),
            outages=[{**OUTAGE, "failed": 1}],
            runs=[run(0, "crashed"), run(1, None)],
        )
    )
    assert [finding.weight for finding in found] == sorted((finding.weight for finding in found), reverse=True)
    assert found[0].text.startswith("r1 lost its neighbor")


def test_a_time_without_records_is_the_first_that_is_told_and_of_which_time_the_others_are() -> None:
    made = summary(runs=[run(0, None)], addresses=[{**MOVED, "address": "a", "accepted": 0, "released": 100}])
    order = replace(made.order, span=TimeSpan(START_US + 60 * S, None))
    found = findings(replace(made, order=order))
    assert found[0].text == (
        "no record of the requested time: the records cover 2026-11-24 00:00:00+00:00 to 2026-11-24 00:00:20+00:00"
    )


@pytest.mark.parametrize(("near", "said"), [(("orders", "news"), "; the closest: orders, news"), ((), "")])
def test_a_pattern_that_no_address_matches_is_told_with_what_there_is(near: tuple[str, ...], said: str) -> None:
    made = summary()
    order = replace(made.order, address="nope.*")
    [finding] = findings(replace(made, order=order, near=near))
    assert finding.text == f"no address matches 'nope.*'{said}"


def test_who_asks_logs_with_hashes_for_an_address_is_told_how_to_get_its_hash() -> None:
    made = replace(summary(), near=("b23334e3a10f781c", "0123456789abcdef"))
    [finding] = findings(replace(made, order=replace(made.order, address="orders")))
    assert finding.text.startswith("no address matches 'orders': these logs have hashes in place of addresses; the")
    assert "`amqpmesh linklogs hash`" in finding.helps
