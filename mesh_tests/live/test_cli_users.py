"""Users of a mesh, from `amqpmesh user add` to what they may send."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from addressing.topology.loader import load_topology
from mesh.terminal.exit_codes import ExitCode
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import AMQPMESH

COMMAND_S = 60.0
PASSWORD = "correct horse"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [AMQPMESH, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )


@pytest.fixture(scope="module")
def tls_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tls_port: int) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("users")
    (folder / "amqpmesh.yml").write_text(
        "mesh: users  # a comment that stays\n"
        f"routers: {{r1: {{port: {free_port()}, listeners: [{free_port()}, {{port: {tls_port}, tls: true}}]}}}}\n"
        f"brokers: {{b1: {{data: ./data, port: {free_port()}}}}}\n"
        'addresses: {"#": queue}\n'
    )
    secret = {"AMQPMESH_PASSWORD": PASSWORD}
    run(folder, "user", "add", "alice", "--send", "orders.#", "--receive", "${user}.#", **secret)
    run(folder, "user", "add", "carol", "--no-password", "--send", "#", "--receive", "#")
    up = run(folder, "up", "--detach")
    assert up.returncode == ExitCode.OK, up.stderr
    yield folder
    assert run(folder, "down").returncode == ExitCode.OK


def test_the_command_writes_each_right_with_the_patterns_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "amqpmesh.yml").write_text("mesh: m\nrouters: {r1: }\n")
    rights = ["--view", "#", "--browse", "a.#", "--browse", "b", "--manage", "c"]
    assert run(tmp_path, "user", "add", "oncall", "--no-password", *rights).returncode == ExitCode.OK
    user = load_topology(tmp_path / "amqpmesh.yml").users["oncall"]
    assert (user.view, user.browse, user.manage) == (("#",), ("a.#", "b"), ("c",))


def test_the_topology_keeps_its_comments_and_no_password(folder: Path) -> None:
    text = (folder / "amqpmesh.yml").read_text()
    assert "# a comment that stays" in text
    assert PASSWORD not in text


@pytest.mark.parametrize("mechanism", ["plain", "SCRAM-SHA-256"])
def test_a_user_logs_in_by_password(folder: Path, mechanism: str) -> None:
    options = ["-u", "alice", "--sasl-mechanism", mechanism]
    sent = run(folder, "send", "orders.1", "-m", "x", *options, AMQPMESH_PASSWORD=PASSWORD)
    assert sent.stdout == "sent 1  accepted 1\n", sent.stderr


def test_a_password_may_be_in_a_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(PASSWORD + "\n")
    sent = run(folder, "send", "orders.1", "-m", "x", "-u", "alice", "--password-file", str(tmp_path / "secret"))
    assert sent.returncode == ExitCode.OK, sent.stderr


@pytest.mark.parametrize("arguments", [["-u", "alice"], []])
def test_a_wrong_password_or_none_does_not_get_in(folder: Path, arguments: list[str]) -> None:
    sent = run(folder, "send", "orders.1", "-m", "x", *arguments, AMQPMESH_PASSWORD="wrong")
    assert sent.returncode == ExitCode.UNREACHABLE
    assert "wrong" not in sent.stderr
    assert sent.stdout == ""


@pytest.mark.parametrize(("command", "address"), [("send", "news"), ("receive", "bob.inbox")])
def test_what_a_user_may_not_do_is_refused_with_the_condition(folder: Path, command: str, address: str) -> None:
    more = ["-m", "x"] if command == "send" else ["-c", "1"]
    result = run(folder, command, address, *more, "-u", "alice", "--json", AMQPMESH_PASSWORD=PASSWORD)
    assert result.returncode == ExitCode.FAILED
    assert json.loads(result.stdout)["error"]["code"] == "amqp:unauthorized-access"


def test_a_certificate_that_the_mesh_issued_is_a_login(folder: Path, tls_port: int) -> None:
    assert run(folder, "certs", "issue", "carol").returncode == ExitCode.OK
    (folder / "carol.pem").write_text(run(folder, "certs", "export", "carol").stdout)
    url = f"amqps://127.0.0.1:{tls_port}/news"
    sent = run(folder, "send", url, "-m", "x", "--cert", "carol.pem", "--sasl-mechanism", "EXTERNAL")
    assert sent.stdout == "sent 1  accepted 1\n", sent.stderr
