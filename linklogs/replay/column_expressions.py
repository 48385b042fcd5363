"""Columns computed from columns: windows, matches of patterns and spans, rates. Built-in functions only."""

from __future__ import annotations

import fnmatch
import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from addressing.address import BROKER_PREFIX, MESH_PREFIX
from linklogs.moments import TimeSpan

US_PER_S = 1_000_000


def window(at_us: Column, window_us: int) -> Column:
    """The beginning of the window, in us."""
    return F.floor(at_us / F.lit(window_us)) * F.lit(window_us)


def within(at_us: Column, span: TimeSpan) -> Column:
    """Whether the time is in the span."""
    return touches(at_us, at_us + 1, span)


def touches(at_us: Column, until_us: Column, span: TimeSpan) -> Column:
    """Whether a duration, from one time to another or null for ever, overlaps the span."""
    began = F.lit(True) if span.to_us is None else at_us < span.to_us
    return began if span.from_us is None else began & F.coalesce(until_us > span.from_us, F.lit(True))


def clipped(from_us: Column, until_us: Column, span: TimeSpan) -> tuple[Column, Column]:
    """The part of a duration in the span: the end may lie before the beginning."""
    begins = from_us if span.from_us is None else F.greatest(from_us, F.lit(span.from_us))
    return begins, until_us if span.to_us is None else F.least(until_us, F.lit(span.to_us))


def like(name: str, pattern: str | None) -> Column:
    """Whether the column matches a pattern with ``*``, ``?`` and ``[...]``; without a pattern all match."""
    if pattern is None:
        return F.lit(True)
    # Java has no \\Z of Python's meaning, and needs none: the whole text is asked for.
    return F.col(name).rlike("^(?:" + re.sub(r"\\[Zz]$", "", fnmatch.translate(pattern)) + r")\z")


def per_s(count: Column, seconds: float) -> Column:
    return F.round(count / seconds, 3)


def is_of_mesh(name: str) -> Column:
    """Whether the mesh talks to itself on the address, as `up` does to see whether all is ready.

    Temporary queues belong to clients.
    """
    is_ours = F.col(name).startswith(MESH_PREFIX) & ~F.col(name).rlike(f"^{BROKER_PREFIX}[^/]+/temp(-topic)?\\.")
    return F.coalesce(is_ours, F.lit(False))
