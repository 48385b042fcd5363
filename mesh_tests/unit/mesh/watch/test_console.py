"""The console's pages, their data, and the login, as requests to the observer."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest

from mesh.commands.cli import cli
from mesh.watch.console import PAGES, POLICY
from mesh.watch.login import ONCE_S, SESSION_S
from mesh_tests.unit.mesh.watch.console_host import PORT, TOKEN, ConsoleHost
from recording.entities import ENTITIES

BEARER = {"authorization": f"Bearer {TOKEN}"}
EVERY_PAGE = pytest.mark.parametrize("path", [page.path for page in PAGES])


def new_once(host: ConsoleHost) -> str:
    return str(host.ask("/login/once", "POST", **BEARER).content["path"]).removeprefix("/login#")


def log_in(host: ConsoleHost) -> str:
    """Return the cookie of a new session, as a browser sends it."""
    return host.ask("/login", "POST", {"once": new_once(host)}).headers["set-cookie"].partition(";")[0]


@EVERY_PAGE
def test_a_page_is_html_under_a_strict_policy(path: str) -> None:
    answer = ConsoleHost().ask(path)
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-frame-options"] == "DENY"


def test_the_policy_of_data_allows_nothing() -> None:
    assert ConsoleHost().ask("/console/map").headers["content-security-policy"].startswith("default-src 'none'; frame")


def test_every_file_that_a_page_names_is_there_and_local() -> None:
    host = ConsoleHost()
    named = set()
    for page in ("/", "/login"):
        named |= set(re.findall(r'(?:src|href)="(/console[^"]+)"', host.ask(page).body.decode()))
    folder = files("mesh.watch") / "page"
    for script in (file for file in folder.iterdir() if file.name.endswith(".js")):
        named |= {f"/console/page/{name}" for name in re.findall(r'from "\./([^"]+)"', script.read_text())}
    assert len(named) > 10
    assert {path: host.ask(path).status for path in named} == dict.fromkeys(named, 200)


def test_scripts_make_no_markup_from_text() -> None:
    for script in (file for file in (files("mesh.watch") / "page").iterdir() if file.name.endswith((".js", ".html"))):
        text = script.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|style=", text), (
            script
        )
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), script


@pytest.mark.parametrize("name", ["nothing.js", "../rest.py", "..%2frest.py", "__init__.py"])
def test_no_other_file_is_served(name: str) -> None:
    assert ConsoleHost().ask(f"/console/page/{name}").status == 404


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_the_command_of_a_page_is_one_that_amqpmesh_takes(page: object) -> None:
    told = {each["path"]: each["command"] for each in ConsoleHost().ask("/console/model").content["pages"]}
    program, name, *arguments = shlex.split(told[page.path])  # type: ignore[attr-defined]
    assert program == "amqpmesh"
    command = cli.get_command(cli.make_context("amqpmesh", ["help"], resilient_parsing=True), name)  # type: ignore[attr-defined]
    assert command.make_context(name, arguments).params


def test_the_model_has_every_field_with_its_meaning() -> None:
    entities = ConsoleHost().ask("/console/model").content["entities"]
    for entity in ENTITIES:
        assert [each["name"] for each in entities[entity.plural]] == list(entity.names)
    assert all(field["meaning"] for fields in entities.values() for field in fields)


def test_columns_that_the_scripts_show_are_fields_of_the_model() -> None:
    entities = ConsoleHost().ask("/console/model").content["entities"]
    script = (files("mesh.watch") / "page" / "lists.js").read_text()
    declared = dict(
        re.findall(r"^  (\w+): \[(.*)\],$", script.split("const COLUMNS = {")[1].split("};")[0], re.MULTILINE)
    )
    assert set(declared) == set(entities)
    for things, columns in declared.items():
        assert set(re.findall(r'"(\w+)"', columns)) <= {field["name"] for field in entities[things]}, things
    script = (files("mesh.watch") / "page" / "address.js").read_text()
    for name, things in (("PRODUCERS", "links"), ("CONSUMERS", "links"), ("QUEUES", "queues")):
        (columns,) = re.findall(rf"const {name} = \[(.*)\];", script)
        assert set(re.findall(r'"(\w+)"', columns)) <= {field["name"] for field in entities[things]}, name


def test_clients_are_grouped_by_user_and_container() -> None:
    host = ConsoleHost()
    host.start("r1")
    host.start("r2")
    for number, (node, user, container) in enumerate(
        [("r1", "alice", "web"), ("r2", "alice", "web"), ("r1", "alice", "cron"), ("r1", None, "web")], start=1
    ):
        host.connect(node, number, user, container)
    page = host.ask("/console/clients?sort=-connections&fields=user,container,nodes,connections&filter=connections>0")
    assert [(row["user"], row["container"], row["nodes"], row["connections"]) for row in page.content["items"]] == [
        ("alice", "web", "r1, r2", 2),
        ("anonymous", "web", "r1", 1),
        ("alice", "cron", "r1", 1),
    ]
    assert host.ask("/console/clients?filter=container=cron").content["matched"] == 1


def test_a_wrong_filter_of_clients_is_refused_with_what_is_allowed() -> None:
    answer = ConsoleHost().ask("/console/clients?filter=nothing=1")
    assert answer.status == 400
    assert "container" in answer.content["allowed"]


# Login
def test_without_users_the_console_needs_no_login() -> None:
    host = ConsoleHost()
    assert host.ask("/api/nodes").status == 200
    assert host.ask("/login/once", "POST").status == 401
    assert host.ask("/login/once", "POST", **BEARER).content["path"].startswith("/login#")


@EVERY_PAGE
def test_with_users_a_page_without_a_login_says_how_to_log_in(path: str) -> None:
    answer = ConsoleHost(token=TOKEN).ask(path)
    assert answer.status == 401
    assert b"amqpmesh console" in answer.body


@pytest.mark.parametrize(
    "path", ["/api", "/api/nodes", "/console/map", "/console/model", "/console/clients", "/console/page/map.js"]
)
def test_with_users_nothing_of_the_mesh_is_read_without_a_login(path: str) -> None:
    host = ConsoleHost(token=TOKEN)
    assert host.ask(path).status == 401
    assert host.ask(path, cookie=f"amqpmesh_{PORT}=1900000000.x.y").status == 401
    assert host.ask(path, cookie=log_in(host)).status == 200
    assert host.ask(path, **BEARER).status == 200


def test_a_one_time_token_is_for_one_login() -> None:
    host = ConsoleHost(token=TOKEN)
    once = new_once(host)
    assert host.ask("/login", "POST", {"once": once}).status == 200
    again = host.ask("/login", "POST", {"once": once})
    assert again.status == 403
    assert "set-cookie" not in again.headers
    assert "amqpmesh console" in again.content["error"]


def test_a_one_time_token_is_for_a_minute() -> None:
    host = ConsoleHost(token=TOKEN)
    once, other = new_once(host), new_once(host)
    host.model.utc_s += ONCE_S - 1
    assert host.ask("/login", "POST", {"once": once}).status == 200
    host.model.utc_s += 1
    assert host.ask("/login", "POST", {"once": other}).status == 403


def test_only_the_owner_gets_a_one_time_token() -> None:
    host = ConsoleHost(token=TOKEN)
    assert host.ask("/login/once", "POST").status == 401
    assert host.ask("/login/once", "POST", cookie=log_in(host)).status == 401
    assert host.ask("/login/once", "POST", cookie=log_in(host), sec_fetch_site="same-origin").status == 403
    assert host.ask("/login/once", "POST", authorization="Bearer wrong").status == 401
    assert host.ask("/login/once", "POST", origin="http://127.0.0.1:1", **BEARER).status == 403


def test_no_script_can_read_the_cookie_and_no_other_site_can_send_it() -> None:
    host = ConsoleHost(token=TOKEN)
    cookie = host.ask("/login", "POST", {"once": new_once(host)}).headers["set-cookie"].lower()
    assert {"httponly", "path=/", "samesite=strict"} <= {each.strip() for each in cookie.split(";")}
    assert TOKEN not in cookie


def test_a_session_changes_only_from_the_consoles_own_pages_and_ends() -> None:
    host = ConsoleHost(token=TOKEN)
    cookie = log_in(host)
    assert host.ask("/api/nodes", "POST", cookie=cookie).status == 401
    assert host.ask("/api/nodes", "POST", cookie=cookie, origin="http://127.0.0.1:8080").status == 403
    assert host.ask("/api/nodes", "POST", cookie=cookie, origin=f"http://127.0.0.1:{PORT}").status == 405
    assert host.ask("/api/nodes", "POST", cookie=cookie, sec_fetch_site="same-origin").status == 405
    host.model.utc_s += SESSION_S - 1
    assert host.ask("/api/nodes", cookie=cookie).status == 200
    host.model.utc_s += 1
    assert host.ask("/api/nodes", cookie=cookie).status == 401


@pytest.mark.parametrize(
    ("site", "status"), [("none", 200), ("same-origin", 200), ("same-site", 403), ("cross-site", 403), ("x", 401)]
)
def test_a_session_is_not_for_pages_of_other_ports_or_sites(site: str, status: int) -> None:
    host = ConsoleHost(token=TOKEN)
    assert host.ask("/api/nodes", cookie=log_in(host), sec_fetch_site=site).status == status


@pytest.mark.parametrize("others", ['theme={"a":1}', "a b=c", "\u00e9=1", "x", "=;", "path=/; $Version=1"])
def test_cookies_of_other_servers_do_not_end_a_session(others: str) -> None:
    host = ConsoleHost(token=TOKEN)
    cookie = log_in(host)
    assert host.ask("/api/nodes", cookie=f"{others}; {cookie}").status == 200
    assert host.ask("/api/nodes", cookie=f"{cookie}; {others}").status == 200
    name = cookie.partition("=")[0]
    assert host.ask("/api/nodes", cookie=f"{name}=old.session.x; {cookie}").status == 200


def test_a_session_outlives_the_observer_but_not_the_token() -> None:
    cookie = log_in(ConsoleHost(token=TOKEN))
    assert ConsoleHost(token=TOKEN).ask("/api/nodes", cookie=cookie).status == 200
    assert ConsoleHost(token="another-token").ask("/api/nodes", cookie=cookie).status == 401


@pytest.mark.parametrize(
    "cookie", ["", "=", "x", "x.y", "..", "9999999999..", "\u00e9.1.2", "9" * 5000, "nan.x.y", '"', "a;b"]
)
def test_a_cookie_that_is_no_session_is_a_401(cookie: str) -> None:
    host = ConsoleHost(token=TOKEN)
    assert host.ask("/api/nodes", cookie=f"amqpmesh_{PORT}={cookie}").status == 401


@pytest.mark.parametrize("change", [0, 5, -1])
def test_a_session_that_was_changed_is_none(change: int) -> None:
    host = ConsoleHost(token=TOKEN)
    name, _, session = log_in(host).partition("=")
    changed = list(session)
    changed[change] = "8" if changed[change] != "8" else "9"
    assert host.ask("/api/nodes", cookie=f"{name}={''.join(changed)}").status == 401


@pytest.mark.parametrize("body", [None, [], {}, {"once": 1}, {"once": None}, "x", {"once": "unknown"}])
def test_a_login_without_a_valid_token_is_refused_with_a_sentence(body: object) -> None:
    answer = ConsoleHost(token=TOKEN).ask("/login", "POST", body)
    assert answer.status in (400, 403)
    assert answer.content["error"]


def test_a_login_from_another_origin_is_refused_and_uses_nothing() -> None:
    host = ConsoleHost(token=TOKEN)
    once = new_once(host)
    assert host.ask("/login", "POST", {"once": once}, origin="http://127.0.0.1:8080").status == 403
    assert host.ask("/login", "POST", {"once": once}, origin=f"http://127.0.0.1:{PORT}").status == 200


def test_a_long_login_is_refused() -> None:
    assert ConsoleHost(token=TOKEN).ask("/login", "POST", {"once": "x" * 10_000}).status == 413


def test_another_host_name_is_refused_for_pages_too() -> None:
    assert ConsoleHost().ask("/", host="console.example.com").status == 421


def test_the_page_files_are_in_the_package() -> None:
    config = (Path(__file__).parents[4] / "setup.cfg").read_text()
    assert "mesh.watch = page/*" in config
