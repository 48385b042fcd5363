"""Spark expressions over columns: windows, spans of time, matches of patterns, rates; made of built-in functions
only.
"""

from __future__ import annotations

import fnmatch
import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from addressing.address import BROKER_PREFIX, MESH_PREFIX, SPACE_PREFIX
from linklogs.moments import TimeSpan

US_PER_S = 1_000_000


def window(at_us: Column, window_us: int) -> Column:
    """Return the beginning of the window in which a time lies, in us."""
    return F.floor(at_us / F.lit(window_us)) * F.lit(window_us)


def within(at_us: Column, span: TimeSpan) -> Column:
    """Return the condition that the time ``at_us`` lies in ``span``."""
    return touches(at_us, at_us + 1, span)


def touches(at_us: Column, until_us: Column, span: TimeSpan) -> Column:
    """Return the condition that a duration overlaps the span; ``until_us`` is null for a duration that has not
    ended.
    """
    began = F.lit(True) if span.to_us is None else at_us < span.to_us
    return began if span.from_us is None else began & F.coalesce(until_us > span.from_us, F.lit(True))


def clipped(from_us: Column, until_us: Column, span: TimeSpan) -> tuple[Column, Column]:
    """Return begin and end of that part of the time from ``from_us`` to ``until_us`` that lies in ``span``.

    Without such a part, the end is not after the begin.
    """
    begins = from_us if span.from_us is None else F.greatest(from_us, F.lit(span.from_us))
    return begins, until_us if span.to_us is None else F.least(until_us, F.lit(span.to_us))


def like(name: str, pattern: str | None) -> Column:
    """Return the condition that a column matches a pattern with ``*``, ``?`` and ``[...]``; always true without a
    pattern.
    """
    if pattern is None:
        return F.lit(True)
    # Python marks the end of the text by \Z. In Java, \Z would also match before a last line break; \z would not.
    return F.col(name).rlike("^(?:" + re.sub(r"\\[Zz]$", "", fnmatch.translate(pattern)) + r")\z")


def per_s(count: Column, seconds: float) -> Column:
    return F.round(count / seconds, 3)


def is_of_mesh(name: str) -> Column:
    """Whether the address in column ``name`` is one on which the mesh talks to itself, as `up` does to test readiness.

    Temporary queues and addresses of another space than the default space have such texts, too, but belong to clients:
    false, as for null.
    """
    is_of_client = F.col(name).rlike(f"^({BROKER_PREFIX}[^/]+/temp(-topic)?\\.|{SPACE_PREFIX})")
    is_ours = F.col(name).startswith(MESH_PREFIX) & ~is_of_client
    return F.coalesce(is_ours, F.lit(False))
