"""What is wrong with a mesh, from the tables of its report: in words, worst first, each with what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from addressing.address import MESH_PREFIX
from linklogs.moments import Span
from mesh.link_logs import words
from mesh.link_logs.lost import lacking
from mesh.link_logs.summary import Summary, format_time
from mesh.link_logs.words import not_accepted

US_PER_S = 1_000_000
EACH = 3
"""So many of a kind are told in full."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``weight``: from 0, good to know, to 1, messages are lost. ``helps`` may have commands in backticks."""

    weight: float
    text: str
    helps: str

    def to_map(self) -> dict[str, Any]:
        return {"weight": round(self.weight, 3), "text": self.text, "helps": self.helps}


def findings(summary: Summary) -> list[Finding]:
    found = [finding for check in CHECKS for finding in check(summary)]
    return sorted(found, key=lambda finding: -finding.weight)


def empty(summary: Summary) -> Iterator[Finding]:
    if summary.order.span.is_all or lacking(summary, "lost").total:
        return
    known = [time for row in summary.rows("runs") for time in (row["first_at"], row["last_at"])]
    times = (format_time(round(each.timestamp() * US_PER_S), summary.order.tz) for each in (min(known), max(known)))
    read = f": what was read is of {' to '.join(map(str, times))}" if known else ""
    yield Finding(1.0, f"no record is of the time that was asked for{read}", "See `--from`, `--to` and `--tz`.")


def unmatched(summary: Summary) -> Iterator[Finding]:
    pattern = summary.order.address
    if pattern is None or summary.tables["links"].num_rows or summary.tables["queues"].num_rows:
        return
    near = f"; the closest: {', '.join(summary.near)}" if summary.near else ""
    yield Finding(
        0.99, f"no address matches {pattern!r}{near}", "A pattern has `*`, `?` and `[...]`; it is of the whole address."
    )


def missing(summary: Summary) -> Iterator[Finding]:
    lost = lacking(summary, "lost")
    if not lost.records:
        return
    share, nodes = lost.share, ", ".join(lost.nodes)
    yield Finding(
        0.3 + share / 2,
        f"{words.share(share)} of the records are missing ({lost.records:,}, lost at {nodes}); every figure of these "
        "nodes is too low",
        "Give the writer a faster disk, or record busy addresses at level `summary`.",
    )


def untold(summary: Summary) -> Iterator[Finding]:
    found = lacking(summary, "untold")
    if found.records:
        nodes = ", ".join(found.nodes)
        yield Finding(
            0.3 + found.share / 2,
            f"{words.share(found.share)} of the records ({found.records:,}, of {nodes}) are of runs of which no file "
            "tells; they are in no table",
            "What tells of those runs is gone or damaged: see the files that were left out.",
        )


def outages(summary: Summary) -> Iterator[Finding]:
    # What a router loses as it ends, its neighbors tell of.
    rows = [row for row in summary.rows("outages") if row["why"] != "itself"]
    rows = sorted(rows, key=lambda row: -(row["failed"] + (row["lasted_s"] or summary.seconds)))
    for row in rows[:EACH]:
        lasted = (
            "and did not get it back"
            if row["lasted_s"] is None
            else f"for {words.duration(row['lasted_s'] * US_PER_S)}"
        )
        yield Finding(
            0.9 if row["failed"] else 0.4 if row["why"] == "stopped" else 0.6,
            f"{row['node']} lost its neighbor {row['neighbor']} {lasted} ({_why(row)}); "
            f"{row['failed']:,} messages were not accepted there meanwhile",
            "A second path lets messages go around: `amqpmesh drill` rehearses it.",
        )
    if len(rows) > EACH:
        yield Finding(0.55, f"{len(rows) - EACH:,} more outages of neighbors", "The table of outages has all of them.")


def refused(summary: Summary) -> Iterator[Finding]:
    for row in _worst(summary, "addresses", not_accepted, side="in")[:EACH]:
        share = not_accepted(row) / row["messages"]
        if share < LEAST_SHARE:
            continue
        parts = ", ".join(f"{row[name]:,} {name.replace('_', ' ')}" for name in words.NOT_ACCEPTED if row[name])
        yield Finding(
            0.5 + share / 2,
            f"{words.share(share)} of the messages to {row['address']} from {row['peer']}s were not accepted ({parts})",
            _help_for_refused(row),
        )


def starved(summary: Summary) -> Iterator[Finding]:
    # A circuit stays for a while without a producer, and waits for nobody; where one waits, its link tells.
    rows = [
        row
        for row in summary.rows("credit")
        if row["direction"] != "outgoing" and row["role"] != "circuit" and not _is_of_mesh(row)
    ]
    rows = sorted(rows, key=lambda row: -row["starved_us"])
    for row in rows[:EACH]:
        if row["starved_us"] < LEAST_WAIT_S * US_PER_S:
            continue
        why = WAITS_FOR.get(row["cause"], row["cause"] or "cause unknown")
        yield Finding(
            0.35 + min(row["share"], 1) / 3,
            f"{_who(row)} at {row['node']} waited {words.duration(row['starved_us'])} for credit to send to "
            f"{row['address']}, {words.share(row['share'])} of the time: {why}",
            HELPS_WAITING.get(row["cause"], "The table of credit has each link and cause."),
        )


