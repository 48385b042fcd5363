"""What somebody asks of a report, from options to what Spark needs: times, windows, settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from linklogs.moments import Span
from mesh.failure import CommandFailed

US_PER_S = 1_000_000


@dataclass(frozen=True, slots=True)
class Order:
    """``conf``: settings of Spark, in the order given. ``window_us``: above 0."""

    logs: str
    out: Path
    span: Span
    window_us: int
    tz: ZoneInfo
    address: str | None
    master: str | None
    conf: tuple[tuple[str, str], ...]


def span_of(since: str | None, until: str | None, tz: ZoneInfo) -> Span:
    """Raise ValueError for times that cannot be read, or leave nothing between them."""
    span = Span(_us(since, "--from", tz), _us(until, "--to", tz))
    if span.from_us is not None and span.to_us is not None and span.from_us >= span.to_us:
        raise ValueError(f"--from {since} is not before --to {until}: nothing lies between them")
    return span


def settings(pairs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Raise ValueError for what is not ``name=value``."""
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            raise ValueError(f"--conf {pair!r} is no setting: expected NAME=VALUE, such as spark.executor.memory=2g")
    return tuple((name, value) for name, _, value in (pair.partition("=") for pair in pairs))


def prepare(directory: Path) -> None:
    """Make the directory of a report. Raise CommandFailed for one that has something else in it."""
    directory.mkdir(parents=True, exist_ok=True)
    others = sorted(each.name for each in directory.iterdir() if each.name not in OURS)
    if others:
        raise CommandFailed(f"{directory} has {others[0]} in it, which is of no report: expected an empty directory")
    (directory / "tables").mkdir(exist_ok=True)


OURS = ("tables", "report.html", "summary.json", "spark.log")


def _us(text: str | None, option: str, tz: ZoneInfo) -> int | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{option} {text!r} is no time: expected one such as 2026-11-24T13:00") from None
    return round((at if at.tzinfo else at.replace(tzinfo=tz)).timestamp() * US_PER_S)
