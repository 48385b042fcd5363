"""What does `amqpmesh up` say when the mesh runs already, and its file has changed?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from addressing.topology.loader import load_topology
from mesh.commands.cli import cli
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.terminal.exit_codes import ExitCode

TEXT = "mesh: shop\nrouters: {r1: {listeners: [5672]}}\naddresses:\n  rpc: anycast\n"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """The file of a mesh whose supervisor runs."""
    path = tmp_path / "amqpmesh.yml"
    path.write_text(TEXT)
    workdir = WorkDir(load_topology(path).work_dir)
    workdir.make()
    workdir.running_topology.write_text(TEXT)
    with PidFile(workdir.pid_file(SUPERVISOR)) as supervisor:
        assert supervisor.acquire()
        yield path


def up(file: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["up", "-t", str(file), *options])


def test_a_changed_file_is_refused_with_its_plan_and_a_fix(file: Path) -> None:
    file.write_text(TEXT.replace("anycast", "multicast"))
    done = up(file)
    assert done.exit_code == ExitCode.FAILED
    planned = CliRunner().invoke(cli, ["plan", str(file)]).stdout
    assert "change address rpc: type anycast -> multicast" in planned
    assert all(line.strip() in done.stderr for line in planned.splitlines())
    assert done.stderr.index("type anycast") < done.stderr.index("fix: `amqpmesh apply")


def test_a_plan_of_many_lines_is_cut_off_with_the_command_that_shows_it(file: Path) -> None:
    file.write_text(TEXT + "".join(f"  a{i}: anycast\n" for i in range(100)))
    done = up(file)
    assert f"more lines: `amqpmesh plan -t {file}`" in done.stderr
    assert len(done.stderr.splitlines()) < 70


def test_a_file_that_cannot_be_compared_says_why(file: Path) -> None:
    WorkDir(load_topology(file).work_dir).running_topology.write_text("mesh: shop\nrouters: {r1: {once: 1}}\n")
    done = up(file)
    assert done.exit_code == ExitCode.FAILED
    assert "the two cannot be compared: this version of amqpmesh does not accept the topology" in done.stderr
    assert "AM101, router 'r1': unknown key 'once'" in done.stderr
    assert "fix: `amqpmesh down`, then `amqpmesh up`." in done.stderr


def test_a_file_that_differs_in_a_comment_has_no_plan(file: Path) -> None:
    file.write_text(f"# another comment\n{TEXT}")
    done = up(file)
    # The supervisor of this test has no control socket, which is asked only once the file has been found to be equal.
    assert "the supervisor of shop does not answer" in done.stderr