def unsettled(summary: Summary) -> Iterator[Finding]:
    of_clients = [row for row in summary.rows("unsettled") if row["role"] == "consumer" and not _is_of_mesh(row)]
    rows = [row for row in of_clients if row["longest_us"] >= LEAST_HELD_S * US_PER_S]
    for row in sorted(rows, key=lambda row: -row["longest_us"])[:EACH]:
        yield Finding(
            0.38,
            f"{_who(row)} at {row['node']} kept {row['most_unsettled']:,} deliveries of {row['address']} without an "
            f"outcome for {words.duration(row['longest_us'])}; {row['last_unsettled']:,} at last",
            "See whether it still works: what it keeps goes to others once its connection ends. "
            "One that takes long for a message needs no more credit than it works on at once.",
        )


def aging(summary: Summary) -> Iterator[Finding]:
    for row in sorted(summary.rows("queues"), key=lambda row: -(row["oldest_us"] or 0))[:EACH]:
        if (row["oldest_us"] or 0) < OLD_S * US_PER_S or not row["most_messages"]:
            continue
        yield Finding(
            0.4,
            f"a message lay in {_queue(row)} at {row['node']} for {words.duration(row['oldest_us'])}; "
            f"{row['most_messages']:,} were there at most, {row['last_messages']:,} at last",
            "Add consumers, or see with `amqpmesh status --queues` whether the ones there are settle what they get.",
        )


def uneven(summary: Summary) -> Iterator[Finding]:
    rows = [
        row for row in summary.rows("takers") if row["takers"] > 1 and row["treatment"] == "balanced" and row["share"]
    ]
    for row in sorted(rows, key=lambda row: -row["times_even"])[:EACH]:
        if row["times_even"] < UNEVEN:
            continue
        yield Finding(
            0.25,
            f"one of {row['takers']:,} takers of {row['address']} ({_who(row)} at {row['node']}) got "
            f"{words.share(row['share'])}: {row['times_even']:.1f} times its even share",
            "Takers that settle slowly get less: compare their latency in the table of links, and their credit.",
        )


def detours(summary: Summary) -> Iterator[Finding]:
    rows = [row for row in summary.rows("circuits") if row["is_detour"] and row["messages"]]
    if rows:
        worst = max(rows, key=lambda row: row["messages"])
        yield Finding(
            0.3,
            f"{sum(row['messages'] for row in rows):,} messages took a detour, most of them {worst['address']} over "
            f"{worst['path']} where {worst['cheapest'] or 'nothing'} was cheapest",
            "Circuits move back some time after an outage; `amqpmesh cost` changes what a connection costs.",
        )


def restarts(summary: Summary) -> Iterator[Finding]:
    again: dict[str, Counter[str]] = {}
    for before, after in pairwise(sorted(summary.rows("runs"), key=lambda row: (row["node"], row["restart"]))):
        if before["node"] == after["node"] and _is_in(summary.order.span, after["first_at"]):
            again.setdefault(after["node"], Counter())[before["ending"]] += 1
    for node, ends in sorted(again.items(), key=lambda pair: (-pair[1]["crashed"], -pair[1].total())):
        told = [(WHY_LOST.get(ending, "its end is unknown"), count) for ending, count in sorted(ends.items())]
        if ends.total() == 1:
            text = f"{node} started again after {told[0][0]}"
        else:
            text = f"{node} started again {_times(ends.total())}: " + "; ".join(
                f"{_times(count)} after {why}" for why, count in told
            )
        yield Finding(0.5 if ends["crashed"] else 0.3, text, "Its log says why it ended.")


def dropped(summary: Summary) -> Iterator[Finding]:
    rows = summary.rows("drops")
    lost = sum(row["messages"] or 0 for row in rows)
    if lost:
        worst = max(rows, key=lambda row: row["messages"] or 0)
        yield Finding(
            0.65,
            f"{lost:,} pre-settled messages, or copies of them, were dropped, most of them of {worst['address']} at "
            f"{worst['node']} ({worst['cause'] or 'cause unknown'})",
            "Producers that may not lose messages must not send them settled.",
        )


def clocks(summary: Summary) -> Iterator[Finding]:
    rows = summary.rows("clocks")
    for row in sorted((row for row in rows if row["set_by_us"] is None), key=lambda row: -abs(row["ahead_us"])):
        since = "is" if row["at"] is None else f"was from {_shown(summary, row['at'])} on"
        yield Finding(0.32, f"the clock of {row['node']} {since} {_ahead(row)}; {CORRECTED}", HELPS_CLOCKS)
    steps = sorted((row for row in rows if row["set_by_us"] is not None), key=lambda row: -abs(row["set_by_us"]))
    for row in steps[:EACH]:
        back = "back " if row["set_by_us"] < 0 else ""
        by = words.duration(abs(row["set_by_us"]))
        yield Finding(
            0.33,
            f"the clock of {row['node']} was set {back}by {by} at {_shown(summary, row['at'])}, and was then "
            f"{_ahead(row)}; {CORRECTED}",
            HELPS_CLOCKS,
        )
    if len(steps) > EACH:
        yield Finding(0.31, f"clocks were set {len(steps) - EACH:,} more times", "The table of clocks has all of them.")


