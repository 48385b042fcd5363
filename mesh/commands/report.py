"""`amqpmesh report`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mesh.options import output_options
from mesh.output import Output
from mesh.units import DURATION


@click.command("report")
@click.argument("logs", metavar="LOGS")
@click.option("-o", "--out", "directory", required=True, type=click.Path(path_type=Path, file_okay=False),
              help="Folder of the report: made if it is not there.")  # fmt: skip
@click.option("--from", "since", metavar="TIME", help="Leave out what was before, such as 2026-11-24T13:00.")
@click.option("--to", "until", metavar="TIME", help="Leave out what was then and later.")
@click.option("-a", "--address", metavar="PATTERN", help="Only of addresses that match, such as 'orders.*'.")
@click.option("--tz", default="UTC", metavar="ZONE", help="Of times that are given and shown. [default: UTC]")
@click.option("--window", type=DURATION, default="10s", help="Length of the steps in time. [default: 10s]")
@click.option("--master", default="local[*]", help="Where Spark runs. [default: local[*], this machine]")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; repeatable.")
@output_options
def command(out: Output, **options: Any) -> int:
    """Read link logs with Spark and say what to do about the mesh: findings, charts and tables.

    LOGS is the directory that has node=NAME/hour=YYYY-MM-DDTHH in it, or any path that Spark reads. In the folder of
    the report are report.html, summary.json, and each table as Parquet and CSV. Needs `pip install 'amqpmesh[spark]'`
    and Java 17.

    \b
    Examples:
      amqpmesh report linklogs --out report
      amqpmesh report linklogs --out report --from 2026-11-24T13:00 --to 2026-11-24T14:00 --address 'orders.*'
      amqpmesh report s3a://logs/mesh --out report --master spark://host:7077 --conf spark.executor.memory=4g
    """
    from mesh.link_logs.report import order_of, run

    try:
        order = order_of(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    return run(order, out)
