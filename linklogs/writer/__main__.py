"""Runs the writer of link logs: `python -m linklogs.writer RINGS OUT`.

RINGS is the directory of the nodes' rings to read, OUT the directory of the link logs to write.
"""

from __future__ import annotations

import signal
import threading
from collections import deque
from pathlib import Path

import click

from addressing.records import PERSONAL_COLUMNS
from linklogs.writer.redaction import REDACTABLE
from linklogs.writer.run import run
from linklogs.writer.settings import MIB, Settings
from linklogs.writer.writer import WriterInUse


@click.command()
@click.argument("rings", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--redact-key-file",
    type=click.Path(path_type=Path, exists=True),
    help="File whose bytes are the key of the hashes.",
)
@click.option(
    "--redact",
    "columns",
    multiple=True,
    default=PERSONAL_COLUMNS,
    show_default=True,
    type=click.Choice(REDACTABLE),
    help="Column whose values become keyed hashes, if a key is given. Repeatable.",
)
@click.option(
    "--spool-bytes",
    default=16 * MIB,
    show_default=True,
    type=click.IntRange(min=1),
    help="Size of a spool that becomes a file.",
)
@click.option(
    "--spool-s",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Longest time that a record waits in the spool for a file.",
)
@click.option("--keep-s", type=click.FloatRange(min=0), help="Age at which files of past hours are deleted.")
@click.option(
    "--keep-bytes", type=click.IntRange(min=0), help="Size of all files beyond which the oldest files are deleted."
)
@click.option(
    "--poll-s",
    default=0.1,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Interval in which the writer reads the rings.",
)
def main(
    rings: Path, out: Path, redact_key_file: Path | None, columns: tuple[str, ...],
    spool_bytes: int, spool_s: float, keep_s: float | None, keep_bytes: int | None, poll_s: float,
) -> None:  # fmt: skip
    """Move the records of the rings in RINGS into files of link logs in OUT, until SIGTERM or Ctrl-C."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    ignored: deque[str] = deque()
    for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: ignored.append(signal.Signals(number).name))
    settings = Settings(rings, out, _key(redact_key_file), columns, spool_bytes, spool_s, keep_s, keep_bytes, poll_s)
    try:
        run(settings, stop, ignored)
    except (WriterInUse, OSError) as error:
        raise click.ClickException(str(error)) from None


def _key(path: Path | None) -> bytes | None:
    """Read the key for redaction; None without a file.

    Raises ClickException for a file that is empty, or has white space only: values hashed without a key can be found by
    guessing.
    """
    if path is None:
        return None
    key = path.read_bytes().strip()
    if not key:
        raise click.ClickException(f"--redact-key-file {path}: empty, expected a key to redact with")
    return key


if __name__ == "__main__":
    main()
