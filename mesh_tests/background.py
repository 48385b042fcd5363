"""Lives over sockets, and one of the console's pages, that `make soak` starts in the background, and tells of later."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesh_tests.lives import PROCESSES, Life

SECONDS = 1800
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class LongLife:
    """``module`` leads the life of a seed, and writes its report: ``state`` is running, passed or failed."""

    name: str
    module: str
    life: Life
    seconds: int = SECONDS

    def report_file(self, folder: Path, revision: str) -> Path:
        return folder / f"{self.name}-{revision}.json"

    def start(self, folder: Path, revision: str, seed: int) -> None:
        """One process for a revision, which outlives the soak that started it."""
        report = self.report_file(folder, revision)
        if report.exists():
            return
        report.write_text(json.dumps({"seed": seed, "seconds": self.seconds, "state": "running"}))
        with (folder / f"{self.name}.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-m", self.module, str(self.seconds), "--seed", str(seed), "--report", str(report)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def found(self, folder: Path, revision: str) -> dict[str, Any]:
        """What the life of this revision has reported so far."""
        return dict(json.loads(self.report_file(folder, revision).read_text()))


FAULTS = LongLife(
    "life",
    "mesh_tests.faults.life",
    Life("faults", "processes are killed, stopped and frozen for half an hour, clients vanish", 1, PROCESSES),
)
CHURN = LongLife(
    "churn",
    "mesh_tests.churn.churn",
    Life(
        "churn",
        "clients, links and addresses come and go for half an hour; memory, descriptors and objects stay as they are",
        1,
        (*PROCESSES, "mesh_tests/churn"),
    ),
)
HEAPS = LongLife(
    "heaps",
    "mesh_tests.browser.page_heaps",
    Life(
        "heaps",
        "each page of the console is open over 500 routers and 10,000 addresses that change; no page's heap grows",
        1,
        ("addressing", "recording", "mesh/watch", "mesh_tests/browser"),
    ),
    seconds=720,
)
LONG_LIVES = (FAULTS, CHURN, HEAPS)
