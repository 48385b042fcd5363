"""`amqpmesh report`: looks at the logs, has Spark make the tables, writes them, and tells what they say."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from linklogs.finding import NoLogs
from linklogs.writing import ordered, write
from mesh.failure import CommandFailed
from mesh.link_logs.findings import Finding, findings
from mesh.link_logs.java import require_spark
from mesh.link_logs.order import US_PER_S, Order, prepare, settings, span_of
from mesh.link_logs.page import page
from mesh.link_logs.progress import Step, progress
from mesh.link_logs.summary import Summary
from mesh.link_logs.terminal import tell
from mesh.output import Output

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from linklogs.reading import Logs
    from linklogs.replay.run import Tables

STEPS = 33
"""To look, to start Spark, to read, a table each, and the page."""


def order_of(options: Mapping[str, Any]) -> Order:
    """Raise ValueError for options that cannot be meant."""
    try:
        tz = ZoneInfo(options["tz"])
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"--tz {options['tz']!r} is no time zone: expected one such as Europe/Zurich") from None
    window_us = round(options["window"] * US_PER_S)
    if window_us < 1:
        raise ValueError("--window must be longer than 0")
    span = span_of(options["since"], options["until"], tz)
    where = (options["logs"], options["directory"], span, window_us, tz)
    return Order(*where, options["address"], options["master"], settings(options["conf"]))


def run(order: Order, out: Output) -> int:
    """Raise CommandFailed where nothing can be read, or Spark cannot be had."""
    require_spark()
    try:
        with progress(out, STEPS) as step:
            summary = _report(order, step, out)
            found = findings(summary)
            step("write the page")
            _write(summary, found)
    except NoLogs as error:
        raise CommandFailed(str(error)) from None
    tell(summary, found, out)
    return 0


def _report(order: Order, step: Step, out: Output) -> Summary:
    with warnings.catch_warnings():
        # Whether pyspark supports this pandas is for our tests to say, not for each report.
        warnings.simplefilter("ignore", FutureWarning)
        from linklogs.reading import look

        step(f"look at {order.logs}")
        logs = look(order.logs, order.span)
        _tell_left_out(logs.notices, out)
        prepare(order.out)
        step("start Spark")
        with _session(order, logs) as spark:
            return _with_spark(spark, order, logs, step, out)


def _tell_left_out(notices: Sequence[str], out: Output) -> None:
    for notice in notices[:MOST_NOTICES]:
        out.say(f"left out: {notice}")
    if len(notices) > MOST_NOTICES:
        out.say(f"left out: {len(notices) - MOST_NOTICES:,} more, all in summary.json")


MOST_NOTICES = 10
AT_ONCE = 2


def _with_spark(spark: SparkSession, order: Order, logs: Logs, step: Step, out: Output) -> Summary:
    from linklogs.replay.run import Params
    from linklogs.replay.run import run as replay

    step("read the records")
    tables = replay(spark, Params(logs, order.window_us, order.address))
    try:
        _tell_left_out(tables.read.notices, out)
        made = _all_made(tables, order, step)
    finally:
        tables.release()
    return Summary.of(order, logs, tables, made)


def _write(summary: Summary, found: list[Finding]) -> None:
    told = {**summary.to_map(), "findings": [finding.to_map() for finding in found]}
    document = json.dumps(told, indent=1, ensure_ascii=False, default=str)
    (summary.order.out / "summary.json").write_text(document + "\n", "utf-8")
    (summary.order.out / "report.html").write_text(page(summary, found), "utf-8")


def _all_made(tables: Tables, order: Order, step: Step) -> dict[str, pa.Table]:
    """Several at a time: planning one takes as long as computing another."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(
            zip(tables.by_name, pool.map(lambda name: _made(name, tables, order, step), tables.by_name), strict=True)
        )


def _made(name: str, tables: Tables, order: Order, step: Step) -> pa.Table:
    step(name.replace("_", " "))
    table = ordered(tables.by_name[name].toArrow())
    write(table, order.out / "tables", name, order.tz)
    return table


@contextmanager
def _session(order: Order, logs: Logs) -> Iterator[SparkSession]:
    """What the JVM says on its stderr goes to spark.log: it says much before it knows how much it shall say."""
    from linklogs.session import open_session

    with _stderr_to(order.out / "spark.log"):
        spark = open_session(order.master, dict(order.conf))
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """For what is started meanwhile; what starts here inherits it for good."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as log:
            os.dup2(log.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
