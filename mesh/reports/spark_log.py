"""Sends the output of Spark to a file beside the report, so that the terminal shows the report's own errors only."""

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
    """Send this process's stderr to the file ``path`` while the context lasts.

    Processes started meanwhile keep this stderr for good; Java writes much to stderr before its log level is set.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    path.write_bytes(b"")
    try:
        # The file is opened to append: other processes write to it as well, and their text must not be overwritten.
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def logging_to(path: Path, spark: SparkSession) -> Iterator[None]:
    """Log errors of Spark's Python code to the file ``path`` while the context lasts.

    Without a handler, tracebacks about a lost Java would go to stderr.
    """
    handler = logging.FileHandler(path, encoding="utf-8")
    logging.getLogger().addHandler(handler)
    # Spark's server of accumulators writes its errors to stderr, not to a logger, so its error handler is replaced.
    server = spark.sparkContext._accumulatorServer
    server.handle_error = _log_error  # type: ignore[method-assign]
    try:
        yield
    finally:
        # Spark's threads may log the loss of Java a little later, and logging without any handler would write to
        # stderr.
        logging.getLogger().addHandler(_NOWHERE)
        logging.getLogger().removeHandler(handler)
        handler.close()


def _log_error(request: object, client_address: object) -> None:
    logging.getLogger().exception("the counters of workers no longer arrive")
