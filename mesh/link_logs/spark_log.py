"""Where does go what Spark says while it works? To a file beside the report: people have a sentence of it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """For what is started meanwhile, for good: Java says much before it knows how much it shall say."""
    sys.stderr.flush()
    kept = os.dup(2)
    path.write_bytes(b"")
    try:
        # Others write to it, too: whoever opened it for less would write over what they said.
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def logging_to(path: Path, spark: SparkSession) -> Iterator[None]:
    """For Spark's Python: of a Java that is gone it tells with tracebacks, by the logger of whoever has none."""
    handler = logging.FileHandler(path, encoding="utf-8")
    logging.getLogger().addHandler(handler)
    # The server of what workers count has no logger, and writes to stderr.
    server = spark.sparkContext._accumulatorServer
    server.handle_error = _log_error  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _log_error(request: object, client_address: object) -> None:
    logging.getLogger().exception("what workers count is not heard any more")
