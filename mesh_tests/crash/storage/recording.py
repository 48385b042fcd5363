"""Run a workload with all that it does to its files recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mesh_tests.crash.storage.operations import Operation, read_operations

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@dataclass(frozen=True)
class Recording:
    exit_code: int
    said: str
    operations: list[Operation]

    def batches_before(self, number: int) -> int:
        """How many batches were promised before that operation."""
        return sum(operation.name == "promises" and operation.kind == "W" for operation in self.operations[:number])


def build_recorder(folder: Path) -> Path:
    library = folder / "recorder.so"
    source = HERE / "recorder.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def record(recorder: Path, seed: int, folder: Path, *, failing: str | None = None) -> Recording:
    folder.mkdir(exist_ok=True)
    data, log = folder / "data", folder / "operations"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(recorder),
        "RECORD_DIR": str(data),
        "RECORD_TO": str(log),
        "PYTHONPATH": str(ROOT),
        **({"RECORD_FAIL": failing} if failing else {}),
    }
    command = [sys.executable, "-m", "mesh_tests.crash.storage.workload", str(seed), str(data)]
    ended = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    recording = Recording(ended.returncode, ended.stderr, read_operations(log))
    names = {operation.name for operation in recording.operations}
    assert failing or "store.db-wal" in names, f"what SQLite writes cannot be recorded here:\n{ended.stderr}"
    return recording
