"""The Spark job that writes the tables of a report: `spark-submit --py-files linklogs.zip amqpmesh_report.py LOGS OUT`.

`amqpmesh linklogs pack` makes both files. The job needs pyspark, pandas, pyarrow, linklogs, recording.columns and
addressing.address, and nothing else of amqpmesh. Spark writes each table as Parquet into a directory of OUT, which may
be anywhere that Spark writes; `amqpmesh report --tables` makes the page of the report from the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from linklogs.cluster_settings import is_cluster, settings, submitted_session
from linklogs.failures import FAILURES, sentence, whole_answers
from linklogs.file_holds import held, is_local, local_path
from linklogs.input_logs import look
from linklogs.log_search import NoLogs
from linklogs.private_files import OTHERS, make_private
from linklogs.replay.run import Params, Tables, run
from linklogs.result import NAME, ReplayResult
from linklogs.session import open_session
from linklogs.time_options import span_of, window_us_of, zone_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; return the exit code: 0, or 1 with a sentence on stderr if no logs can be read or Spark fails.

    Invalid options end the process with exit code 2.
    """
    parser = _parser()
    asked = parser.parse_args(arguments)
    try:
        asked.span = span_of(asked.since, asked.until, zone_of(asked.tz))
        asked.window_us = window_us_of(asked.window)
    except ValueError as error:
        parser.error(str(error))
    try:
        with held(asked.logs):
            _write(asked)
    except NoLogs as error:
        return _failed(str(error))
    except FAILURES as error:
        return _failed(sentence(error))
    return 0


def _write(asked: argparse.Namespace) -> None:
    logs = look(asked.logs, asked.span)
    for notice in logs.notices:
        sys.stderr.write(f"left out: {notice}\n")
    spark = _session(asked.master)
    with whole_answers(spark):
        _write_tables(spark, Params(logs, asked.window_us, asked.address), asked)
    sys.stdout.write(f"the tables are in {asked.out}\n")


def _write_tables(spark: SparkSession, params: Params, asked: argparse.Namespace) -> None:
    # By default Spark writes a time as INT96, an old type of Parquet without a time zone.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    # Keep others from reading tables on HDFS, since tables name users and addresses, as the logs do.
    spark.conf.set("fs.permissions.umask-mode", f"{OTHERS:03o}")
    tables = run(spark, params)
    for notice in tables.read.notices:
        sys.stderr.write(f"left out: {notice}\n")
    for name, table in tables.by_name.items():
        _write_table(table, asked.out, name)
    # The table that describes the others is written last: in a new directory it exists only if the others are complete.
    # In a directory with earlier tables, their description stays until then.
    _write_table(spark.createDataFrame(_result(asked.logs, params, tables).to_table()), asked.out, NAME)
    tables.release()
    for name in (*tables.by_name, NAME):
        _make_private(asked.out, name)


def _session(master: str | None) -> SparkSession:
    if master is None:
        return submitted_session()
    return open_session(master, settings() if is_cluster(master) else {})


def _write_table(table: DataFrame, out: str, name: str) -> None:
    table.write.mode("overwrite").parquet(f"{out.rstrip('/')}/{name}")


def _make_private(out: str, name: str) -> None:
    """Make a table on this machine readable for owner and group only; for a table elsewhere, do nothing.

    Spark made the table with the umask of Spark's Java process.
    Files made by workers of other users cannot be changed: at the first of them, the work ends without an error.
    """
    directory = Path(local_path(out), name) if is_local(out) else None
    if directory is not None and directory.is_dir():
        with suppress(PermissionError):
            make_private(directory)


def _result(path: str, params: Params, tables: Tables) -> ReplayResult:
    time = tables.time
    return ReplayResult(
        logs=path,
        address=params.address,
        window_us=params.window_us,
        records=tables.read.records,
        size_bytes=tables.read.size_bytes,
        left_out=[*params.logs.notices, *tables.read.notices],
        from_us=time.from_us,
        to_us=time.to_us,
        seconds=time.seconds,
        tables=list(tables.by_name),
        wider_us=list(tables.wider_us(params.window_us).items()),
        near=list(tables.near),
        since_us=params.logs.span.from_us,
        until_us=params.logs.span.to_us,
    )


def _failed(why: str) -> int:
    sys.stderr.write(f"error: {why}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amqpmesh_report.py", description="Write the tables of a report of link logs."
    )
    parser.add_argument("logs", metavar="LOGS", help="directory of link logs, with node=NAME/hour=YYYY-MM-DDTHH in it")
    parser.add_argument("out", metavar="OUT", help="directory for the tables; existing tables are replaced")
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help="leave out records before this time, such as 2026-11-24T13:00"
    )
    parser.add_argument("--to", dest="until", metavar="TIME", help="leave out records from this time on")
    parser.add_argument("--tz", default="UTC", metavar="ZONE", help="time zone of --from and --to (default: UTC)")
    parser.add_argument("--address", metavar="PATTERN", help="report only addresses that match this pattern")
    parser.add_argument(
        "--window", type=float, default=10.0, metavar="S", help="length of a time window in seconds (default: 10)"
    )
    parser.add_argument("--master", help="master of Spark (default: the master of spark-submit)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
