"""Does `amqpmesh plan` say of a real mesh what is so: connections, messages, costs, nodes that are dead or frozen?"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mesh.deploy.workdir import SUPERVISOR
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.running_mesh import AMQPMESH, COMMAND_S, RunningMesh
from mesh_tests.unit.mesh.change.topologies import SECRET
from mesh_tests.waiting import wait_until

TOPOLOGY = f"""\
mesh: planned
routers:
  r1: {{}}
  r2: {{connect: [r1]}}
brokers:
  b1: {{routers: [r2]}}
addresses: {{orders: queue, empty: queue, rpc: anycast}}
users:
  alice: {{password: "{SECRET}", send: ["#"], receive: ["#"]}}
  bob: {{password: "{SECRET}", send: [rpc], receive: [rpc]}}
"""
CHANGED = 2
"""Exit code of `--detailed-exitcode` for a plan with steps."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    mesh = RunningMesh(TOPOLOGY, tmp_path_factory.mktemp("planned"))
    yield mesh
    mesh.down()


@contextmanager
def edited(mesh: RunningMesh, before: str, after: str) -> Iterator[None]:
    text = mesh.topology_file.read_text()
    assert before in text
    mesh.topology_file.write_text(text.replace(before, after))
    try:
        yield
    finally:
        mesh.topology_file.write_text(text)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def planned(mesh: RunningMesh, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, "plan", "-t", str(mesh.topology_file), *options],
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


def wait_planned(mesh: RunningMesh, *parts: str) -> str:
    """Until the plan has all parts: rings are written each second."""
    text = ""

    def says_all() -> bool:
        nonlocal text
        text = planned(mesh).stdout
        return all(part in text for part in parts)

    wait_until(says_all, COMMAND_S, f"a plan with {parts}")
    return text


def messages(mesh: RunningMesh, address: str) -> int:
    rows = [{**row, **row.get("queue", {})} for row in mesh.snapshot("b1")["node"]["queues"]]
    return sum(row["available_count"] for row in rows if row["address"] == address)


def test_a_file_as_it_was_has_no_steps_and_a_changed_one_has_another_exit_code(mesh: RunningMesh) -> None:
    same = planned(mesh, "--detailed-exitcode")
    assert (same.returncode, same.stdout) == (ExitCode.OK, "planned: no changes\n")
    with edited(mesh, "rpc: anycast", "rpc: multicast"):
        done = planned(mesh, "--detailed-exitcode")
        assert done.returncode == CHANGED
        assert "change address rpc: type anycast -> multicast" in done.stdout


def test_a_user_who_goes_has_as_many_connections_as_the_plan_says(mesh: RunningMesh) -> None:
    urls = [f"{mesh.url(router, 'bob:pencil')}/rpc" for router in ("r1", "r1", "r2")]
    clients = [subprocess.Popen([AMQPMESH, "receive", url, "-c", "1"], stdout=subprocess.DEVNULL) for url in urls]
    try:
        text = mesh.topology_file.read_text()
        bob = text[text.index("  bob:") :]
        with edited(mesh, bob, ""):
            wait_planned(mesh, "closes 3 connections of user bob at all routers")
        with edited(mesh, bob, bob.replace("receive:", "view:")):
            wait_planned(mesh, "ends 3 links of user bob at all routers")
    finally:
        for client in clients:
            client.kill()
            client.wait()


def test_a_queue_that_goes_loses_as_many_messages_as_it_has(mesh: RunningMesh) -> None:
    url = f"{mesh.url('r1', 'alice:pencil')}/orders"
    subprocess.run([AMQPMESH, "send", url, "-m", "x", "-c", "7"], timeout=COMMAND_S, check=True)
    assert messages(mesh, "orders") == 7
    with edited(mesh, "orders: queue", "orders: anycast"):
        done = planned(mesh)
        assert done.returncode == ExitCode.DATA_LOSS
        assert "loses 7 messages" in done.stdout
        assert planned(mesh, "--allow-data-loss", "orders").returncode == ExitCode.OK
        assert planned(mesh, "--allow-data-loss", "oders").returncode == ExitCode.USAGE
    with edited(mesh, "empty: queue", "empty: anycast"):
        done = planned(mesh)
        assert (done.returncode, "loses" in done.stdout) == (ExitCode.OK, False)


def test_a_frozen_broker_never_counts_as_empty(mesh: RunningMesh) -> None:
    with edited(mesh, "empty: queue", "empty: anycast"), stopped(mesh.pid("b1")):
        done = planned(mesh)
        assert done.returncode == ExitCode.DATA_LOSS
        assert "loses messages: how many is unknown, b1 does not answer" in done.stdout
    with edited(mesh, "empty: queue", "empty: anycast"):
        wait_until(lambda: planned(mesh).returncode == ExitCode.OK, COMMAND_S, "b1 to answer again")


def test_a_dead_broker_is_said_to_be_dead_and_is_not_empty(mesh: RunningMesh) -> None:
    pid = mesh.pid("b1")
    with edited(mesh, "empty: queue", "empty: anycast"):
        # A supervisor that is stopped starts no other broker.
        with stopped(mesh.pid(SUPERVISOR)):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: mesh.snapshot("b1") is None, COMMAND_S, "the end of b1")
            text = wait_planned(mesh, "how many is unknown, b1 does not run")
            assert "--allow-data-loss empty" in text
            assert planned(mesh).returncode == ExitCode.DATA_LOSS
        wait_until(lambda: planned(mesh).returncode == ExitCode.OK, COMMAND_S, "b1 to run again")
    mesh.wait_linked()


def test_a_cost_that_was_set_is_drift_until_it_is_pulled_into_the_file(mesh: RunningMesh) -> None:
    file: Path = mesh.topology_file
    before = file.read_text()
    mesh.run("cost", "r1", "r2", "5")
    wait_planned(mesh, "planned: no changes", "cost of r2 - r1: 5, declared 1; `amqpmesh cost r2 r1 1` sets it back")
    assert "{to: r1, cost: 5}" in mesh.run("pull", "--dry-run")
    assert file.read_text() == before
    mesh.run("pull")
    assert file.read_text() == before.replace("- r1\n", "- {to: r1, cost: 5}\n")
    text = planned(mesh).stdout
    assert "change connection r1 - r2: cost 1 -> 5" in text
    assert "drift" not in text
    file.write_text(before)
    mesh.run("cost", "r1", "r2", "1")
    wait_until(lambda: planned(mesh).stdout == "planned: no changes\n", COMMAND_S, "the end of the drift")


def test_a_level_of_a_log_that_was_set_is_drift(mesh: RunningMesh) -> None:
    mesh.run("log-level", "r1", "router.routes", "debug")
    text = planned(mesh).stdout
    mesh.run("log-level", "r1", "info")
    assert "log level of router.routes at r1: debug, declared info; `amqpmesh log-level r1 info` sets it back" in text
    assert planned(mesh).stdout == "planned: no changes\n"


def test_up_on_a_changed_file_prints_what_plan_prints(mesh: RunningMesh) -> None:
    with edited(mesh, "rpc: anycast", "rpc: multicast"):
        done = subprocess.run(
            [AMQPMESH, "up", "--detach", "-t", str(mesh.topology_file)],
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == ExitCode.FAILED
        assert all(line.strip() in done.stderr for line in planned(mesh).stdout.splitlines())
