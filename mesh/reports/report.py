"""Runs `amqpmesh report`: finds the link logs, computes and writes the tables with Spark, and prints the findings."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from linklogs.file_holds import held
from linklogs.log_search import NoLogs
from linklogs.private_files import kept_private
from linklogs.table_files import ordered, write
from mesh.reports.java import require_spark
from mesh.reports.progress import Step, progress
from mesh.reports.report_files import ReportFiles, made
from mesh.reports.report_request import ReportRequest, prepare
from mesh.reports.summary import Summary
from mesh.reports.terminal import tell
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from addressing.topology.model import Topology
    from linklogs.input_logs import InputLogs
    from linklogs.replay.run import Tables

STEPS = 35
"""The number of steps shown as progress: find logs, start Spark, read, make each table, write the page."""


def run(order: ReportRequest, out: Output) -> int:
    """Make a report and print its findings.

    Raise CommandFailed if Spark or Java is missing, if no link log can be read, or if Spark fails.
    """
    done = make(order, out)
    tell(done.summary, done.findings, out)
    return 0


def make(order: ReportRequest, out: Output) -> ReportFiles:
    """Make a report in the folder of ``order``, and return its summary and findings.

    Raise CommandFailed if Spark or Java is missing, if no link log can be read, or if Spark fails.
    """
    require_spark()
    try:
        # Only owner and group can read the report's files, because they name users and addresses, as the link logs do.
        with progress(out, STEPS) as step, held(order.logs), kept_private():
            summary = _report(order, step, out)
            step("write the page")
            return made(summary)
    except NoLogs as error:
        raise CommandFailed(str(error)) from None


def _report(order: ReportRequest, step: Step, out: Output) -> Summary:
    with warnings.catch_warnings():
        # Warnings of pyspark about the version of pandas are hidden: tests of this project check that the two fit.
        warnings.simplefilter("ignore", FutureWarning)
        from linklogs.failures import FAILURES, sentence, whole_answers
        from linklogs.input_logs import look

        step(f"look at {order.logs}")
        logs = look(order.logs, order.span)
        _tell_left_out(logs.notices, out)
        prepare(order.out)
        step("start Spark")
        try:
            with _session(order) as spark, whole_answers(spark):
                return _with_spark(spark, order, logs, step, out)
        except FAILURES as error:
            raise CommandFailed(sentence(error), fix=f"{order.out / LOG} has the log of Spark") from None


def _tell_left_out(notices: Sequence[str], out: Output) -> None:
    for notice in notices[:MOST_NOTICES]:
        out.say(f"left out: {notice}")
    if len(notices) > MOST_NOTICES:
        out.say(f"left out: {len(notices) - MOST_NOTICES:,} more; summary.json lists all of them")


MOST_NOTICES = 10
AT_ONCE = 2
LOG = "spark.log"


def _with_spark(spark: SparkSession, order: ReportRequest, logs: InputLogs, step: Step, out: Output) -> Summary:
    from linklogs.replay.run import Params
    from linklogs.replay.run import run as replay

    step("read the records")
    cheapest = None if order.topology is None else _cheapest(spark, order.topology)
    tables = replay(spark, Params(logs, order.window_us, order.address, cheapest))
    try:
        _tell_left_out(tables.read.notices, out)
        made = _all_made(spark, tables, order, step)
    finally:
        tables.release()
    return Summary.of(order, logs, tables, made)


@contextmanager
def _jobs_cancelled(spark: SparkSession) -> Iterator[None]:
    """Cancel Spark's jobs on Ctrl-C, since the threads that make tables would otherwise complete their tables first."""
    try:
        yield
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        raise


def _cheapest(spark: SparkSession, topology: Topology) -> DataFrame:
    from mesh.reports.cheapest_paths import cheapest_paths

    return spark.createDataFrame(cheapest_paths(topology))


def _all_made(spark: SparkSession, tables: Tables, order: ReportRequest, step: Step) -> dict[str, pa.Table]:
    """Compute and write all tables of the report, and return them by name.

    Two tables are made at a time, because planning a table takes Spark as long as computing another one.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool, _jobs_cancelled(spark):
        return dict(
            zip(tables.by_name, pool.map(lambda name: _made(name, tables, order, step), tables.by_name), strict=True)
        )


def _made(name: str, tables: Tables, order: ReportRequest, step: Step) -> pa.Table:
    step(name.replace("_", " "))
    table = ordered(tables.by_name[name].toArrow())
    write(table, order.out / "tables", name, order.tz)
    return table


@contextmanager
def _session(order: ReportRequest) -> Iterator[SparkSession]:
    from linklogs.cluster_settings import is_cluster, modules_given, settings
    from linklogs.failures import FAILURES
    from linklogs.session import open_session
    from mesh.reports.spark_log import logging_to, stderr_to

    conf = {**(settings() if is_cluster(order.master) else {}), **dict(order.conf)}
    log = order.out / LOG
    with _interrupts_kept(), stderr_to(log):
        spark = open_session(order.master, conf)
    with logging_to(log, spark):
        try:
            with modules_given(spark) if is_cluster(order.master) else nullcontext():
                yield spark
        finally:
            # If Java is gone, there is nothing to stop, and the reason was already reported.
            with suppress(*FAILURES):
                spark.stop()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Restore the previous handler of Ctrl-C after Spark has started.

    Spark's own handler would call Java in the midst of another call, and fail with stack traces.
    """
    kept = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, kept)
