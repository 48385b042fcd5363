"""The request for a report, parsed from the options of the command line: time span, windows, settings of Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from linklogs.moments import TimeSpan
from linklogs.time_options import US_PER_S as US_PER_S
from linklogs.time_options import span_of, window_us_of, zone_of
from mesh.terminal.failure import CommandFailed

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A request for a report.

    ``conf``: settings of Spark, in the order given. ``window_us``: width of a window in us, above 0.
    """

    logs: str
    out: Path
    span: TimeSpan
    window_us: int
    tz: ZoneInfo
    address: str | None
    master: str | None
    conf: tuple[tuple[str, str], ...]
    topology: Topology | None = None
    """The topology with whose cheapest paths the paths in use are compared; None: with the paths that routers
    recorded.
    """
    has_nicknames: bool = False
    """Whether the page and the terminal show nicknames in place of long names."""


def order_of(options: Mapping[str, Any]) -> ReportRequest:
    """Make a request from command-line options.

    Raise ValueError for an invalid option, and TopologyInvalid for an invalid topology file.
    """
    tz = zone_of(options["tz"])
    span = span_of(options["since"], options["until"], tz)
    where = (options["logs"], options["directory"], span, window_us_of(options["window"]), tz)
    how = (options["address"], options["master"], settings(options["conf"]))
    return ReportRequest(*where, *how, _topology_of(options["topology"]), options["nickname"])


def _topology_of(path: Path | None) -> Topology | None:
    if path is None:
        return None
    from mesh.terminal.topology_file import load_topology

    return load_topology(path)


def settings(pairs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Parse settings of Spark. Raise ValueError for a text that is not ``name=value``."""
    for pair in pairs:
        if "=" not in pair or pair.startswith("="):
            raise ValueError(
                f"--conf {pair!r} is not a valid setting: expected NAME=VALUE, such as spark.executor.memory=2g"
            )
    return tuple((name, value) for name, _, value in (pair.partition("=") for pair in pairs))


def prepare(directory: Path) -> None:
    """Make the report's folder with a folder `tables`.

    Raise CommandFailed if the folder cannot be made, or holds files that are not part of a report.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise CommandFailed(
            f"--out {directory} cannot be created: {why}; expected a directory, or the place for a new one"
        ) from None
    others = sorted(each.name for each in directory.iterdir() if each.name not in OURS)
    if others:
        raise CommandFailed(
            f"--out {directory} has {others[0]}, which is not part of a report: expected an empty folder"
        )
    (directory / "tables").mkdir(exist_ok=True)


OURS = ("tables", "report.html", "summary.json", "spark.log")
