"""Who is let in, and what each sees: passwords with few tries, sessions of users, rows by right."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.datastructures import Headers

from addressing.operator_rights import Operator, Right
from addressing.topology.credentials import make_secret, parse_secret
from mesh.watch import password_login
from mesh.watch.operator_views import MAX_BROWSES_OF_ONE
from mesh.watch.password_login import (
    MAX_CHECKS,
    MAX_CHECKS_OF_SOURCE,
    RIGHT_S,
    SOURCE_TRIES,
    TRIES,
    TRY_S,
    PasswordLogin,
    PasswordResult,
)
from mesh.watch.request_source import request_source
from mesh.watch.visible_rows import VisibleRows
from mesh.watch.write_operations import WRITES, WriteOperation
from mesh.watch.writes import MAX_AT_ONCE_OF_ONE
from mesh_tests.unit.mesh.watch.console_host import PORT
from mesh_tests.unit.mesh.watch.sample_host import SampleHost, attach, connect
from mesh_tests.unit.mesh.watch.test_writes import BODIES, filled, path_of
from mesh_tests.unit.mesh.watch.writing_host import PASSWORD, URL, WritingHost
from recording.entities import ADDRESS, LINK
from wire.sasl.authenticator import Authenticator, PasswordCheck

HERE = "this host"
RIGHT, WRONG, LIMITED, BUSY = (
    PasswordResult.RIGHT, PasswordResult.WRONG, PasswordResult.LIMITED, PasswordResult.BUSY
)  # fmt: skip


@pytest.fixture
def host(tmp_path: Path) -> WritingHost:
    return filled(tmp_path)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def passwords(clock: Clock) -> PasswordLogin:
    secret = parse_secret(make_secret("hers", iterations=4096))
    return PasswordLogin(Authenticator({"alice": secret, "bob": secret}), clock)


# Passwords
def test_a_wrong_password_costs_a_try_and_a_right_one_none() -> None:
    async def run() -> None:
        clock = Clock()
        login = passwords(clock)
        for _ in range(3 * TRIES):
            assert await login.check("bob", "hers", HERE) is RIGHT
            clock.now += RIGHT_S
        for _ in range(TRIES):
            assert await login.check("alice", "wrong", HERE) is WRONG
        assert await login.check("alice", "hers", HERE) is LIMITED
        assert await login.check("bob", "hers", HERE) is RIGHT
        clock.now += TRY_S
        assert await login.check("alice", "hers", HERE) is RIGHT

    asyncio.run(run())


def test_wrong_passwords_shut_out_nobody_elsewhere_and_nobody_who_was_right_before() -> None:
    async def run() -> None:
        clock = Clock()
        login = passwords(clock)
        assert await login.check("bob", "hers", HERE) is RIGHT
        clock.now += RIGHT_S
        for number in range(SOURCE_TRIES + TRIES):
            await login.check(("alice", "bob", f"nobody{number}")[number % 3], "wrong", HERE)
        assert await login.check("alice", "hers", HERE) is LIMITED
        assert await login.check("alice", "hers", "192.0.2.7") is RIGHT
        assert await login.check("bob", "hers", HERE) is RIGHT
        # To know the password of another user, or another one of this user, helps nobody to guess.
        assert await login.check("bob", "hers2", HERE) is LIMITED

    asyncio.run(run())


def test_a_right_password_is_not_checked_again_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    monkeypatch.setattr(PasswordCheck, "is_right", lambda self: checked.append(self.user) or self.password == "hers")

    async def run() -> None:
        clock = Clock()
        login = passwords(clock)
        for _ in range(5):
            assert await login.check("alice", "hers", HERE) is RIGHT
        assert checked == ["alice"]
        # The time of a password that is not remembered says nothing about a password that is.
        assert await login.check("alice", "hers2", HERE) is WRONG
        clock.now += RIGHT_S
        assert await login.check("alice", "hers", HERE) is RIGHT
        assert checked == ["alice"] * 3

    asyncio.run(run())


def test_tries_at_the_same_moment_all_count_and_so_many_wait() -> None:
    async def run() -> None:
        login = passwords(Clock())
        found = await asyncio.gather(*(login.check("alice", f"wrong{number}", HERE) for number in range(20)))
        assert (found.count(WRONG), found.count(LIMITED)) == (TRIES, 20 - TRIES)
        names = await asyncio.gather(*(login.check(f"nobody{number}", "x", HERE) for number in range(40)))
        assert (names.count(WRONG), names.count(BUSY)) == (MAX_CHECKS_OF_SOURCE, 40 - MAX_CHECKS_OF_SOURCE)
        places = await asyncio.gather(*(login.check("alice", "x", f"192.0.2.{number}") for number in range(40)))
        assert (places.count(WRONG), places.count(BUSY)) == (MAX_CHECKS, 40 - MAX_CHECKS)

    asyncio.run(run())


def test_names_that_nobody_has_are_limited_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PasswordCheck, "is_right", lambda self: False)

    async def run() -> None:
        login = passwords(Clock())
        found = [await login.check(f"nobody{number}", "x", HERE) for number in range(100)]
        assert found.count(WRONG) == SOURCE_TRIES

    asyncio.run(run())


def test_what_is_counted_of_passwords_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PasswordCheck, "is_right", lambda self: self.password == "hers")
    monkeypatch.setattr(password_login, "MAX_COUNTED", 100)
    monkeypatch.setattr(password_login, "MAX_RIGHT", 3)

    async def run() -> None:
        login = passwords(Clock())
        for number in range(300):
            await login.check("x" * 1000 + str(number), ("hers", "x")[number % 2], f"192.0.2.{number}")
        assert (len(login._buckets), len(login._right_until), len(login._checks)) == (100, 3, 0)
        assert all(len(key) == 32 for key in (*login._buckets, *login._right_until))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("forwarded", "name"),
    [
        (None, "this host"), ("192.0.2.7", "192.0.2.7"), ("10.0.0.1, 192.0.2.7", "192.0.2.7"), ("::1", "this host"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"), ("2001:db8:1:2:ff::", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"), ("127.9.9.9", "this host"), ("<b>", "this host"), ("", "this host"),
        ("x" * 60_000, "this host"), ("192.0.2.7, unknown", "this host"), ("192.0.2.7:80", "this host"),
    ],
)  # fmt: skip
def test_a_proxy_of_this_host_says_where_a_request_comes_from(forwarded: str | None, name: str) -> None:
    for peer in ("127.0.0.1", "127.1.2.3"):
        headers = Headers({} if forwarded is None else {"x-forwarded-for": forwarded})
        found = request_source({"type": "http", "client": (peer, 4242)}, headers)
        assert found.name == name
        assert found.peer.endswith(f"{peer}:4242")
        assert len(found.peer) < 80
        assert (" by the proxy at " in found.peer) == (name != "this host" or forwarded in ("::1", "127.9.9.9"))


def test_the_last_header_of_a_proxy_holds_and_not_one_of_its_client() -> None:
    headers = Headers(raw=[(b"x-forwarded-for", b"10.0.0.1"), (b"x-forwarded-for", b"192.0.2.7")])
    assert request_source({"type": "http", "client": ("127.0.0.1", 1)}, headers).name == "192.0.2.7"


def test_basic_lets_a_user_in_and_nothing_else(host: WritingHost) -> None:
    assert host.ask("GET", "/api/me", "oncall").json()["user"] == "oncall"
    for given in ("Basic", "Basic x", "Basic eA==", "Basic " + "A" * 60_000, "Digest x", "Bearer x", "Basic w6k="):
        answer = host.client.get("/api/me", headers={"authorization": given})
        assert answer.status_code == 401, given[:80]
        assert "Basic" in answer.headers["www-authenticate"]
    assert host.client.get("/api/me", auth=("oncall", "wrong")).status_code == 401
    assert host.client.get("/api/me", auth=("stranger", PASSWORD)).status_code == 401


def test_too_many_wrong_passwords_are_a_429_that_says_when_to_try_again(host: WritingHost) -> None:
    answers = [host.client.get("/api/me", auth=("oncall", f"wrong{number}")) for number in range(TRIES + 1)]
    assert [each.status_code for each in answers] == [401] * TRIES + [429]
    assert answers[-1].headers["retry-after"] == "10"


def test_too_many_wrong_passwords_from_one_address_shut_out_no_other_one(host: WritingHost) -> None:
    for number in range(TRIES):
        host.client.get("/api/me", auth=("oncall", f"x{number}"), headers={"x-forwarded-for": "192.0.2.7"})
    for address, status in (("192.0.2.7", 429), ("192.0.2.8", 200)):
        headers = {"x-forwarded-for": address}
        assert host.client.get("/api/me", auth=("oncall", PASSWORD), headers=headers).status_code == status
        login = {"user": "oncall", "password": "wrong" if status == 429 else PASSWORD}
        assert host.client.post("/login", json=login, headers=headers).status_code == status


def test_a_browser_is_asked_for_no_password_of_its_own(host: WritingHost) -> None:
    answer = host.client.get("/api/me", headers={"sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


# Sessions
def session(host: WritingHost, user: str) -> dict[str, str]:
    answer = host.client.post("/login", json={"user": user, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    host.client.cookies.clear()
    return {"cookie": answer.headers["set-cookie"].partition(";")[0], "sec-fetch-site": "same-origin"}


def test_a_session_of_a_user_has_his_rights(host: WritingHost) -> None:
    headers = session(host, "keeper")
    assert host.client.get("/api/me", headers=headers).json()["user"] == "keeper"
    assert host.write("/api/queues/b1/1/purge", {"up_to": 1}, None, **headers).status_code == 200
    assert host.write("/api/links/r1/10/close", {"reason": "x"}, None, **headers).status_code == 403
    assert host.audited()[-1]["login"] == "session"


OTHER_PAGES = (
    {"origin": "null"},
    {"origin": f"http://127.0.0.1:{PORT + 1}"},
    {"origin": "http://localhost:15680"},
    {"origin": "https://127.0.0.1:15680"},
    {"origin": "http://evil.example"},
    {"origin": ""},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "origin": URL},
    {"sec-fetch-site": "same-origin", "origin": "http://evil.example"},
    {"sec-fetch-site": "x"},
)


@pytest.mark.parametrize("login", ["session", "password", "token"])
@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_a_page_of_another_origin_changes_nothing_by_any_login(
    host: WritingHost, login: str, operation: WriteOperation
) -> None:
    headers = session(host, "admin") if login == "session" else {}
    user = {"session": None, "password": "admin", "token": "owner"}[login]
    for page in OTHER_PAGES:
        named = {**headers, **page}
        answer = host.write(path_of(operation), BODIES[operation.name], user, method=operation.method, **named)
        assert answer.status_code == 403, page
        assert "page of another" in answer.json()["error"]
    assert host.requests.asked == []


@pytest.mark.parametrize("page", [{}, {"origin": URL}, {"sec-fetch-site": "same-origin", "origin": URL}], ids=str)
def test_a_password_changes_what_it_may_from_a_program_and_from_the_console(
    host: WritingHost, page: dict[str, str]
) -> None:
    assert host.write("/api/queues/b1/1/purge", {"up_to": 1}, "keeper", **page).status_code == 200


@pytest.mark.parametrize("path", ["/login", "/logout", "/login/once"])
def test_a_page_of_another_origin_logs_nobody_in_or_out(host: WritingHost, path: str) -> None:
    for page in OTHER_PAGES:
        answer = host.client.post(path, json={"user": "keeper", "password": PASSWORD}, headers=page)
        assert answer.status_code == 403, page
        assert "set-cookie" not in answer.headers


def test_a_browser_that_does_not_name_the_site_has_to_name_the_origin(host: WritingHost) -> None:
    headers = session(host, "keeper")
    del headers["sec-fetch-site"]
    for origin, status in ((None, 401), ("null", 403), ("http://127.0.0.1:1", 403), (URL, 200)):
        more = {} if origin is None else {"origin": origin}
        answer = host.write("/api/queues/b1/1/purge", {"up_to": 1}, None, **headers, **more)
        assert answer.status_code == status, origin


def test_a_session_of_a_user_ends_with_the_user_or_the_password(tmp_path: Path) -> None:
    headers = session(filled(tmp_path), "keeper")
    secret = make_secret("other", iterations=4096)
    for users, status in (
        (f"\nusers:\n  keeper: {{password: '{secret}', manage: ['#']}}\n", 401),
        (f"\nusers:\n  other: {{password: '{secret}', manage: ['#']}}\n", 401),
    ):
        assert filled(tmp_path, users).client.get("/api/me", headers=headers).status_code == status
    assert filled(tmp_path).client.get("/api/me", headers=headers).status_code == 200


@pytest.mark.parametrize("body", [{"user": "keeper"}, {"user": "keeper", "password": 1}, {"user": [], "password": ""}])
def test_a_login_without_a_password_is_refused(host: WritingHost, body: Any) -> None:
    assert host.client.post("/login", json=body).status_code == 400


def test_a_wrong_password_and_an_unknown_user_are_refused_alike(host: WritingHost) -> None:
    answers = [host.client.post("/login", json={"user": user, "password": "wrong"}) for user in ("keeper", "stranger")]
    assert [each.status_code for each in answers] == [403, 403]
    assert answers[0].text == answers[1].text
    assert "set-cookie" not in answers[0].headers


def test_a_logout_ends_the_cookie(host: WritingHost) -> None:
    answer = host.client.post("/logout", headers=session(host, "keeper"))
    assert answer.status_code == 200
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert host.client.post("/logout", headers={"origin": f"http://127.0.0.1:{PORT + 1}"}).status_code in (401, 403)


# Rows
SEEN = {
    "owner": {"queues": {"b1/1", "b1/2", "b1/3"}, "links": {"r1/10", "r1/20"}, "connections": {"r1/1", "r1/2"},
              "users": {"viewer", "oncall"}},
    "viewer": {"queues": {"b1/1"}, "links": {"r1/10"}, "connections": {"r1/1"}, "users": {"viewer"}},
    "keeper": {"queues": {"b1/1"}, "links": {"r1/10"}, "connections": set(), "users": set()},
}  # fmt: skip
SEEN["admin"] = SEEN["oncall"] = SEEN["owner"]
SEEN["browser"] = SEEN["keeper"]


@pytest.mark.parametrize("user", SEEN)
def test_each_sees_the_rows_of_his_rights_alone_in_lists_and_one_by_one(host: WritingHost, user: str) -> None:
    for things, expected in SEEN[user].items():
        page = host.ask("GET", f"/api/{things}", user).json()
        assert {item["id"] for item in page["items"]} == expected, things
        assert page["total"] == len(expected)
        for id_ in SEEN["owner"][things]:
            assert host.ask("GET", f"/api/{things}/{id_}", user).status_code == (200 if id_ in expected else 404)
    for things in ("nodes", "neighbors"):
        assert host.ask("GET", f"/api/{things}", user).json()["total"] > 0


def test_a_pattern_that_covers_a_declared_one_shows_its_addresses_and_no_others() -> None:
    host = SampleHost(
        {"orders.#": "queue", "#": "queue"}, lambda name: "orders.#" if name.startswith("orders") else "#"
    )
    run = host.node("r1")
    connect(run, 1, "bob")
    addresses = ["orders", "orders.eu", "orders.us", "rpc", "orders.eu.1"]
    for number, address in enumerate(addresses):
        attach(run, number, "producer", address)

    def seen(*patterns: str) -> set[str]:
        operator = Operator("alice", {Right.VIEW: patterns})
        rows = VisibleRows(host.model, operator, lambda broker, name: name)
        found = {state.address for state in rows.states(ADDRESS)}
        assert {link.address_text for link in rows.states(LINK)} == found
        assert found == {address for address in addresses if operator.may_view(address)}
        return found

    assert seen("orders.#") == {"orders", "orders.eu", "orders.us", "orders.eu.1"}
    assert seen("orders.*") == {"orders.eu", "orders.us"}
    assert seen("orders.eu.#", "rpc") == {"orders.eu", "orders.eu.1", "rpc"}


@pytest.mark.parametrize("user", ["viewer", "keeper", "oncall"])
def test_metrics_in_detail_are_those_of_the_rows(host: WritingHost, user: str) -> None:
    text = host.ask("GET", "/metrics/detailed?family=queue", user).text
    assert ('address="orders"' in text, 'address="news.#"' in text) == (True, user == "oncall")


@pytest.mark.parametrize("user", ["viewer", "keeper", "oncall"])
def test_the_map_and_the_clients_show_no_more_than_the_rows(host: WritingHost, user: str) -> None:
    drawn = host.ask("GET", "/console/map", user).json()
    shown = {box["user"] for box in drawn["boxes"] if box["kind"] == "clients"}
    clients = {each["user"] for each in host.ask("GET", "/console/clients", user).json()["items"]}
    assert shown == clients == SEEN[user]["users"]


def test_a_user_without_rights_sees_nothing(host: WritingHost) -> None:
    for path in ("/api/nodes", "/api/queues", "/api/stream?entity=links", "/metrics", "/readyz", "/console/map", "/"):
        answer = host.ask("GET", path, "nobody")
        assert answer.status_code == 403, path
        assert "gives none of view, browse and manage" in answer.json()["error"]


def test_a_stream_has_the_rows_of_the_requester(host: WritingHost, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = host.host.states

    def states(entity: Any) -> Any:
        asked.append(entity.plural)
        host.stopping.set()
        return original(entity)

    monkeypatch.setattr(host.host, "states", states)
    text = host.ask("GET", "/api/stream?entity=queues&fields=address", "viewer").text
    assert asked == ["queues"]
    assert '"address": "orders"' in text
    assert "news" not in text


# Shares
def test_a_user_has_not_all_pages_of_messages_and_not_all_changes(host: WritingHost) -> None:
    async def run() -> None:
        release = asyncio.Event()
        original = host.requests.ask_broker

        async def wait(*arguments: Any) -> None:
            await release.wait()
            await original(*arguments)

        host.requests.ask_broker = wait  # type: ignore[method-assign]
        transport = httpx2.ASGITransport(app=host.app)
        async with httpx2.AsyncClient(transport=transport, base_url=URL) as client:

            async def browse(user: str) -> int:
                answer = await client.get("/api/queues/b1/1/messages", auth=(user, PASSWORD))
                return int(answer.status_code)

            async def purge(user: str, number: int) -> int:
                headers = {"idempotency-key": f"{user}-{number}"}
                answer = await client.post(
                    "/api/queues/b1/1/purge", json={"up_to": 1}, headers=headers, auth=(user, PASSWORD)
                )
                return int(answer.status_code)

            for user in ("admin", "keeper"):
                assert (await client.get("/api/me", auth=(user, PASSWORD))).status_code == 200
            tasks = [asyncio.create_task(browse("admin")) for _ in range(MAX_BROWSES_OF_ONE + 3)]
            tasks += [asyncio.create_task(purge("admin", number)) for number in range(MAX_AT_ONCE_OF_ONE + 2)]
            refused, _ = await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED, timeout=1)
            assert sorted(task.result() for task in refused) == [429] * 5
            others = [asyncio.create_task(browse("keeper")), asyncio.create_task(purge("keeper", 1))]
            release.set()
            assert await asyncio.gather(*others) == [200, 200]
            found = await asyncio.gather(*tasks)
            assert (found.count(200), found.count(429)) == (MAX_BROWSES_OF_ONE + MAX_AT_ONCE_OF_ONE, 5)
            assert await browse("admin") == 200

    asyncio.run(run())