def slow_tail(summary: Summary) -> Iterator[Finding]:
    for row in _worst(summary, "addresses", lambda row: row["p99_us"] or 0, side="in", peer="client")[:1]:
        if row["p99_us"] and row["p50_us"] and row["p99_us"] > SLOW_US and row["p99_us"] > TAIL * row["p50_us"]:
            yield Finding(
                0.28,
                f"one of 100 messages to {row['address']} took {words.duration(row['p99_us'])} or longer; half took "
                f"{words.duration(row['p50_us'])} at most",
                "The windows in which it was slow are in the table addresses_by_window; compare outages and credit.",
            )


def left_out(summary: Summary) -> Iterator[Finding]:
    if summary.notices:
        yield Finding(
            0.2,
            f"{len(summary.notices):,} files or directories were left out; the first: {summary.notices[0]}",
            "What is torn was not finished when its writer ended; move it away if it stays so.",
        )


CHECKS: tuple[Callable[[Summary], Iterator[Finding]], ...] = (
    empty,
    unmatched,
    missing,
    untold,
    outages,
    refused,
    starved,
    unsettled,
    aging,
    uneven,
    detours,
    restarts,
    dropped,
    clocks,
    slow_tail,
    left_out,
)

CORRECTED = "its times are corrected by that"
HELPS_CLOCKS = "Let all hosts of a mesh have their time from one place."
RIGHT_US = 50_000
"""By less no clock is corrected."""
LEAST_SHARE = 0.001
LEAST_WAIT_S = 1
LEAST_HELD_S = 60
OLD_S = 60
UNEVEN = 1.5
TAIL = 20
SLOW_US = 100_000
WHY_LOST = {
    "stopped": "it was stopped",
    "failed": "it ended by itself",
    "crashed": "it was killed, or its host failed",
}
WAITS_FOR = {
    "no_taker": "nobody was there who wanted it",
    "takers": "those who took it gave no credit",
    "full_queue": "the queue was full",
    "disk": "the broker waited for its disk",
    "memory": "the broker was short of memory",
}
HELPS_WAITING = {
    "no_taker": "Attach a consumer, or give the address a fallback or a queue.",
    "takers": "Add consumers, or let those that are there give more credit.",
    "full_queue": "Add consumers, or give the queue more room.",
    "disk": "See the table of queues, and whether the broker's disk is slow or full.",
    "memory": "Let consumers keep up: what is not fetched of temporary queues lies in memory.",
}


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _is_in(span: Span, at: datetime) -> bool:
    at_us = at.timestamp() * US_PER_S
    return (span.from_us is None or at_us >= span.from_us) and (span.to_us is None or at_us < span.to_us)


def _why(row: dict[str, Any]) -> str:
    return WHY_LOST.get(row["why"], row["cause"] or "cause unknown")


def _help_for_refused(row: dict[str, Any]) -> str:
    worst = max(words.NOT_ACCEPTED, key=lambda name: int(row[name] or 0))
    return {
        "rejected": "Consumers refuse them as invalid, or a queue is full: the table noteworthy names links and times.",
        "released": "Nobody took them: attach consumers, or give the address a fallback or a queue.",
        "modified": "They were under way when a link or node was lost: see the outages.",
        "aborted": "Producers gave up halfway: see their logs.",
        "sender_lost": "Producers were gone before they were settled: see their logs and the network.",
    }[worst]


def _worst(summary: Summary, table: str, by: Callable[[dict[str, Any]], int], **wanted: str) -> list[dict[str, Any]]:
    rows = [row for row in summary.rows(table) if all(row[key] == value for key, value in wanted.items())]
    return sorted(rows, key=lambda row: -by(row))


def _who(row: dict[str, Any]) -> str:
    name = row["container"] or row["user"]
    return f"{row['role'] or 'a link'} {name}" if name else f"{row['role'] or 'link'} {row['link']}"


def _is_of_mesh(row: dict[str, Any]) -> bool:
    """A probe of `up` waits for nobody long after it went through. Reply addresses are of clients, and told."""
    return (row["address"] or "").startswith(MESH_PREFIX)


def _ahead(row: dict[str, Any]) -> str:
    if abs(row["ahead_us"]) <= RIGHT_US:
        return "as the others were"
    way = "ahead of" if row["ahead_us"] > 0 else "behind"
    return f"{words.duration(abs(row['ahead_us']))} {way} the others"


def _shown(summary: Summary, at: datetime) -> str:
    return at.astimezone(summary.order.tz).isoformat(sep=" ", timespec="seconds")


def _queue(row: dict[str, Any]) -> str:
    return f"{row['address']} ({row['subscriber']})" if row["subscriber"] else f"{row['address']}"
