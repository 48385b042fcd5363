"""Send the output of Spark to a file beside the report; users see a sentence from the file."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

_NOWHERE = logging.NullHandler()


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Send stderr to ``path``. Processes started meanwhile keep ``path`` for good.

    Java writes much to stderr before its log level is set.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    path.write_bytes(b"")
    try:
        # Append: others write to the file too, and a file opened without appending would overwrite their lines.
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def logging_to(path: Path, spark: SparkSession) -> Iterator[None]:
    """Log errors of Spark's Python to ``path``. Without a handler, tracebacks about a lost Java would go to stderr."""
    handler = logging.FileHandler(path, encoding="utf-8")
    logging.getLogger().addHandler(handler)
    # The server of accumulators has no logger, and writes to stderr.
    server = spark.sparkContext._accumulatorServer
    server.handle_error = _log_error  # type: ignore[method-assign]
    try:
        yield
    finally:
        # Spark's threads may log the loss of Java a little later: without any handler, logging would write to stderr.
        logging.getLogger().addHandler(_NOWHERE)
        logging.getLogger().removeHandler(handler)
        handler.close()


def _log_error(request: object, client_address: object) -> None:
    logging.getLogger().exception("the counters of workers no longer arrive")
