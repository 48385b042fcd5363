"""The tables of a report under spark-submit: `spark-submit --py-files ... linklogs/job.py LOGS OUT`.

Needs pyspark, pandas, pyarrow, linklogs and addressing.link_log, and nothing else of amqpmesh. Spark writes each table
as Parquet into a directory of OUT, which may be anywhere that Spark writes; the page is made by `amqpmesh report`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from linklogs.finding import NoLogs
from linklogs.moments import Span
from linklogs.reading import look
from linklogs.replay.run import Params, run
from linklogs.session import open_session

US_PER_S = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 with a sentence on stderr where nothing can be read."""
    asked = _parser().parse_args(arguments)
    try:
        _write(asked)
    except NoLogs as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _write(asked: argparse.Namespace) -> None:
    logs = look(asked.logs, Span(asked.since, asked.until))
    for notice in logs.notices:
        sys.stderr.write(f"left out: {notice}\n")
    spark = open_session(asked.master, {})
    tables = run(spark, Params(logs, round(asked.window * US_PER_S), asked.address))
    for notice in tables.read.notices:
        sys.stderr.write(f"left out: {notice}\n")
    for name, table in tables.by_name.items():
        table.write.mode("overwrite").parquet(f"{asked.out.rstrip('/')}/{name}")
    tables.release()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="linklogs.job", description="Write the tables of a report of link logs.")
    parser.add_argument("logs", metavar="LOGS", help="directory with node=NAME/hour=YYYY-MM-DDTHH in it")
    parser.add_argument("out", metavar="OUT", help="directory of the tables: those in it are replaced")
    parser.add_argument("--from", dest="since", type=_time_us, help="time of UTC, such as 2026-11-24T13:00")
    parser.add_argument("--to", dest="until", type=_time_us, help="time of UTC")
    parser.add_argument("--address", help="pattern of addresses")
    parser.add_argument("--window", type=_window_s, default=10.0, help="seconds, 10 by default")
    parser.add_argument("--master", help="what spark-submit says, by default")
    return parser


def _time_us(text: str) -> int:
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * US_PER_S)


def _window_s(text: str) -> float:
    """Raise ValueError for what is not longer than a us."""
    seconds = float(text)
    if seconds * US_PER_S < 1:
        raise ValueError(text)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
