"""Runs `amqpmesh report --tables`: makes a report of tables that spark-submit wrote elsewhere, without Spark or
Java.
"""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa

from linklogs.moments import TimeSpan
from linklogs.private_files import kept_private
from linklogs.result import NoTables, ReplayResult, read_result, read_table
from linklogs.table_files import ordered, write
from mesh.reports.report_files import made
from mesh.reports.report_request import ReportRequest, prepare
from mesh.reports.summary import Summary
from mesh.reports.terminal import tell
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output


def run(directory: Path, folder: Path, tz: ZoneInfo, out: Output, *, has_nicknames: bool = False) -> int:
    """Make a report in ``folder`` from the tables in ``directory``, and print its findings.

    Raise CommandFailed if ``directory`` has no tables of a Spark job, or if ``folder`` cannot be made or has other
    files.
    """
    try:
        result = read_result(directory)
        tables = {name: ordered(read_table(directory, name)) for name in result.tables}
    except NoTables as error:
        raise CommandFailed(str(error), fix="docs/how-to/cluster.md says how to make them") from None
    with kept_private():
        prepare(folder)
        for name, table in tables.items():
            write(table, folder / "tables", name, tz)
        done = made(_summary(result, tables, folder, tz, has_nicknames))
    tell(done.summary, done.findings, out)
    return 0


def _summary(
    result: ReplayResult, tables: dict[str, pa.Table], folder: Path, tz: ZoneInfo, has_nicknames: bool
) -> Summary:
    span = TimeSpan(result.since_us, result.until_us)
    what = (result.logs, folder, span, result.window_us, tz, result.address, None, ())
    order = ReportRequest(*what, has_nicknames=has_nicknames)
    time = (result.from_us, result.to_us, result.seconds)
    read = (result.records, result.size_bytes, tuple(result.left_out))
    return Summary(order, *read, *time, tables, dict(result.wider_us), tuple(result.near))
