"""Reads the options of a report with times: time zone, span, and length of a window."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from linklogs.moments import TimeSpan

US_PER_S = 1_000_000
LONGEST_S = 366 * 86_400
"""The longest time window of a report's tables over time."""


def zone_of(text: str) -> ZoneInfo:
    """Return the time zone of option --tz. Raise ValueError for text that is no time zone."""
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"--tz {text!r} is not a valid time zone: expected one such as Europe/Zurich") from None


def span_of(since: str | None, until: str | None, tz: ZoneInfo) -> TimeSpan:
    """Return the span of options --from and --to, whose times are in ``tz`` unless they name a zone.

    Raise ValueError for text that is no time, or an empty span.
    """
    span = TimeSpan(_us(since, "--from", tz), _us(until, "--to", tz))
    if span.from_us is not None and span.to_us is not None and span.from_us >= span.to_us:
        raise ValueError(f"--from {since} is not before --to {until}: expected an earlier --from")
    return span


def window_us_of(seconds: float) -> int:
    """Return the length of a window in us. Raise ValueError for less than 1 us, or more than 366 days."""
    # `not` of a range refuses NaN, too, which is neither below nor above the range.
    if not 1 <= seconds * US_PER_S <= LONGEST_S * US_PER_S:
        raise ValueError(f"--window is {seconds:g} s: expected at least 0.000001 s, and at most 366 days")
    return round(seconds * US_PER_S)


def _us(text: str | None, option: str, tz: ZoneInfo) -> int | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is not a valid time: expected one such as 2026-11-24T13:00") from None
    return round((at if at.tzinfo else at.replace(tzinfo=tz)).timestamp() * US_PER_S)
