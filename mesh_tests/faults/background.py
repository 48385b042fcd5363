"""The life of half an hour over sockets that `make soak` starts beside its batches, and tells of when it is over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS = 1800


def report_file(folder: Path, revision: str) -> Path:
    return folder / f"life-{revision}.json"


def start(folder: Path, revision: str, seed: int) -> None:
    """One process for a revision, which outlives the soak that started it."""
    report = report_file(folder, revision)
    if report.exists():
        return
    report.write_text(json.dumps({"seed": seed, "seconds": SECONDS, "state": "running"}))
    with (folder / "life.log").open("ab") as log:
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mesh_tests.faults.life",
                str(SECONDS),
                "--seed",
                str(seed),
                "--report",
                str(report),
            ],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def found(folder: Path, revision: str) -> dict[str, Any]:
    """What the life of this revision has reported so far."""
    return dict(json.loads(report_file(folder, revision).read_text()))
