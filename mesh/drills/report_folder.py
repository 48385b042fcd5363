"""Keeps the report of a drill in a folder: the HTML page, the JUnit XML, the JSON, and the logs of all nodes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from mesh.drills.circumstances import RUNS, SUMMARY
from mesh.drills.junit import junit
from mesh.drills.page import page
from mesh.drills.report import DrillReport, DrillVerdict
from mesh.terminal.failure import CommandFailed, describe_file_error

PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Paths chosen by the user for the files of a report.

    A file without a path goes into ``folder``; if ``folder`` is None, into a new folder below ``.amqpmesh/drills``.
    """

    folder: Path | None
    html: Path | None
    junit: Path | None


def make_places(places: ReportPaths) -> None:
    """Make the folders for the report, before the drill starts. Raise CommandFailed if a folder is not writable."""
    for folder in {places.folder or RUNS, *(path.parent for path in (places.html, places.junit) if path is not None)}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except OSError as error:
            raise CommandFailed(f"the report of the drill cannot be kept in {folder}: {error.strerror}") from None


def keep(report: DrillReport, places: ReportPaths, logs: Path | None) -> Path:
    """Write the report's files and copy the nodes' logs, if there are any; return the path of the HTML page. Raise
    CommandFailed if a file cannot be written.
    """
    folder = places.folder or new_folder(report)
    html = places.html or folder / PAGE
    written = {
        html: page(report),
        places.junit or folder / "junit.xml": junit(report),
        folder / SUMMARY: json.dumps({**to_json(report), "summary": report.summary()}, indent=1),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in written.items():
            path.write_text(text)
        if logs is not None:
            shutil.copytree(logs, folder / "log", dirs_exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"the report of the drill cannot be kept: {describe_file_error(error)}") from None
    return html


def new_folder(report: DrillReport) -> Path:
    """Make a new folder for the report, named by the start time and the drill, with a number if the name is taken."""
    stamp = report.started_at.replace("-", "").replace(":", "").partition("+")[0]
    for turn in count(1):
        folder = RUNS / (f"{stamp}-{report.drill}" if turn == 1 else f"{stamp}.{turn}-{report.drill}")
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            break
    return folder


def to_json(report: DrillReport) -> dict[str, Any]:
    """Return the report as JSON data, without the data of charts, and with one flat row for each fault and address."""
    fields = report.to_map()
    for name in ("series", "messages", "results"):
        del fields[name]
    labels = {fault.id: fault.label for fault in report.faults}
    return {**fields, "passed": report.verdict is DrillVerdict.PASS, "results": list(_rows(report, labels))}


def _rows(report: DrillReport, labels: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    return [
        {
            "fault": labels[result.fault],
            "address": result.address,
            "detection_ms": result.detection_ms,
            "outage_ms": result.outage_ms,
            "first_delivery_ms": result.first_delivery_ms,
            "recovery_ms": result.recovery_ms,
            "p99_before_ms": result.before.p99_ms,
            "p99_during_ms": result.during.p99_ms,
            "p99_after_ms": result.after.p99_ms,
            **{name: getattr(result.counts, name) for name in result.counts.__dataclass_fields__},
            "stalls": result.stalls,
            "longest_stall_ms": result.longest_stall_ms,
            "passed": result.passed,
        }
        for result in report.results
    ]
