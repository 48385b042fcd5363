"""Derives findings about the mesh from the tables of a report, in words, the weightiest first, each with a remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any

from linklogs.moments import TimeSpan
from mesh.reports import words
from mesh.reports.credit_waits import kept, waits
from mesh.reports.finding import EACH, US_PER_S, ReportFinding, shown, who
from mesh.reports.lost_records import lacking
from mesh.reports.summary import Summary, format_time
from mesh.reports.words import not_accepted


def findings(summary: Summary) -> list[ReportFinding]:
    found = [finding for check in CHECKS for finding in check(summary)]
    return sorted(found, key=lambda finding: -finding.weight)


def empty(summary: Summary) -> Iterator[ReportFinding]:
    if summary.order.span.is_all or lacking(summary, "lost").total:
        return
    known = [time for row in summary.rows("runs") for time in (row["first_at"], row["last_at"])]
    times = (format_time(round(each.timestamp() * US_PER_S), summary.order.tz) for each in (min(known), max(known)))
    read = f": the records cover {' to '.join(map(str, times))}" if known else ""
    yield ReportFinding(1.0, f"no record of the requested time{read}", "See `--from`, `--to` and `--tz`.")


def unmatched(summary: Summary) -> Iterator[ReportFinding]:
    pattern = summary.order.address
    if pattern is None or summary.tables["links"].num_rows or summary.tables["queues"].num_rows:
        return
    near = f"; the closest: {', '.join(summary.near)}" if summary.near else ""
    is_hashed = summary.near and all(HASH.fullmatch(address) for address in summary.near)
    hashed = ": these logs have hashes in place of addresses" if is_hashed else ""
    helps = HELPS_HASHED if is_hashed else HELPS_PATTERN
    yield ReportFinding(0.99, f"no address matches {pattern!r}{hashed}{near}", helps)


def missing(summary: Summary) -> Iterator[ReportFinding]:
    lost = lacking(summary, "lost")
    if not lost.records:
        return
    share, nodes = lost.share, ", ".join(lost.nodes)
    yield ReportFinding(
        0.3 + share / 2,
        f"{words.share(share)} of the records are missing ({lost.records:,}, lost at {nodes}); every figure of these "
        "nodes is too low",
        "Give the writer a faster disk, or record busy addresses at level `summary`.",
    )


def untold(summary: Summary) -> Iterator[ReportFinding]:
    found = lacking(summary, "untold")
    if found.records:
        nodes = ", ".join(found.nodes)
        yield ReportFinding(
            0.3 + found.share / 2,
            f"{words.share(found.share)} of the records ({found.records:,}, of {nodes}) belong to runs "
            "without a description in any file; no table counts them",
            "The files that describe those runs are missing or damaged: see the files that were left out.",
        )


def outages(summary: Summary) -> Iterator[ReportFinding]:
    # A loss of a neighbor that a router records while the router itself ends is left out: its neighbors record the
    # outage.
    rows = [row for row in summary.rows("outages") if row["why"] != "itself"]
    rows = sorted(rows, key=lambda row: -(row["failed"] + (row["lasted_s"] or summary.seconds)))
    for row in rows[:EACH]:
        lasted = (
            "and did not get it back"
            if row["lasted_s"] is None
            else f"for {words.duration(row['lasted_s'] * US_PER_S)}"
        )
        yield ReportFinding(
            0.9 if row["failed"] else 0.4 if row["why"] == "stopped" else 0.6,
            f"{row['node']} lost its neighbor {row['neighbor']} {lasted} ({_why(row)}); "
            f"{row['failed']:,} messages were not accepted there meanwhile",
            "Give the routers a second path, which messages take meanwhile; rehearse it with `amqpmesh drill`.",
            row.get("at"),
        )
    if len(rows) > EACH:
        yield ReportFinding(
            0.55, f"{len(rows) - EACH:,} more outages of neighbors", "The table of outages lists all of them."
        )


def refused(summary: Summary) -> Iterator[ReportFinding]:
    for row in _worst(summary, "addresses", not_accepted, side="in")[:EACH]:
        share = not_accepted(row) / row["messages"]
        if share < LEAST_SHARE:
            continue
        parts = ", ".join(f"{row[name]:,} {name.replace('_', ' ')}" for name in words.NOT_ACCEPTED if row[name])
        yield ReportFinding(
            0.5 + share / 2,
            f"{words.share(share)} of the messages to {row['address']} from {row['peer']}s were not accepted ({parts})",
            _help_for_refused(row, summary),
        )


def aging(summary: Summary) -> Iterator[ReportFinding]:
    for row in sorted(summary.rows("queues"), key=lambda row: -(row["oldest_us"] or 0))[:EACH]:
        if (row["oldest_us"] or 0) < OLD_S * US_PER_S or not row["most_messages"]:
            continue
        yield ReportFinding(
            0.4,
            f"a message waited in {_queue(row)} at {row['node']} for {words.duration(row['oldest_us'])}; "
            f"the queue had {row['most_messages']:,} messages at most, {row['last_messages']:,} at the end",
            "Add consumers, or see with `amqpmesh status --queues` whether the present consumers settle their "
            "messages.",
        )


def uneven(summary: Summary) -> Iterator[ReportFinding]:
    rows = [
        row for row in summary.rows("takers") if row["takers"] > 1 and row["treatment"] == "balanced" and row["share"]
    ]
    for row in sorted(rows, key=lambda row: -row["times_even"])[:EACH]:
        if row["times_even"] < UNEVEN:
            continue
        yield ReportFinding(
            0.25,
            f"one of {row['takers']:,} takers of {row['address']} ({who(row)} at {row['node']}) got "
            f"{words.share(row['share'])}: {row['times_even']:.1f} times its even share",
            "A consumer that settles slowly gets fewer messages: compare latency and credit of the consumers in the "
            "table of links.",
        )


def detours(summary: Summary) -> Iterator[ReportFinding]:
    rows = [row for row in summary.rows("circuits") if row["is_detour"] and row["messages"]]
    if rows:
        worst = max(rows, key=lambda row: row["messages"])
        yield ReportFinding(
            0.3,
            f"{sum(row['messages'] for row in rows):,} messages took a detour, most of them {worst['address']} over "
            f"{worst['path']} where {worst['cheapest'] or 'nothing'} was cheapest",
            "Circuits move back to the cheapest path some time after an outage; `amqpmesh cost` changes the cost of "
            "a connection.",
        )


def restarts(summary: Summary) -> Iterator[ReportFinding]:
    again: dict[str, Counter[str]] = {}
    last: dict[str, datetime] = {}
    for before, after in pairwise(sorted(summary.rows("runs"), key=lambda row: (row["node"], row["restart"]))):
        if before["node"] == after["node"] and _is_in(summary.order.span, after["first_at"]):
            again.setdefault(after["node"], Counter())[before["ending"]] += 1
            last[after["node"]] = after["first_at"]
    stopped = sorted(node for node, ends in again.items() if ends.total() == ends["stopped"])
    if len(stopped) > EACH:
        since = min(last[node] for node in stopped)
        yield ReportFinding(
            0.3, f"{', '.join(stopped)} started again after they were stopped", "These nodes were asked to stop.", since
        )
        again = {node: ends for node, ends in again.items() if node not in stopped}
    for node, ends in sorted(again.items(), key=lambda pair: (-pair[1]["crashed"], -pair[1].total())):
        told = [(WHY_LOST.get(ending, "its end is unknown"), count) for ending, count in sorted(ends.items())]
        if ends.total() == 1:
            text = f"{node} started again after {told[0][0]}"
        else:
            text = f"{node} started again {_times(ends.total())}: " + "; ".join(
                f"{_times(count)} after {why}" for why, count in told
            )
        helps = (
            "The end of the node's log says why the node ended."
            if ends["crashed"] + ends["failed"]
            else "The node was asked to stop."
        )
        helps += (
            " Messages of its last second at level `summary` are missing from the tables." if ends["crashed"] else ""
        )
        yield ReportFinding(0.5 if ends["crashed"] else 0.3, text, helps, last[node])


def dropped(summary: Summary) -> Iterator[ReportFinding]:
    rows = summary.rows("drops")
    lost = sum(row["messages"] or 0 for row in rows)
    if lost:
        worst = max(rows, key=lambda row: row["messages"] or 0)
        yield ReportFinding(
            0.65,
            f"{lost:,} pre-settled messages, or copies of them, were dropped, most of them of {worst['address']} at "
            f"{worst['node']} ({worst['cause'] or 'cause unknown'})",
            "Producers whose messages must not be lost should not send settled messages.",
        )


def clocks(summary: Summary) -> Iterator[ReportFinding]:
    rows = summary.rows("clocks")
    for row in sorted((row for row in rows if row["set_by_us"] is None), key=lambda row: -abs(row["ahead_us"])):
        since = "is" if row["at"] is None else f"was from {shown(row['at'], summary.order.tz)} on"
        yield ReportFinding(0.32, f"the clock of {row['node']} {since} {_ahead(row)}; {CORRECTED}", HELPS_CLOCKS)
    steps = sorted((row for row in rows if row["set_by_us"] is not None), key=lambda row: -abs(row["set_by_us"]))
    for row in steps[:EACH]:
        back = "back " if row["set_by_us"] < 0 else ""
        by = words.duration(abs(row["set_by_us"]))
        yield ReportFinding(
            0.33,
            f"the clock of {row['node']} was set {back}by {by} at {shown(row['at'], summary.order.tz)}, and was then "
            f"{_ahead(row)}; {CORRECTED}",
            HELPS_CLOCKS,
        )
    if len(steps) > EACH:
        yield ReportFinding(
            0.31, f"clocks were set {len(steps) - EACH:,} more times", "The table of clocks lists all of them."
        )


def slow_tail(summary: Summary) -> Iterator[ReportFinding]:
    for row in _worst(summary, "addresses", lambda row: row["p99_us"] or 0, side="in", peer="client")[:1]:
        if row["p99_us"] and row["p50_us"] and row["p99_us"] > SLOW_US and row["p99_us"] > TAIL * row["p50_us"]:
            yield ReportFinding(
                0.28,
                f"one of 100 messages to {row['address']} took {words.duration(row['p99_us'])} or longer; half took "
                f"{words.duration(row['p50_us'])} at most",
                "The table addresses_by_window shows when the address was slow; compare outages and credit.",
            )


def left_out(summary: Summary) -> Iterator[ReportFinding]:
    if summary.notices:
        yield ReportFinding(
            0.2,
            f"{words.counted(len(summary.notices), 'file or directory', 'files or directories')} left out; the first: "
            f"{summary.notices[0]}",
            "An incomplete file was not finished when its writer ended; move the file away if it stays incomplete.",
        )


CHECKS: tuple[Callable[[Summary], Iterator[ReportFinding]], ...] = (
    empty,
    unmatched,
    missing,
    untold,
    outages,
    refused,
    waits,
    aging,
    uneven,
    detours,
    restarts,
    dropped,
    clocks,
    slow_tail,
    left_out,
)

HASH = re.compile("[0-9a-f]{16}")
HELPS_PATTERN = "A pattern may have `*`, `?` and `[...]`, and must match the whole address."
HELPS_HASHED = "With the key, `amqpmesh linklogs hash` prints the hash of an address."
CORRECTED = "the report corrects its times by that difference"
HELPS_CLOCKS = "Synchronize the clocks of all hosts of the mesh with one time server."
RIGHT_US = 50_000
"""The greatest difference of a clock in us from the other clocks that the report does not correct."""
LEAST_SHARE = 0.001
OLD_S = 60
UNEVEN = 1.5
TAIL = 20
SLOW_US = 100_000
WHY_LOST = {
    "stopped": "it was stopped",
    "failed": "it ended by itself",
    "crashed": "it was killed, or its host failed",
}


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _is_in(span: TimeSpan, at: datetime) -> bool:
    at_us = at.timestamp() * US_PER_S
    return (span.from_us is None or at_us >= span.from_us) and (span.to_us is None or at_us < span.to_us)


def _why(row: dict[str, Any]) -> str:
    return WHY_LOST.get(row["why"], row["cause"] or "cause unknown")


def _help_for_refused(row: dict[str, Any], summary: Summary) -> str:
    worst = max(words.NOT_ACCEPTED, key=lambda name: int(row[name] or 0))
    if worst == "modified" and row["address"] in kept(summary):
        return (
            "Consumers left, or were lost, before they settled these messages: the table unsettled lists the consumers."
        )
    if worst == "modified" and not summary.tables["outages"].num_rows:
        return (
            "Consumers gave these messages back, or were lost before they settled them: the table noteworthy has "
            "links and times."
        )
    return {
        "rejected": "Consumers rejected these messages as invalid, or a queue was full: see the table "
        "noteworthy for links and times.",
        "released": "No consumer took these messages: attach consumers, or give the address a fallback or a queue.",
        "modified": "These messages were in flight when a link or node was lost: see the outages.",
        "aborted": "Producers aborted these messages: see the logs of the producers.",
        "sender_lost": "Producers were lost before these messages were settled: see their logs, and the network.",
    }[worst]


def _worst(summary: Summary, table: str, by: Callable[[dict[str, Any]], int], **wanted: str) -> list[dict[str, Any]]:
    rows = [row for row in summary.rows(table) if all(row[key] == value for key, value in wanted.items())]
    return sorted(rows, key=lambda row: -by(row))


def _ahead(row: dict[str, Any]) -> str:
    if abs(row["ahead_us"]) <= RIGHT_US:
        return "in step with the clocks of the other nodes"
    way = "ahead of" if row["ahead_us"] > 0 else "behind"
    return f"{words.duration(abs(row['ahead_us']))} {way} the clocks of the other nodes"


def _queue(row: dict[str, Any]) -> str:
    return f"{row['address']} ({row['subscriber']})" if row["subscriber"] else f"{row['address']}"
