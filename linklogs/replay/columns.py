"""Columns made of columns: the bucket of a latency, the middle of a bucket, the window of a time.

Built-in functions only, so that Spark compiles them; addressing/link_log.py says what a bucket is.
"""

from __future__ import annotations

import fnmatch
import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from addressing.link_log import Kind

US_PER_S = 1_000_000


def bucket(took_us: str) -> Column:
    """As `bucket_of` has it, of the column of that name."""
    # Beside a power of two a logarithm may round to the wrong side: hence a guess, and one step from it either way.
    guess = f"cast(floor(log2({took_us})) as int)"
    octave = f"{guess} - if(shiftright({took_us}, {guess}) = 0, 1, 0) + if(shiftright({took_us}, {guess}) > 1, 1, 0)"
    of_octave = f"cast(16 * ({octave} - 4) + shiftright({took_us}, {octave} - 4) as int)"
    return F.expr(f"if({took_us} < 16, cast({took_us} as int), {of_octave})")


def middle_us(bucket: str) -> Column:
    """The middle of a bucket, as a double: no latency in it is further than BUCKET_ERROR from it."""
    octave = f"({bucket} div 16 - 1)"
    least = f"shiftleft(cast(16 + {bucket} % 16 as bigint), cast({octave} as int))"
    wide = f"shiftleft(1L, cast({octave} as int))"
    return F.expr(f"if({bucket} < 16, cast({bucket} as double), {least} + ({wide} - 1) / 2D)")


def window(at_us: Column, window_us: int) -> Column:
    """The beginning, in us. What is told at the end of a second is of that second."""
    ends = F.when(F.col("kind") == Kind.TRAFFIC.value, 1).otherwise(0)
    return F.floor((at_us - ends) / F.lit(window_us)) * F.lit(window_us)


def like(name: str, pattern: str | None) -> Column:
    """Whether the column matches a pattern with ``*``, ``?`` and ``[...]``; any does without one."""
    if pattern is None:
        return F.lit(True)
    # Java has no \\Z of Python's meaning, and needs none: the whole text is asked for.
    return F.col(name).rlike("^(?:" + re.sub(r"\\[Zz]$", "", fnmatch.translate(pattern)) + r")\z")


def per_s(count: Column, seconds: float) -> Column:
    return F.round(count / seconds, 3)
