"""The reports of a mesh that lie beside its topology file: of drills, and of link logs. Reads files, and changes none.

.amqpmesh/drills/<time>-<drill>/report.html     a report of a drill
<folder>/report.html, <folder>/tables/          a report of link logs, beside the topology file
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

DRILL: Final = "drill"
LINK_LOGS: Final = "link logs"
PAGE: Final = "report.html"
MAX_REPORTS: Final = 100
"""The most reports that are listed, the newest."""
MAX_PAGE_BYTES: Final = 64 << 20
_MAX_SUMMARY_BYTES: Final = 4 << 20
_MAX_FOLDERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class KeptReport:
    """``made``: when the page was written, UTC. ``verdict`` is of a drill: PASS, FAIL, INVALID, UNKNOWN."""

    kind: str
    name: str
    folder: str
    made: str
    verdict: str | None
    says: str

    def to_map(self) -> dict[str, Any]:
        return asdict(self)


def report_folders(beside: Path) -> tuple[tuple[str, Path], ...]:
    """Return the folders that may have reports of the mesh whose topology file is in ``beside``, each with the kind."""
    return (DRILL, beside / ".amqpmesh" / "drills"), (LINK_LOGS, beside)


def kept_reports(beside: Path) -> tuple[list[KeptReport], int]:
    """Return the newest reports, the newest first, and the number of older ones that are left out.

    Links are not followed: a report lies where it seems to lie.
    """
    found = sorted(
        (
            (page.stat().st_mtime, kind, page.parent)
            for kind, root in report_folders(beside)
            for page in _pages(kind, root)
        ),
        key=lambda each: (-each[0], each[2]),
    )
    return [_read(*each) for each in found[:MAX_REPORTS]], max(0, len(found) - MAX_REPORTS)


def page_of(beside: Path, kind: str, name: str) -> bytes | None:
    """Return the page of the report ``name``, or None if there is none, or if it is not a file of a usual size."""
    root = dict(report_folders(beside)).get(kind)
    page = next((page for page in _pages(kind, root) if page.parent.name == name), None) if root is not None else None
    if page is None:
        return None
    with suppress(OSError):
        descriptor = os.open(page, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_PAGE_BYTES + 1)
        return content if len(content) <= MAX_PAGE_BYTES else None
    return None


def _pages(kind: str, root: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(root) as folders:
        for number, folder in enumerate(folders):
            if number == _MAX_FOLDERS:
                return
            page = Path(folder.path, PAGE)
            if folder.name.startswith(".") or not folder.is_dir(follow_symlinks=False):
                continue
            if page.is_symlink() or not page.is_file():
                continue
            if kind == DRILL or Path(folder.path, "tables").is_dir():
                yield page


def _read(written: float, kind: str, folder: Path) -> KeptReport:
    summary = _summary(folder / "summary.json")
    verdict, says = _of_drill(summary) if kind == DRILL else (None, _of_link_logs(summary))
    made = datetime.fromtimestamp(written, UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    return KeptReport(kind, _text(folder.name), _text(str(folder)), made, verdict, says)


def _summary(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        if not file.is_symlink() and file.stat().st_size <= _MAX_SUMMARY_BYTES:
            found = json.loads(file.read_bytes())
            return found if isinstance(found, dict) else {}
    return {}


def _of_drill(summary: dict[str, Any]) -> tuple[str | None, str]:
    told = summary.get("summary")
    results = told.get("results") if isinstance(told, dict) else None
    rows = [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []
    lost = sum(each["lost"] for each in rows if isinstance(each.get("lost"), int))
    outages = [each["outage_ms"] for each in rows if isinstance(each.get("outage_ms"), (int, float))]
    faults = len({str(each.get("fault")) for each in rows})
    verdict = summary.get("verdict")
    says = f"{faults} fault{'s' * (faults != 1)}, {lost:,} lost message{'s' * (lost != 1)}"
    if outages:
        says += f", longest outage {max(outages):,.0f} ms"
    return (str(verdict) if verdict is not None else None), says if rows else "its summary cannot be read"


def _of_link_logs(summary: dict[str, Any]) -> str:
    if not isinstance(records := summary.get("records"), int):
        return "its summary cannot be read"
    findings = summary.get("findings")
    count = len(findings) if isinstance(findings, list) else 0
    return f"{summary.get('from')} to {summary.get('to')}: {records:,} records, {count} finding{'s' * (count != 1)}"


def _text(name: str) -> str:
    # A name of a file need not be UTF-8.
    return name.encode(errors="surrogateescape").decode(errors="replace")
