"""Measures the figures of the catalogue: `make figures`, or `python -m mesh_tests.bench.figures --help`.

The results are written after each command, so that an interrupted run keeps the figures it has measured.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from mesh_tests.bench.figures.catalogue import CATALOGUE
from mesh_tests.bench.figures.model import (
    Circumstances,
    Documents,
    History,
    Measurement,
    NotMeasured,
    Result,
    from_json,
    to_json,
)
from mesh_tests.bench.figures.page import command_of, page, show

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "proof" / "figures.json"
PAGE = ROOT / "docs" / "reference" / "figures.md"
LOOP = 5_000_000
BUSY_LOAD = 0.5


@click.command()
@click.option("--only", multiple=True, metavar="WORD", help="Measure only figures whose key has this word; repeatable.")
@click.option("--list", "is_list", is_flag=True, help="Print keys and commands, and measure nothing.")
@click.option("--page", "is_page", is_flag=True, help="Write the page from the results, and measure nothing.")
def main(only: Sequence[str], is_list: bool, is_page: bool) -> None:
    """Measure the figures of docs/reference/figures.md again, one command after the other, and write the page."""
    histories = from_json(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}
    chosen = [each for each in CATALOGUE if is_chosen(each, only)]
    if not chosen:
        raise click.UsageError(f"no figure's key has {' or '.join(map(repr, only))}; --list prints the keys")
    if is_list:
        for measurement in chosen:
            click.echo(f"{command_of(measurement)}: {', '.join(figure.key for figure in measurement.figures)}")
        return
    failed = 0
    for measurement in [] if is_page else chosen:
        click.echo(command_of(measurement), err=True)
        warn_of_others()
        circumstances = circumstances_now()
        try:
            documents = run(measurement)
            for figure in measurement.figures:
                result = Result(figure.read(documents), circumstances)
                known = histories.get(figure.key)
                histories[figure.key] = known.followed_by(result) if known is not None else History(result)
                click.echo(f"  {figure.title}: {show(result.value, figure.unit)}", err=True)
        except NotMeasured as missing:
            failed += 1
            click.echo(f"  not measured: {missing}", err=True)
        write(histories)
    write(histories)
    if failed:
        raise click.ClickException(f"{failed} of {len(chosen)} commands gave no figure")


def is_chosen(measurement: Measurement, only: Sequence[str]) -> bool:
    return not only or any(word in figure.key for word in only for figure in measurement.figures)


def run(measurement: Measurement) -> Documents:
    """Run a measurement's command, and return the JSON documents that it prints. Raise NotMeasured if the command
    fails.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", *measurement.command],
            capture_output=True,
            text=True,
            timeout=measurement.limit_s,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"the command took more than {measurement.limit_s:g} s") from None
    if done.returncode != 0:
        raise NotMeasured(f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return documents_of(done.stdout)


def documents_of(output: str) -> Documents:
    """Return the JSON documents that follow each other in ``output``. Raise NotMeasured if there is none."""
    decoder, found, rest = json.JSONDecoder(), [], output.strip()
    while rest:
        try:
            document, end = decoder.raw_decode(rest)
        except json.JSONDecodeError as error:
            raise NotMeasured(f"the output is not JSON: {error}") from None
        found.append(document)
        rest = rest[end:].lstrip()
    if not found:
        raise NotMeasured("the command printed nothing")
    return found


def warn_of_others() -> None:
    load = os.getloadavg()[0]
    if load > BUSY_LOAD:
        click.echo(f"  warning: a load of {load:.1f}: other processes take time from this measurement", err=True)


def circumstances_now() -> Circumstances:
    began = time.process_time()
    for _ in range(LOOP):
        pass
    loop_ms = (time.process_time() - began) * 1000
    return Circumstances(revision(), machine(), datetime.now(UTC).date().isoformat(), round(loop_ms, 1))


def revision() -> str:
    """Return the short hash of the commit, with `+` if a file other than documents differs from the commit."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short=7", "HEAD") + ("+" if git("status", "--porcelain", "--", ".", ":!docs") else "")


def machine() -> str:
    processor = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    cores = len(os.sched_getaffinity(0))
    return f"{cores} x {processor}, Linux {platform.release()}, Python {platform.python_version()}"


def write(histories: dict[str, History]) -> None:
    RESULTS.write_text(json.dumps(to_json(histories), indent=1) + "\n")
    PAGE.write_text(page(CATALOGUE, histories))


if __name__ == "__main__":
    main()
