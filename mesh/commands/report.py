"""`amqpmesh report`"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mesh.terminal.options import is_typed, output_options
from mesh.terminal.output import Output
from mesh.terminal.units import DURATION

OF_LOGS = {
    "since": "--from",
    "until": "--to",
    "address": "--address",
    "window": "--window",
    "master": "--master",
    "conf": "--conf",
    "topology": "--topology",
}
"""The options for LOGS only: a report from existing tables cannot change these choices any more."""


@click.command("report")
@click.argument("logs", metavar="[LOGS]", required=False)
@click.option("-o", "--out", "directory", required=True, type=click.Path(path_type=Path, file_okay=False),
              help="Folder for the report, created if it does not exist.")  # fmt: skip
@click.option("--from", "since", metavar="TIME", help="Leave out records before this time, such as 2026-11-24T13:00.")
@click.option("--to", "until", metavar="TIME", help="Leave out records from this time on.")
@click.option(
    "-a", "--address", metavar="PATTERN", help="Report only addresses that match this pattern, such as 'orders.*'."
)
@click.option("--tz", default="UTC", metavar="ZONE", help="Time zone of given and shown times. [default: UTC]")
@click.option("--window", type=DURATION, default="10s", help="Length of a time window. [default: 10s]")
@click.option("--master", default="local[*]", help="Master of Spark. [default: local[*], this machine]")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="Setting of Spark. Repeatable.")
@click.option("-t", "--topology", envvar="AMQPMESH_TOPOLOGY", show_envvar=True, metavar="FILE|DIR",
              type=click.Path(path_type=Path),
              help="Topology that gives the cheapest paths, to find detours. [default: recorded paths]")  # fmt: skip
@click.option(
    "--nickname",
    is_flag=True,
    help="Show short names in place of long ones; the table of nicknames lists both.",
)
@click.option("--tables", metavar="DIR", type=click.Path(path_type=Path),
              help="Report on the tables of a job under spark-submit, in place of LOGS. Needs no Spark.")  # fmt: skip
@output_options
def command(out: Output, **options: Any) -> int:
    """Report on link logs with Spark: findings, charts and tables.

    LOGS is the directory that has node=NAME/hour=YYYY-MM-DDTHH in it, or any path that Spark reads. In the folder of
    the report are report.html, summary.json, and each table as Parquet and CSV. Needs `pip install '.[spark]'`
    and Java 17.

    \b
    Examples:
      amqpmesh report linklogs --out report
      amqpmesh report linklogs --out report --from 2026-11-24T13:00 --to 2026-11-24T14:00 --address 'orders.*'
      amqpmesh report s3a://logs/mesh --out report --master spark://host:7077 --conf spark.executor.memory=4g
      amqpmesh report linklogs --out report --topology amqpmesh.yml
      amqpmesh report --tables today --out report
    """
    if (options["logs"] is None) == (options["tables"] is None):
        raise click.UsageError("expected either LOGS or --tables DIR, and not both")
    return _of_logs(options, out) if options["tables"] is None else _of_tables(options, out)


def _of_logs(options: dict[str, Any], out: Output) -> int:
    from mesh.reports.report import run
    from mesh.reports.report_request import order_of

    with _meant():
        order = order_of(options)
    return run(order, out)


def _of_tables(options: dict[str, Any], out: Output) -> int:
    from linklogs.time_options import zone_of
    from mesh.reports.tables_report import run

    for name, option in OF_LOGS.items():
        if is_typed(name):
            raise click.UsageError(f"{option} is only for LOGS: it cannot change tables that exist already (--tables)")
    with _meant():
        tz = zone_of(options["tz"])
    return run(options["tables"], options["directory"], tz, out, has_nicknames=options["nickname"])


@contextmanager
def _meant() -> Iterator[None]:
    """Raise a ValueError of the block, which an option's meaningless value causes, as UsageError with the same text."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None
