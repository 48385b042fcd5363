"""Folders in the temporary directory: whatever ends their process, they do not stay for good."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mesh.deploy.pid_file import PidFile
from mesh.deploy.scratch import OWNER, scratch_folder

PREFIX = "amqpmesh-test-"
HOLD = f"""
import sys
from mesh.deploy.scratch import scratch_folder
with scratch_folder({PREFIX!r}) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def other(temporary: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process, and the folder that it uses."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"TMPDIR": str(temporary), "PYTHONPATH": ":".join(sys.path)},
    ) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def folders(temporary: Path) -> list[Path]:
    return sorted(temporary.glob(f"{PREFIX}*"))


def test_a_folder_is_gone_when_its_context_ends(temporary: Path) -> None:
    with pytest.raises(FileNotFoundError), scratch_folder(PREFIX) as folder:
        (folder / "file").rename(folder / "no such folder" / "file")
    assert folders(temporary) == []


def test_the_folder_of_a_process_that_was_killed_goes_with_the_next(
    temporary: Path, other: tuple[subprocess.Popen[str], Path]
) -> None:
    process, left = other
    process.kill()
    process.wait()
    assert folders(temporary) == [left]
    with scratch_folder(PREFIX) as folder:
        assert folders(temporary) == [folder]


def test_the_folder_of_a_process_that_lives_stays(temporary: Path, other: tuple[subprocess.Popen[str], Path]) -> None:
    _, used = other
    with scratch_folder(PREFIX) as folder:
        assert folders(temporary) == sorted([used, folder])


def test_a_folder_whose_nodes_still_run_stays(temporary: Path, other: tuple[subprocess.Popen[str], Path]) -> None:
    process, left = other
    (left / ".amqpmesh" / "m" / "run").mkdir(parents=True)
    with PidFile(left / ".amqpmesh" / "m" / "run" / "r1.pid") as node:
        assert node.acquire()
        process.kill()
        process.wait()
        with scratch_folder(PREFIX) as folder:
            assert folders(temporary) == sorted([left, folder])


@pytest.mark.parametrize("name", [f"{PREFIX}of-somebody", "amqpmesh-other"])
def test_a_folder_that_nobody_says_was_ours_stays(temporary: Path, name: str) -> None:
    (temporary / name).mkdir()
    (temporary / name / "file").write_text("x")
    with scratch_folder(PREFIX):
        assert (temporary / name / "file").exists()


def test_a_link_to_a_folder_is_not_followed(temporary: Path) -> None:
    target = temporary / "target"
    target.mkdir()
    (target / OWNER).write_text('{"pid": 1}')
    (temporary / f"{PREFIX}link").symlink_to(target)
    with scratch_folder(PREFIX):
        assert (target / OWNER).exists()
