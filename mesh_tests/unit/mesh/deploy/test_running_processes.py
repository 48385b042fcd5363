"""Does the mesh that runs have the topology of the file?"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from addressing.topology.loader import load_topology
from mesh.deploy.pid_file import PidFile
from mesh.deploy.running_processes import change_note, other_meshes, started_from, topology_changes
from mesh.deploy.workdir import SUPERVISOR, WorkDir

TEXT = "mesh: m\nrouters: {r1: }\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "amqpmesh.yml").write_text(TEXT)
    return tmp_path / "amqpmesh.yml"


@pytest.fixture
def workdir(file: Path) -> WorkDir:
    workdir = WorkDir(load_topology(file).work_dir)
    workdir.make()
    return workdir


@pytest.fixture
def supervisor(workdir: WorkDir) -> Iterator[PidFile]:
    """What `up` leaves while it runs."""
    workdir.running_topology.write_text(TEXT)
    with PidFile(workdir.pid_file(SUPERVISOR)) as supervisor:
        assert supervisor.acquire()
        yield supervisor


@pytest.mark.usefixtures("supervisor")
def test_nothing_is_told_of_a_file_that_is_as_it_was(file: Path) -> None:
    assert change_note(load_topology(file)) is None


@pytest.mark.usefixtures("supervisor")
def test_a_file_that_was_changed_after_up_is_told_of(file: Path) -> None:
    file.write_text(TEXT + "addresses: {a: anycast}\n")
    assert change_note(load_topology(file)) == (
        "warning: the m that runs was started from another version of amqpmesh.yml (1 line): "
        "`amqpmesh plan` shows the difference; `apply`, or `down` and `up`, carry it out"
    )


def test_a_changed_password_is_a_change_that_does_not_show_the_password(file: Path, workdir: WorkDir) -> None:
    users = 'users: {{a: {{password: "SCRAM-SHA-256$15000:{0}$a:b"}}}}\nbrokers: {{b: {{url: "amqp://u:{0}@h"}}}}\n'
    workdir.running_topology.write_text(TEXT + users.format("old"))
    file.write_text(TEXT + users.format("new"))
    assert topology_changes(workdir, file) == [
        "-users: {a: {password: ***}}",
        '-brokers: {b: {url: "amqp://u:***@h"}}',
        "+users: {a: {password: ***}}",
        '+brokers: {b: {url: "amqp://u:***@h"}}',
    ]


def test_a_mesh_that_does_not_run_has_no_other_version(file: Path, supervisor: PidFile) -> None:
    supervisor.release()
    file.write_text(TEXT + "addresses: {a: anycast}\n")
    assert change_note(load_topology(file)) is None


def test_a_supervisor_that_crashed_leaves_nodes_of_its_version(
    file: Path, workdir: WorkDir, supervisor: PidFile
) -> None:
    supervisor.release()
    workdir.pid_file(SUPERVISOR).write_text('{"pid": 1}')
    file.write_text(TEXT + "addresses: {a: anycast}\n")
    note = change_note(load_topology(file), file) or ""
    assert "(1 line)" in note
    assert f"`amqpmesh plan -t {file}` shows the difference" in note


@pytest.mark.usefixtures("supervisor")
def test_a_mesh_that_was_renamed_is_found_under_its_old_name(file: Path) -> None:
    assert other_meshes(load_topology(file)) == []
    file.write_text(TEXT.replace("mesh: m", "mesh: n"))
    assert other_meshes(load_topology(file)) == ["m"]


HOLDER = """
import sys
from pathlib import Path
from mesh.deploy.pid_file import PidFile
with PidFile(Path(sys.argv[1])) as file:
    print(file.acquire(), flush=True)
    sys.stdin.read()
"""


def test_what_runs_tells_from_which_file_it_was_started(file: Path, workdir: WorkDir) -> None:
    assert started_from(workdir) is None
    words = [sys.executable, "-c", HOLDER, str(workdir.pid_file("r1")), "--topology", str(file), "--as-read", "x"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == "True\n"
        assert started_from(workdir) == file
        node.communicate()
