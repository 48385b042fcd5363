"""Which server a client command talks to, and who it says it is."""

from pathlib import Path

import click
import pytest

from mesh.client.url import parse_url
from mesh.deploy.pid_file import PidFile
from mesh.deploy.server_lookup import find_server
from mesh.deploy.workdir import WorkDir
from mesh.terminal.connection_options import ConnectionRequest
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.topology_file import TopologyInvalid

TOPOLOGY = "mesh: m\nrouters: {r1: {}, r2: {listeners: [{host: 0.0.0.0, port: 7000}, {port: 7001, tls: true}]}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AMQPMESH_PASSWORD", raising=False)
    return tmp_path


def request(url: str, **options: object) -> ConnectionRequest:
    fields: dict[str, object] = {
        "topology_path": None,
        "user": None,
        "password_file": None,
        "ca": None,
        "cert": None,
        "key": None,
        "is_insecure": False,
        "mechanisms": None,
    }
    return ConnectionRequest(url=parse_url(url), **(fields | options))  # type: ignore[arg-type]


def where(url: str, **options: object) -> tuple[str, int, bool]:
    server = find_server(request(url, **options))
    return server.host, server.port, server.tls is not None


def test_without_a_mesh_nearby_it_is_this_machine_at_the_usual_port() -> None:
    assert where("orders") == ("localhost", 5672, False)
    assert where("amqps:orders") == ("localhost", 5671, True)


def test_with_a_mesh_nearby_it_is_its_first_listener_of_that_kind(folder: Path) -> None:
    (folder / "amqpmesh.yml").write_text(TOPOLOGY)
    assert where("orders") == ("127.0.0.1", 7000, False)
    assert where("amqps:orders") == ("127.0.0.1", 7001, True)
    assert where("//elsewhere/orders") == ("elsewhere", 5672, False)


def test_a_topology_may_be_named_and_must_then_be_right(folder: Path) -> None:
    (folder / "x.yml").write_text(TOPOLOGY)
    assert where("orders", topology_path=folder / "x.yml") == ("127.0.0.1", 7000, False)
    (folder / "x.yml").write_text("mesh: [")
    with pytest.raises(TopologyInvalid):
        where("orders", topology_path=folder / "x.yml")


def test_a_wrong_topology_nearby_is_told_and_not_passed_by(folder: Path) -> None:
    (folder / "amqpmesh.yml").write_text("mesh: [")
    with pytest.raises(TopologyInvalid) as told:
        where("orders")
    assert told.value.exit_code == ExitCode.TOPOLOGY_INVALID
    assert "AM004" in told.value.message


def test_several_topologies_nearby_ask_for_a_choice(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / f"{name}.amqpmesh.yml").write_text(TOPOLOGY)
    with pytest.raises(TopologyInvalid, match="several topologies in this folder"):
        where("orders")


def test_who_names_a_server_does_not_need_the_topology_nearby(folder: Path) -> None:
    (folder / "amqpmesh.yml").write_text("mesh: [")
    assert where("//elsewhere/orders") == ("elsewhere", 5672, False)


def test_a_password_comes_from_the_url_then_a_file_then_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def login(url: str, **options: object) -> tuple[str | None, str | None]:
        sasl = find_server(request(url, **options)).sasl
        assert sasl is not None
        return sasl.user, sasl.password

    (folder / "secret").write_text("from file\nmore")
    monkeypatch.setenv("AMQPMESH_PASSWORD", "from environment")
    file = {"password_file": folder / "secret"}
    assert login("//u:from%20url@h/a", **file) == ("u", "from url")
    assert login("//u@h/a", **file) == ("u", "from file")
    assert login("//u@h/a") == ("u", "from environment")
    assert login("//u:from%20url@h/a", user="other") == ("other", "from environment")
    assert login("//h/a") == (None, None)
    assert login("//h/a", user="u", cert=None) == ("u", "from environment")


def test_a_password_without_a_user_is_refused() -> None:
    with pytest.raises(click.UsageError, match="expected a user for the password"):
        find_server(request("//:secret@h/a"))


def test_what_to_do_when_nobody_answers_depends_on_what_was_asked(folder: Path) -> None:
    assert "amqpmesh up --detach -t FILE" in (find_server(request("orders")).fix or "")
    assert find_server(request("//elsewhere/orders")).fix is None
    (folder / "amqpmesh.yml").write_text(TOPOLOGY)
    start = "m does not run here; start it with `amqpmesh up --detach`."
    for url in ("orders", "//localhost:7000/orders", "amqps://127.0.0.1:7001/orders"):
        assert find_server(request(url)).fix == start
    assert find_server(request("//elsewhere/orders")).fix is None
    (folder / "amqpmesh.yml").rename(folder / "x.yml")
    named = find_server(request("orders", topology_path=Path("x.yml"))).fix
    assert named == "m does not run here; start it with `amqpmesh up --detach -t x.yml`."


def test_while_the_mesh_runs_it_need_not_be_started(folder: Path) -> None:
    (folder / "amqpmesh.yml").write_text(TOPOLOGY)
    workdir = WorkDir(folder / ".amqpmesh" / "m")
    workdir.make()
    with PidFile(workdir.pid_file("r2")) as node:
        assert node.acquire()
        assert find_server(request("orders")).fix is None


def test_a_user_without_a_password_is_told_of(folder: Path) -> None:
    warning = find_server(request("//alice@elsewhere/orders")).warning
    assert warning is not None
    assert warning.startswith("note: alice has no password here, so the client logs in as anonymous")
    (folder / "amqpmesh.yml").write_text(TOPOLOGY)
    assert "alice has no password" in (find_server(request("orders", user="alice")).warning or "")
    assert find_server(request("//alice:secret@elsewhere/orders")).warning is None
    assert find_server(request("orders")).warning is None
