"""Prints a finished report on the terminal: totals, the busiest addresses, findings, and the place of its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mesh.reports import words
from mesh.reports.finding import ReportFinding, shown
from mesh.reports.summary import Summary, format_time
from mesh.terminal.output import Output, one_line

MOST_ROWS = 10
TOTALS = ("SIDE", "WITH", "MESSAGES", "BYTES", "A SECOND", "ACCEPTED", "P50", "P99", "MAX")
BUSIEST = ("ADDRESS", "SIDE", "WITH", "MESSAGES", "A SECOND", "NOT ACCEPTED", "P50", "P99", "MAX")
MOST_FINDINGS = 8


def tell(summary: Summary, found: Sequence[ReportFinding], out: Output) -> None:
    if out.is_json:
        out.document({**summary.to_map(), "findings": [finding.to_map(summary.order.tz) for finding in found]})
        return
    out.data(headline(summary))
    for finding in found[:MOST_FINDINGS]:
        since = f" ({shown(finding.since, summary.order.tz)})" if finding.since is not None else ""
        out.data(f"- {one_line(finding.text)}{since}")
    if len(found) > MOST_FINDINGS:
        out.data(
            f"- {len(found) - MOST_FINDINGS:,} more findings: {summary.order.out / 'report.html'} lists all of them"
        )
    out.data("")
    out.table(TOTALS, [_total(row) for row in summary.rows("mesh")])
    out.data("")
    out.table(BUSIEST, [_busy(row) for row in summary.tables["addresses"].slice(0, MOST_ROWS).to_pylist()])
    more = summary.tables["addresses"].num_rows - MOST_ROWS
    if more > 0:
        out.data(f"{more:,} more rows: {summary.order.out / 'tables' / 'addresses.csv'} lists all of them")
    out.say(f"the report is in {summary.order.out}")


def headline(summary: Summary) -> str:
    """Return the headline of a report: time span, number and size of records, files left out, and wider windows."""
    tz = summary.order.tz
    if summary.began_us is None:
        time = "no message moved"
    else:
        time = f"{format_time(summary.began_us, tz)} to {format_time(summary.ended_us, tz)}"
    size = f", {words.size(summary.size_bytes)}"
    left_out = f"; {words.counted(len(summary.notices), 'file', 'files')} left out" if summary.notices else ""
    return f"{time}; {summary.records:,} records read{size}{left_out}{_wider(summary)}"


def _wider(summary: Summary) -> str:
    """Return the tables with windows wider than requested, and the width of these windows, as text for the headline."""
    wider = (f"{name} has windows of {words.duration(each)}" for name, each in summary.wider_us.items())
    return "".join(f"; {each}" for each in wider)


def _total(row: dict[str, Any]) -> tuple[object, ...]:
    return (
        row["side"],
        row["peer"],
        words.count(row["messages"]),
        words.size(row["size_bytes"]),
        words.rate(row["messages_per_s"]),
        words.count(row["accepted"]),
        *_latency(row),
    )


def _busy(row: dict[str, Any]) -> tuple[object, ...]:
    return (
        row["address"],
        row["side"],
        row["peer"],
        words.count(row["messages"]),
        words.rate(row["messages_per_s"]),
        words.count(words.not_accepted(row)),
        *_latency(row),
    )


def _latency(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(words.duration(row[name]) for name in ("p50_us", "p99_us", "max_us"))
