"""What does a crash at a line leave that is only passed when a store is made, or taken over?"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.store.batch import StoreError
from broker.store.failpoints import VARIABLE, StoreFailpoint, when_passing
from broker.store.sqlite import SqliteStore
from mesh_tests.inventories import held_by
from mesh_tests.unit.broker.store.format_1 import store_of_format_1

OPEN = "import sys, pathlib; from broker.store.sqlite import SqliteStore; SqliteStore(pathlib.Path(sys.argv[1])).load()"


def open_and_crash(directory: Path, failpoint: StoreFailpoint) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", OPEN, str(directory)], env={**os.environ, VARIABLE: f"{failpoint}:1"}, check=False
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("failpoint", [StoreFailpoint.SCHEMA_WRITTEN, StoreFailpoint.RECOVERY_WRITTEN])
def test_a_store_whose_making_was_cut_short_is_an_empty_one(tmp_path: Path, failpoint: StoreFailpoint) -> None:
    open_and_crash(tmp_path, failpoint)
    store = SqliteStore(tmp_path)
    assert held_by(store.load()).messages == []
    store.close()


@pytest.mark.parametrize("failpoint", [StoreFailpoint.UPGRADE_WRITTEN, StoreFailpoint.RECOVERY_COMMITTED])
def test_a_store_that_was_being_taken_over_is_whole(tmp_path: Path, failpoint: StoreFailpoint) -> None:
    store_of_format_1(tmp_path, 600)
    open_and_crash(tmp_path, failpoint)
    store = SqliteStore(tmp_path)
    assert len(held_by(store.load()).messages) == 598
    store.close()


@pytest.mark.parametrize("text", ["rows", "rows-written:0", "rows-written:x", ""])
def test_a_failpoint_that_is_none_is_told(text: str) -> None:
    with pytest.raises(StoreError, match=r"expected NAME:N, NAME one of .*rows-written"):
        when_passing({VARIABLE: text})
