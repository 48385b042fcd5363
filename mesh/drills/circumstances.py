"""Collects the circumstances for a drill's report: seed, host, versions, digests of the files, and the previous
summary.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from addressing.topology.model import Topology
from addressing.topology.redaction import redact_urls
from mesh.drills.judgement import Circumstances
from mesh.drills.rehearsal_result import RehearsalResult
from mesh.drills.report import Drawing
from mesh.terminal.version import read_version

RUNS = Path(".amqpmesh", "drills")
SUMMARY = "summary.json"


def circumstances(drill: str, digest: str, rehearsed: RehearsalResult, took_s: float) -> Circumstances:
    return Circumstances(
        seed=rehearsed.seed,
        started_at=datetime.fromtimestamp(rehearsed.record.wall_began_at, UTC).isoformat(timespec="seconds"),
        took_s=round(took_s, 1),
        command=redact_urls(shlex.join(["amqpmesh", *sys.argv[1:]])),
        host=f"{platform.system()} {platform.release()}, {os.cpu_count()} cores",
        versions={
            "amqpmesh": read_version(),
            "python": platform.python_version(),
            "python-qpid-proton": version("python-qpid-proton"),
        },
        digests={"drill": digest, "topology": digest_of(rehearsed.topology)},
        drawing=rehearsed.drawing,
        previous=previous_run(drill),
    )


def digest_of(topology: Topology | None) -> str:
    return sha256(topology.file.read_bytes()).hexdigest() if topology is not None and topology.file is not None else ""


def drawing_of(topology: Topology) -> Drawing:
    return Drawing(
        tuple(topology.routers),
        tuple((name, tuple(topology.routers_of(name))) for name in topology.brokers),
        tuple((edge.dialer, edge.to, edge.cost) for edge in topology.edges()),
    )


def previous_run(drill: str) -> dict[str, Any] | None:
    """Return the summary of the latest run of ``drill`` that is kept below `.amqpmesh/drills` in the current folder, or
    None.
    """
    for kept in sorted(RUNS.glob(f"*-{drill}/{SUMMARY}"), reverse=True):
        try:
            kept_report = json.loads(kept.read_text())
            found: dict[str, Any] = kept_report["summary"]
        except (OSError, ValueError, KeyError):
            continue
        # The folder of another drill may match, too: for the drill `router`, so does the folder of the drill
        # `lose-a-router`.
        if kept_report.get("drill") == drill:
            return found
    return None
