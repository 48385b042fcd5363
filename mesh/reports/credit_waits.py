"""Makes findings about links that waited for credit, and about consumers that left deliveries unsettled.

Where a queue is full or a consumer settles no delivery, all links on the path to it wait. All these waits together make
one finding, reported at their cause.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mesh.reports import words
from mesh.reports.finding import EACH, US_PER_S, ReportFinding, is_of_mesh, who
from mesh.reports.summary import Summary

Row = dict[str, Any]

LEAST_WAIT_S = 1
LEAST_HELD_S = 60
"""The least time in s for a finding about a consumer that leaves deliveries unsettled while no producer waits."""
TAKERS = "takers"
OF_BROKER = ("full_queue", "disk", "memory")
"""Causes that only brokers know; a router merely sees that a link has no credit."""
SAME = 0.5
"""Share of a link's waiting time that a broker's wait must reach to count as the cause of the link's wait."""
WAITS_FOR = {
    "no_taker": "the address had no consumer",
    TAKERS: "its consumers gave no credit",
    "full_queue": "the queue was full",
    "disk": "the broker waited for its disk",
    "memory": "the broker was short of memory",
}
HELPS_WAITING = {
    "no_taker": "Attach a consumer, or give the address a fallback or a queue.",
    TAKERS: "Add consumers, or let the present consumers give more credit.",
    "full_queue": "Add consumers, or give the queue more room.",
    "disk": "See the table of queues, and whether the broker's disk is slow or full.",
    "memory": "Let consumers keep up: messages that wait in temporary queues take memory.",
}
HELPS_KEEPING = (
    "See whether this consumer still works: its unsettled messages go to other consumers once its connection ends. "
    "A slow consumer needs no more credit than the number of messages that it works on at once."
)


def waits(summary: Summary) -> Iterator[ReportFinding]:
    keepers = kept(summary)
    found = [(cause, rows) for (cause, _), rows in _by_matter(_at_cause(_of_producers(summary))).items()]
    found = [(cause, rows) for cause, rows in found if rows[0]["starved_us"] >= LEAST_WAIT_S * US_PER_S]
    blamed = {rows[0]["address"]: rows[0] for cause, rows in found if cause == TAKERS and rows[0]["address"] in keepers}
    for address in [*blamed][:EACH]:
        yield _kept_from_others(keepers[address], blamed[address])
    yield from _worst(found, blamed)
    quiet = [row for address, row in keepers.items() if address not in blamed]
    yield from _kept(row for row in quiet if row["longest_us"] >= LEAST_HELD_S * US_PER_S)


def kept(summary: Summary) -> dict[str, Row]:
    """Return, by address, the row in table `unsettled` of the consumer that left deliveries unsettled for longest."""
    rows = [row for row in summary.rows("unsettled") if row["role"] == "consumer" and not is_of_mesh(row)]
    return {row["address"]: row for row in sorted(rows, key=lambda row: int(row["longest_us"]))}


def _of_producers(summary: Summary) -> list[Row]:
    # Rows of circuits in the table of credit are left out: a circuit without a producer stays for a while and holds up
    # nobody, and a waiting producer has a row of its own.
    rows = [row for row in summary.rows("credit") if row["direction"] != "outgoing" and row["role"] != "circuit"]
    return sorted((row for row in rows if not is_of_mesh(row)), key=_starved)


def _at_cause(rows: Sequence[Row]) -> list[Row]:
    """Return the waits with the cause TAKERS replaced by the cause that a broker reported for the same address.

    A broker's cause counts only if the broker waited for at least half as long (SAME). The broker's own row is then
    left out, so that the wait counts once.
    """
    of_broker: dict[str, Row] = {}
    for row in rows:
        if row["cause"] in OF_BROKER:
            of_broker.setdefault(row["address"], row)
    found, of_brokers, explained = [], [], set()
    for row in rows:
        known = of_broker.get(row["address"])
        if row["cause"] in OF_BROKER:
            of_brokers.append(row)
        elif known is not None and row["cause"] == TAKERS and known["starved_us"] >= SAME * row["starved_us"]:
            explained.add(row["address"])
            found.append({**row, "cause": known["cause"]})
        else:
            found.append(row)
    found += [row for row in of_brokers if row["address"] not in explained]
    return sorted(found, key=_starved)


def _by_matter(rows: Sequence[Row]) -> Mapping[tuple[str, str], list[Row]]:
    """Group rows, in which the longest wait comes first, by cause and address; each group keeps this order."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["cause"], row["address"]].append(row)
    return found


def _worst(found: Sequence[tuple[str, list[Row]]], told: Mapping[str, Row]) -> Iterator[ReportFinding]:
    """Yield up to ``EACH`` findings for each cause, then one finding with the number of the remaining addresses.

    ``told``: the addresses that are reported together with a consumer that leaves deliveries unsettled. Such an address
    gets no finding here; beyond the first ``EACH`` such addresses count as remaining.
    """
    by_cause: dict[str, list[list[Row]]] = defaultdict(list)
    for cause, rows in found:
        if cause != TAKERS or rows[0]["address"] not in told:
            by_cause[cause].append(rows)
    more = max(0, len(told) - EACH)
    for cause, matters in by_cause.items():
        for rows in matters[:EACH]:
            yield _waited(cause, rows)
        more += len(matters[EACH:])
    if more:
        yield ReportFinding(
            0.34, f"producers of {more:,} more addresses waited for credit", "The table of credit lists all of them."
        )


def _waited(cause: str, rows: Sequence[Row]) -> ReportFinding:
    row = rows[0]
    others = len({(each["node"], each["run"], each["link"]) for each in rows if each["role"] == row["role"]}) - 1
    more = f" ({others:,} more such links waited, too)" if others else ""
    return ReportFinding(
        _weight(row),
        f"{who(row)} at {row['node']} waited {words.duration(row['starved_us'])} for credit to send to "
        f"{row['address']}, {words.share(row['share'])} of the time{more}: "
        f"{WAITS_FOR.get(cause, cause or 'cause unknown')}",
        HELPS_WAITING.get(cause, "The table of credit has each link and cause."),
        row.get("since_at"),
    )


def _kept_from_others(row: Row, waited: Row) -> ReportFinding:
    return ReportFinding(
        _weight(waited),
        f"{_keeps(row)}; {who(waited)} at {waited['node']} waited {words.duration(waited['starved_us'])} for credit "
        f"to send to it, {words.share(waited['share'])} of the time",
        HELPS_KEEPING,
        row.get("since_at"),
    )


def _kept(rows: Iterator[Row]) -> Iterator[ReportFinding]:
    for row in sorted(rows, key=lambda row: -row["longest_us"])[:EACH]:
        yield ReportFinding(
            0.38, f"{_keeps(row)}; {row['last_unsettled']:,} of them at the end", HELPS_KEEPING, row.get("since_at")
        )


def _keeps(row: Row) -> str:
    return (
        f"{who(row)} at {row['node']} kept {row['most_unsettled']:,} deliveries of {row['address']} without an "
        f"outcome for {words.duration(row['longest_us'])}"
    )


def _starved(row: Row) -> int:
    """Return a sort key that puts the longest wait for credit first."""
    return -int(row["starved_us"])


def _weight(row: Row) -> float:
    return 0.35 + min(float(row["share"]), 1) / 3
