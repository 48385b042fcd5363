"""The files of a mesh that runs are deleted: what runs is found, is not started twice, and is stopped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesh.deploy.pid_file import Holder, PidFile
from mesh.deploy.running_processes import living, node_pid, stop_mesh, supervisor_pid
from mesh.deploy.socket_lock import SocketLock
from mesh.deploy.workdir import SUPERVISOR, WorkDir

NODES = ("b1", "r1", SUPERVISOR)
HOLDER = """
import sys
from pathlib import Path
from mesh.deploy.pid_file import PidFile
with PidFile(Path(sys.argv[1])) as file:
    print(file.acquire(), flush=True)
    sys.stdin.read()
"""


def holder_of(path: Path, stack: ExitStack) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HOLDER, str(path)]
    node = stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    stack.callback(node.kill)
    assert node.stdout is not None
    assert node.stdout.readline() == "True\n"
    return node


@pytest.fixture
def workdir(tmp_path: Path) -> WorkDir:
    workdir = WorkDir(tmp_path / ".amqpmesh" / "m")
    workdir.make()
    return workdir


@pytest.fixture
def processes(workdir: WorkDir) -> Iterator[dict[str, subprocess.Popen[str]]]:
    with ExitStack() as stack:
        yield {name: holder_of(workdir.pid_file(name), stack) for name in NODES}


def pid_files(workdir: WorkDir) -> None:
    for name in NODES:
        workdir.pid_file(name).unlink()


def run_folder(workdir: WorkDir) -> None:
    shutil.rmtree(workdir.root / "run")


def everything(workdir: WorkDir) -> None:
    shutil.rmtree(workdir.root)


def emptied(workdir: WorkDir) -> None:
    for name in NODES:
        workdir.pid_file(name).write_bytes(b"")


def made_anew(workdir: WorkDir) -> None:
    everything(workdir)
    workdir.make()


@pytest.mark.parametrize("delete", [pid_files, run_folder, everything, emptied, made_anew])
def test_what_runs_is_found_and_stopped_whatever_became_of_its_files(
    workdir: WorkDir, processes: dict[str, subprocess.Popen[str]], delete: Callable[[WorkDir], None]
) -> None:
    pids = {name: process.pid for name, process in processes.items()}
    assert living(workdir) == pids
    delete(workdir)
    assert living(workdir) == pids
    assert supervisor_pid(workdir) == pids[SUPERVISOR]
    workdir.make()
    assert not PidFile(workdir.pid_file("r1")).acquire(), "it was started twice"
    assert node_pid(workdir, "r1") == pids["r1"]
    assert stop_mesh(workdir) == pids
    assert [process.wait(10) is not None for process in processes.values()] == [True] * len(NODES)
    assert living(workdir) == {}
    with PidFile(workdir.pid_file("r1")) as again:
        assert again.acquire()


def test_the_same_name_in_another_folder_is_another_lock(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with PidFile(tmp_path / "one" / "r1.pid") as one, PidFile(tmp_path / "other" / "r1.pid") as other:
        assert one.acquire()
        assert other.acquire()


def test_a_folder_is_known_by_every_path_to_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    lock = SocketLock(tmp_path / "folder" / "r1.pid")
    assert lock.acquire()
    assert PidFile(tmp_path / "link" / "r1.pid").holder() == Holder(lock.holder() or 0)
    lock.release()
    assert PidFile(tmp_path / "link" / "r1.pid").holder() is None
