"""The console of a mesh of processes: its URL, its login, and a node that is killed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from addressing.topology.credentials import make_secret
from mesh.deploy.pid_file import PidFile
from mesh.deploy.workdir import WorkDir
from mesh_tests.ports import free_port
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

SOON_S = 30.0
USERS = f"""
users:
  alice: {{password: "{make_secret("secret", iterations=4096)}", send: [orders], receive: [orders]}}
"""


def topology(users: str = "") -> str:
    return (
        f"mesh: shop\nwatch: {free_port()}\n"
        "routers:\n  r1: {connect: [r2]}\n  r2: {}\n"
        "brokers:\n  b1: {routers: [r2]}\n"
        f"addresses: {{orders: queue, rpc.#: anycast}}\n{users}"
    )


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    running = RunningMesh(topology(), tmp_path_factory.mktemp("console"))
    yield running
    running.down()


@pytest.fixture
def mesh_with_users(tmp_path: Path) -> Iterator[RunningMesh]:
    running = RunningMesh(topology(USERS), tmp_path)
    yield running
    running.down()


def ask(url: str, **headers: str) -> Any:
    with urlopen(Request(url, headers=headers), timeout=SOON_S) as answer:
        return json.load(answer)


def status(url: str, body: Any = None, **headers: str) -> int:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, headers), timeout=SOON_S) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def base_of(mesh: RunningMesh) -> str:
    parts = urlsplit(mesh.run("console").strip())
    assert (parts.path, bool(parts.fragment)) == ("/login", True)
    return f"{parts.scheme}://{parts.netloc}"


def test_the_url_of_the_console_logs_its_owner_in(mesh: RunningMesh) -> None:
    url = json.loads(mesh.run("console", "--json"))["url"]
    with urlopen(url, timeout=SOON_S) as answer:
        assert b"/console/page/login.js" in answer.read()
    base, once = url.partition("/login#")[::2]
    login = Request(f"{base}/login", json.dumps({"once": once}).encode())
    with urlopen(login, timeout=SOON_S) as answer:
        cookie = answer.headers["set-cookie"].partition(";")[0]
    assert ask(f"{base}/api/me", Cookie=cookie)["is_owner"] is True


def test_without_users_everybody_looks_and_needs_a_login_to_change(mesh: RunningMesh) -> None:
    base = base_of(mesh)
    with urlopen(f"{base}/", timeout=SOON_S) as answer:
        assert b"/console/page/console.js" in answer.read()
    assert ask(f"{base}/api/me")["is_owner"] is False
    assert status(f"{base}/api/neighbors/r1/r2/cost", {"cost": 3}) == 401


def test_each_command_of_a_page_runs(mesh: RunningMesh) -> None:
    pages = ask(base_of(mesh) + "/console/model")["pages"]
    for command in {page["command"] for page in pages}:
        _, *arguments = shlex.split(command)
        assert arguments[-2:] == ["-t", str(mesh.topology_file)]
        assert "r1" in mesh.run(*arguments[:-2])


def test_a_killed_node_is_lost_and_its_neighbor_missing(mesh: RunningMesh) -> None:
    url = base_of(mesh) + "/console/map"

    def troubles() -> set[tuple[str, str]]:
        return {(each["kind"], each["subject"]) for each in ask(url)["troubles"]}

    wait_until(lambda: not troubles(), SOON_S, "nothing to be wrong")
    hold = PidFile(WorkDir(mesh.topology_file.parent / ".amqpmesh" / "shop").hold_file("r1"))
    with hold:
        assert hold.acquire()
        mesh.kill("r1")
        wait_until(lambda: {("lost", "r1"), ("missing", "r1 - r2")} <= troubles(), SOON_S, "r1 to be lost")

        def states() -> dict[str, str]:
            return {box["name"]: box["state"] for box in ask(url)["boxes"] if "name" in box}

        # On a busy machine, another node may be silent for a moment.
        wait_until(lambda: states() == {"r1": "lost", "r2": "running", "b1": "running"}, SOON_S, "r1 to be lost alone")
    wait_until(lambda: not troubles(), SOON_S, "r1 to be back")


def test_with_users_only_the_owner_logs_in_and_once(mesh_with_users: RunningMesh) -> None:
    parts = urlsplit(mesh_with_users.run("console").strip())
    base, once = f"{parts.scheme}://{parts.netloc}", parts.fragment
    assert parts.path == "/login"
    assert [status(base + path) for path in ("/", "/api/nodes", "/console/map")] == [401] * 3
    assert status(f"{base}/login/once", {}) == 401
    assert status(f"{base}/login", {"once": once}) == 200
    assert status(f"{base}/login", {"once": once}) == 403
    written = mesh_with_users.log_file("_watch").read_text()
    assert once not in written


def test_without_an_observer_the_command_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "amqpmesh.yml"
    running = RunningMesh("mesh: shop\nrouters: {r1: {}}\naddresses: {rpc: anycast}\n", tmp_path)
    try:
        assert file.exists()
        said = running.run("console", "--json", is_checked=False)
    finally:
        running.down()
    error = json.loads(said)["error"]
    assert error["message"] == "no observer of mesh shop runs on this host"
    assert error["exit_code"] == 69
    assert "amqpmesh watch" in error["fix"]
