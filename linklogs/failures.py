"""Turns Spark's errors into one sentence, without the stack traces of two languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

FAILURES = (PySparkException, Py4JError, ConnectionError)
"""Errors that any call of Spark may raise; ConnectionError means that Spark's Java process is gone."""
CUT_SHORT = (EOFError, OSError, pyarrow.ArrowException)
"""Further errors that a call of Spark raises if Spark's Java process ends in the middle of an answer.

Other faults raise these errors, too: `is_gone` tells whether Java has ended.
"""
GONE = (
    "Spark's Java process ended before the report was done, perhaps out of memory: spark.driver.memory sets its memory"
)

_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] .*? reading file (\S+?)\.\s")
_WORKER = "An exception was thrown from the Python worker"
_OF_WORKER = re.compile(r"^[A-Za-z_][\w.]*: ")
_SAYS = re.compile(r"^(?:\S*(?:Exception|Error): )?(\[[A-Z_.]+\] .+|.+)$")


def is_gone(spark: SparkSession) -> bool:
    """Whether Spark's Java process has ended."""
    try:
        # Spark asks Java for the version, so the call fails if Java has ended.
        return not spark.version
    except FAILURES:
        return True


@contextmanager
def whole_answers(spark: SparkSession) -> Iterator[None]:
    """Raise ConnectionError in place of errors of CUT_SHORT within the context, if Spark's Java process is gone.

    Spark raises such an error if an answer of its Java process is cut short.
    """
    try:
        yield
    except CUT_SHORT as error:
        if is_gone(spark):
            raise ConnectionError(str(error)) from None
        raise


def sentence(error: Exception) -> str:
    """Return a Spark error as a sentence for people, with the file's name if a file was unreadable."""
    try:
        text = str(error)
    except FAILURES:
        # Some of Spark's errors fetch their text from Java: if Java is gone, `str` fails, too.
        return GONE
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return GONE
    found = _FILE.search(text + "\n")
    if found is not None:
        return f"{found[1]} is incomplete, or not a Parquet file: move it away to read the other files"
    return f"Spark failed: {said(error)}"


def said(error: Exception) -> str:
    """Return the one line of a Spark error's text that says most, without stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    return _said(lines)


def _said(lines: list[str]) -> str:
    """Pick a line of an error's text: in general the first.

    For an error of a call of Java, the second line has the reason; for an error of a Python worker, the last exception
    named.
    """
    if not lines:
        return "Spark gives no reason"
    if lines[0].startswith(_WORKER) and (raised := [line for line in lines[1:] if _OF_WORKER.match(line)]):
        return f"a Python worker ended with {raised[-1]}"
    is_call = lines[0].startswith("An error occurred while calling") and len(lines) > 1
    found = _SAYS.match(lines[1].removeprefix(": ") if is_call else lines[0])
    return found[1] if found is not None else lines[0]
