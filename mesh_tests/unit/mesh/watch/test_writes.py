"""Changes over HTTP: what each asks of the nodes, who may, what a dry run and a second request with the key do."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mesh.client.errors import TimedOut, Unreachable
from mesh.deploy.control import RequestRefused
from mesh.terminal.failure import CommandFailed
from mesh.watch.idempotency import KEPT_S, WriteKeys
from mesh.watch.queue_writes import joined
from mesh.watch.write_operations import WRITES, NeededRight, WriteOperation
from mesh_tests.unit.mesh.watch.sample_host import attach, connect, hear, queue
from mesh_tests.unit.mesh.watch.writing_host import BEARER, TOKEN, URL, WritingHost
from recording.entities import ADDRESS, CONNECTION, LINK, NEIGHBOR, NODE, QUEUE
from wire.message import decode

IDS = {QUEUE: "b1/1", CONNECTION: "r1/1", LINK: "r1/10", NEIGHBOR: "r1/r2", NODE: "r1", ADDRESS: "orders"}
BODIES: dict[str, dict[str, Any]] = {
    "purge": {"up_to": 20},
    "remove": {"numbers": [3, 5]},
    "move": {"target": "orders.dead", "up_to": 20},
    "redrive": {"to": "orders"},
    "send": {"message": {"subject": "paid", "body": {"kind": "text", "text": "hello"}}},
    "delete": {"force": True},
    "close-connection": {"reason": "it is stuck"},
    "trace": {"seconds": 30},
    "close-link": {"reason": "it is stuck"},
    "cost": {"cost": 7},
    "log-level": {"module": "router.routes", "level": "debug"},
    "record": {"seconds": 30},
}
OPERATION = pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)


def path_of(operation: WriteOperation, id_: str | None = None) -> str:
    return operation.path.replace("{id}", id_ or IDS[operation.entity])


def filled(folder: Path, users: str | None = None) -> WritingHost:
    host = WritingHost(folder) if users is None else WritingHost(folder, users)
    r1, r2, b1 = host.sample.node("r1"), host.sample.node("r2"), host.sample.node("b1", "broker")
    hear(r1, "r2", 3)
    hear(r2, "r1", 3)
    connect(r1, 1, "viewer")
    attach(r1, 10, "producer", "orders")
    connect(r1, 2, "oncall")
    attach(r1, 20, "consumer", "rpc", connection=2)
    queue(b1, 1, "orders", depth=12)
    queue(b1, 2, "its.name.there", depth=5)
    queue(b1, 3, "news.#")
    return host


@pytest.fixture
def host(tmp_path: Path) -> WritingHost:
    return filled(tmp_path)


def asked_for(operation: WriteOperation, host: WritingHost, user: str | None = "owner", **more: str) -> Any:
    return host.write(path_of(operation), BODIES[operation.name], user, method=operation.method, **more)


# What is asked of the nodes
def test_each_change_is_asked_of_its_node_and_answered_by_what_was_done(host: WritingHost) -> None:
    for operation in WRITES:
        answer = asked_for(operation, host)
        assert answer.status_code == 200, (operation.name, answer.text)
        assert operation.counts in answer.json()["done"], operation.name
    assert [(node, request) for node, request in host.requests.asked if request["op"] in host.requests.ops()] == [
        ("b1", {"op": "purge", "address": "orders", "up_to": 20}),
        ("b1", {"op": "remove", "address": "orders", "numbers": [3, 5]}),
        ("b1", {"op": "move", "source": "orders", "target": "orders.dead", "up_to": 20}),
        ("b1", {"op": "redrive", "address": "orders", "to": "orders"}),
        ("b1", {"op": "delete", "address": "orders", "force": True}),
        ("r1", {"op": "close_connection", "connection": 1, "operator": "the owner of the mesh",
                "reason": "it is stuck"}),
        ("r1", {"op": "trace", "connection": 1, "operator": "the owner of the mesh", "seconds": 30}),
        ("r1", {"op": "close_link", "connection": 1, "link": 10, "operator": "the owner of the mesh",
                "reason": "it is stuck"}),
        ("r1", {"op": "cost", "neighbor": "r2", "cost": 7}),
        ("r2", {"op": "cost", "neighbor": "r1", "cost": 7}),
        ("r1", {"op": "log_level", "operator": "the owner of the mesh", "module": "router.routes", "level": "debug"}),
        ("r1", {"op": "record_decisions", "address": "orders", "seconds": 30}),
        ("r2", {"op": "record_decisions", "address": "orders", "seconds": 30}),
    ]  # fmt: skip
    ((address, message),) = host.requests.sent
    sent = decode(message)
    assert (address, sent.subject, sent.body) == ("orders", "paid", "hello")


@OPERATION
def test_a_dry_run_changes_nothing_and_says_what_would_be_done(operation: WriteOperation, host: WritingHost) -> None:
    answer = host.write(path_of(operation) + "?dry_run=true", BODIES[operation.name], method=operation.method)
    assert answer.status_code == 200, answer.text
    assert answer.json()["dry_run"] is True
    assert operation.counts in answer.json()["would"]
    assert host.requests.ops() == []
    assert host.requests.sent == []
    assert [(each["outcome"], each["dry_run"]) for each in host.audited()] == [("counted", True)]


def test_a_queue_under_another_name_at_its_broker_is_asked_for_by_that_name(host: WritingHost) -> None:
    assert host.write("/api/queues/b1/2/purge", {"up_to": 1}).status_code == 200
    assert host.requests.asked[1][1] == {"op": "purge", "address": "its.name.there", "up_to": 1}
    assert host.write("/api/queues/b1/1/move", {"target": "returns", "count": 1}).status_code == 200
    assert {"op": "move", "source": "orders", "target": "its.name.there", "count": 1} in [
        request for _, request in host.requests.asked
    ]


def test_an_id_with_an_encoded_slash_is_the_same(host: WritingHost) -> None:
    assert host.write("/api/queues/b1%2F1/purge", {"up_to": 20}).status_code == 200
    assert host.requests.ops() == ["purge"]


@pytest.mark.parametrize("target", ["news.1", "rpc", "nothing.here", "orders.*"])
def test_messages_move_only_to_a_queue_of_the_same_broker(host: WritingHost, target: str) -> None:
    answer = host.write("/api/queues/b1/1/move", {"target": target, "count": 1})
    assert (answer.status_code, answer.json()["place"]) == (400, "target"), answer.text
    assert host.requests.ops() == []


# Who may
USERS = ("nobody", "viewer", "browser", "keeper", "oncall", "admin", "owner")
MAY = {NeededRight.ADDRESS: {"keeper", "admin", "owner"}, NeededRight.MESH: {"admin", "owner"}}


@OPERATION
@pytest.mark.parametrize("user", USERS)
def test_a_change_needs_its_right(operation: WriteOperation, user: str, host: WritingHost) -> None:
    answer = asked_for(operation, host, user)
    may = user in MAY[operation.right]
    assert answer.status_code == (200 if may else 403), answer.text
    assert bool(host.requests.ops() or host.requests.sent) == may
    if user != "nobody":
        assert host.audited()[0]["outcome"] == ("done" if may else "refused")
        assert host.audited()[0]["who"] == ("the owner of the mesh" if user == "owner" else user)


@OPERATION
def test_a_change_needs_a_login_also_in_a_mesh_without_users(operation: WriteOperation, tmp_path: Path) -> None:
    host = filled(tmp_path, users="")
    assert asked_for(operation, host, None).status_code == 401
    assert asked_for(operation, host, None, authorization="Bearer wrong").status_code == 401
    assert host.requests.asked == []
    assert host.ask("GET", "/api/queues", None).status_code == 200
    assert asked_for(operation, host).status_code == 200


def test_who_may_change_the_source_may_not_change_the_target(host: WritingHost) -> None:
    for body in ({"target": "returns", "count": 1},):
        answer = host.write("/api/queues/b1/1/move", body, "keeper")
        assert answer.status_code == 403
        assert "'returns'" in answer.json()["error"]
    assert host.write("/api/queues/b1/1/redrive", {"to": "returns"}, "keeper").status_code == 403
    assert host.requests.ops() == []


def test_what_a_user_may_not_see_is_not_there_for_a_change(host: WritingHost) -> None:
    answer = host.write("/api/queues/b1/2/purge", {"up_to": 1}, "keeper")
    assert answer.status_code == 404
    assert answer.json() == {"error": "there is no queue 'b1/2' now"}


def test_nobody_but_the_owner_sends_in_the_name_of_another(host: WritingHost) -> None:
    for user, said, status in (
        ("keeper", "keeper", 200), ("keeper", None, 200), ("keeper", "admin", 403), ("admin", "keeper", 403),
        ("owner", "keeper", 200),
    ):  # fmt: skip
        answer = host.write("/api/queues/b1/1/send", {"message": {"user_id": said}}, user)
        assert answer.status_code == status, answer.text


# What is refused
def test_a_queue_that_is_another_one_by_now_is_not_changed(host: WritingHost) -> None:
    body = {"up_to": 20, "expect": {"address": "orders.eu"}}
    answer = host.write("/api/queues/b1/1/purge", body)
    assert (answer.status_code, answer.json()["place"]) == (409, "expect.address")
    assert host.requests.ops() == []
    assert host.write("/api/queues/b1/1/purge", {"up_to": 20, "expect": {"address": "orders"}}).status_code == 200


@pytest.mark.parametrize(
    ("id_", "status", "word"),
    [
        ("b1/99", 404, "there is no queue"),
        ("b1/01", 404, "there is no queue"),
        ("b1/x", 404, "there is no queue"),
        ("b1/" + "9" * 5000, 404, "there is no queue"),
        ("b1/²", 404, "there is no queue"),
        ("rabbit/1", 501, "existing broker"),
        ("b9/1", 404, "there is no queue"),
    ],
)
def test_a_queue_that_cannot_be_changed_is_refused_with_a_sentence(
    host: WritingHost, id_: str, status: int, word: str
) -> None:
    answer = host.write(f"/api/queues/{id_}/purge", {"up_to": 1})
    assert answer.status_code == status
    assert word in answer.json()["error"]
    assert host.ask("GET", f"/api/queues/{id_}/messages").status_code == status


def test_a_broker_that_does_not_run_is_a_502_with_what_to_do(host: WritingHost) -> None:
    host.sample.runs["b1"].end("lost")
    answer = host.write("/api/queues/b1/1/purge", {"up_to": 1})
    assert answer.status_code == 502
    assert "`amqpmesh up`" in answer.json()["error"]
    assert host.audited()[0]["status"] == 502


NO_SOCKET = FileNotFoundError(2, "No such file or directory")


@pytest.mark.parametrize(
    ("op", "failure", "path", "status", "is_uncertain"),
    [
        ("show", Unreachable("refused"), "/api/queues/b1/1/purge", 502, False),
        ("purge", Unreachable("lost"), "/api/queues/b1/1/purge", 502, True),
        ("purge", TimedOut("no answer"), "/api/queues/b1/1/purge", 504, True),
        ("purge", CommandFailed("there is no queue"), "/api/queues/b1/1/purge", 409, False),
        ("close_link", RequestRefused("no link 10"), "/api/links/r1/10/close", 409, False),
        ("close_link", NO_SOCKET, "/api/links/r1/10/close", 502, False),
        ("close_link", TimeoutError(), "/api/links/r1/10/close", 504, True),
        ("close_link", ConnectionResetError("ended"), "/api/links/r1/10/close", 502, True),
    ],
)
def test_a_change_that_may_have_been_made_is_not_made_again_by_the_key(
    host: WritingHost, op: str, failure: Exception, path: str, status: int, is_uncertain: bool
) -> None:
    body = {"up_to": 1} if "purge" in path else {"reason": "stuck"}
    good = host.requests.answers.get(op, {})
    host.requests.answers[op] = failure
    first = host.write(path, body, Idempotency_Key="k")
    assert first.status_code == status, first.text
    assert first.json().get("is_uncertain", False) == is_uncertain
    assert host.audited()[0]["outcome"] == ("uncertain" if is_uncertain else "refused")
    host.requests.answers[op] = good
    second = host.write(path, body, Idempotency_Key="k")
    assert second.status_code == (status if is_uncertain else 200)


def test_a_cost_is_set_at_both_routers_or_at_none(host: WritingHost) -> None:
    def answer(request: dict[str, Any]) -> int:
        if request["neighbor"] == "r1":
            raise ConnectionRefusedError
        return 3

    host.requests.answers["cost"] = answer
    assert host.write("/api/neighbors/r1/r2/cost", {"cost": 7}).status_code == 502
    assert [(node, request["cost"]) for node, request in host.requests.asked] == [("r1", 7), ("r2", 7), ("r1", 3)]


# Keys
def test_the_same_request_with_the_same_key_is_made_once_and_answered_again(host: WritingHost) -> None:
    first = host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    again = host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert host.requests.ops() == ["purge"]
    assert [each["outcome"] for each in host.audited()] == ["repeated", "done"]


def test_the_same_key_with_another_request_is_a_409(host: WritingHost) -> None:
    assert host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k").status_code == 200
    for path, body in (("/api/queues/b1/1/purge", {"up_to": 21}), ("/api/queues/b1/2/purge", {"up_to": 20})):
        assert host.write(path, body, Idempotency_Key="k").status_code == 409
    assert host.requests.ops() == ["purge"]


def test_keys_of_two_users_do_not_meet(host: WritingHost) -> None:
    for user in ("admin", "keeper", "owner"):
        assert host.write("/api/queues/b1/1/purge", {"up_to": 20}, user, Idempotency_Key="k").status_code == 200
    assert host.requests.ops() == ["purge"] * 3


def test_an_observer_that_was_killed_does_not_purge_again(tmp_path: Path) -> None:
    first = filled(tmp_path).write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    later = filled(tmp_path)
    again = later.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert (again.status_code, again.json()) == (200, first.json())
    assert later.requests.ops() == []


def test_of_many_requests_at_once_with_one_key_one_is_made(host: WritingHost) -> None:
    headers = {**BEARER, "content-type": "application/json", "idempotency-key": "k"}

    async def all_at_once() -> list[Any]:
        transport = httpx2.ASGITransport(app=host.app)
        async with httpx2.AsyncClient(transport=transport, base_url=URL) as client:
            asking = [client.post("/api/queues/b1/1/purge", json={"up_to": 20}, headers=headers) for _ in range(8)]
            return list(await asyncio.gather(*asking))

    answers = asyncio.run(all_at_once())
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert host.requests.ops() == ["purge"]


class Killed(Exception):
    """Stands for the end of the process."""


def test_a_change_that_the_end_of_the_observer_interrupted_is_in_the_audit_and_not_made_again(tmp_path: Path) -> None:
    host = filled(tmp_path)

    async def killed(*_: Any, **__: Any) -> None:
        raise Killed

    host.requests.ask_broker = killed  # type: ignore[method-assign]
    # Nothing is written any more, as by a process that was killed.
    host.keys.end = killed  # type: ignore[method-assign]
    host.audit.append = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    later = filled(tmp_path)
    (entry,) = later.audited()
    assert (entry["outcome"], entry["operation"], entry["target"]) == ("interrupted", "purge", "b1/1")
    answer = later.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert (answer.status_code, answer.json()["is_uncertain"]) == (409, True)
    assert later.requests.ops() == []
    assert len(filled(tmp_path).audited()) == 2


@pytest.mark.parametrize("days", [1, 30])
def test_an_interrupted_change_is_in_the_audit_also_if_its_key_is_too_old_by_then(tmp_path: Path, days: int) -> None:
    (tmp_path / "audit").mkdir()
    begun_at = WritingHost(tmp_path).host.utc_s - days * KEPT_S
    earlier = WriteKeys(tmp_path / "audit" / "keys.jsonl", lambda: begun_at)
    what = {"at": begun_at, "who": "owner", "operation": "purge", "target": "b1/1"}
    assert asyncio.run(earlier.begin("owner", "k", "digest", what)) is None
    later = filled(tmp_path)
    (entry,) = later.audited()
    assert (entry["outcome"], entry["target"], entry["at"]) == ("interrupted", "b1/1", begun_at)
    # The key is forgotten now, and only now.
    assert later.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k").status_code == 200
    assert [each["outcome"] for each in filled(tmp_path).audited()].count("interrupted") == 1


def test_a_failure_that_nobody_has_foreseen_is_in_the_audit_and_not_made_again(host: WritingHost) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("a bug")

    host.requests.answers["purge"] = fail
    with pytest.raises(RuntimeError):
        host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert host.audited()[0]["outcome"] == "failed"
    assert host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k").status_code == 500
    assert host.requests.ops() == ["purge"]


# Audit
def test_the_audit_says_who_did_what_to_what_and_no_body(host: WritingHost) -> None:
    message = {"properties": {"card": "4711-secret"}, "body": {"kind": "text", "text": "body-secret"}}
    assert host.write("/api/queues/b1/1/send", {"message": message}, "keeper").status_code == 200
    (entry,) = host.audited()
    assert entry["who"] == "keeper"
    assert entry["login"] == "password"
    assert entry["from"].startswith("testclient")
    assert (entry["operation"], entry["target"], entry["what"]) == ("send", "b1/1", {"address": "orders"})
    assert entry["arguments"] == {"message": {"bytes": len(host.requests.sent[0][1])}}
    assert (entry["before"], entry["after"]) == ({"messages": 12}, {"messages": 12})
    assert (entry["outcome"], entry["status"], entry["dry_run"]) == ("done", 200, False)
    written = "".join(path.read_text() for path in (host.folder / "audit").iterdir())
    assert "secret" not in written.replace(TOKEN, "")


def test_only_the_owner_can_read_the_files(host: WritingHost) -> None:
    host.write("/api/queues/b1/1/purge", {"up_to": 20})
    host.write("/api/queues/b1/1/purge", {"up_to": -1})
    assert stat.S_IMODE((host.folder / "audit").stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (host.folder / "audit").iterdir()}
    assert files == dict.fromkeys(("audit.jsonl", "audit.lock", "refused.jsonl", "keys.jsonl"), 0o600)


@pytest.mark.parametrize("user", ["viewer", "browser", "keeper"])
def test_the_audit_and_the_events_are_for_who_sees_all(host: WritingHost, user: str) -> None:
    for path in ("/api/audit", "/api/events", "/metrics"):
        assert host.ask("GET", path, user).status_code == 403
        assert host.ask("GET", path, "oncall").status_code == 200


def test_a_change_is_made_though_the_audit_cannot_be_written(
    host: WritingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> None:
        raise OSError(28, "No space left on device", "audit.jsonl")

    monkeypatch.setattr(host.audit, "_append", fail)
    assert host.write("/api/queues/b1/1/purge", {"up_to": 20}).status_code == 200
    assert host.troubles == ["audit.jsonl: No space left on device"]


def test_no_change_is_begun_if_its_key_cannot_be_written(host: WritingHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.keys, "_write", fail)
    answer = host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k")
    assert answer.status_code == 503
    assert host.requests.ops() == []
    monkeypatch.undo()
    assert host.write("/api/queues/b1/1/purge", {"up_to": 20}, Idempotency_Key="k").status_code == 200


# Dry runs
def stored(host: WritingHost, numbers: list[int], locked: tuple[int, ...] = ()) -> None:
    """Let b1 have messages with these numbers."""

    def browse(request: dict[str, Any]) -> dict[str, Any]:
        assert request.get("after", 0) >= 0
        later = [number for number in numbers if number > request.get("after", -1)]
        page = [{"number": number, "is_locked": number in locked} for number in later[: request["limit"]]]
        more = len(later) > len(page)
        return {"messages": page, "next": page[-1]["number"] if more else None, "last": 9, "scanned": len(page)}

    host.requests.answers["browse"] = browse
    host.requests.answers["show"] = lambda request: {
        "queues": [{"address": request["address"], "available_count": len(numbers) - len(locked)}]
    }


@pytest.mark.parametrize(
    ("name", "body", "would"),
    [
        ("purge", {"up_to": 250}, (249, False)),
        ("purge", {"up_to": 1}, (0, False)),
        ("purge", {"up_to": 100_000}, (299, False)),
        ("remove", {"numbers": [1, 2, 250, 300, 301]}, (3, False)),
        ("remove", {"numbers": [0, 3]}, (1, False)),
        ("move", {"target": "orders.dead", "up_to": 2}, (1, False)),
        ("move", {"target": "orders.dead", "count": 7}, (7, True)),
        ("move", {"target": "orders.dead", "count": 7000}, (299, True)),
        ("redrive", {}, (299, True)),
        ("redrive", {"numbers": [2, 9]}, (2, False)),
    ],
)
def test_a_dry_run_counts_what_waits_and_not_what_consumers_have(
    host: WritingHost, name: str, body: dict[str, Any], would: tuple[int, bool]
) -> None:
    stored(host, list(range(1, 301)), locked=(1,))
    answer = host.write(f"/api/queues/b1/1/{name}?dry_run=true", body).json()
    assert answer["would"] == {"messages": would[0], "at_most": would[1]}
    assert answer["before"] == {"messages": 299}


def test_a_dry_run_looks_at_so_many_messages_and_then_says_at_most(host: WritingHost) -> None:
    stored(host, list(range(1, 5001)))
    assert host.write("/api/queues/b1/1/purge?dry_run=true", {"up_to": 5000}).json()["would"] == {
        "messages": 5000, "at_most": True
    }  # fmt: skip
    assert host.write("/api/queues/b1/1/purge?dry_run=true", {"up_to": 900}).json()["would"]["messages"] == 900
    assert len([op for _, op in host.requests.asked if op["op"] == "browse"]) == 10 + 9


def test_a_queue_with_messages_is_deleted_by_force_only(host: WritingHost) -> None:
    for query in ("", "?dry_run=true"):
        answer = host.write(f"/api/queues/b1/1{query}", {}, method="DELETE")
        assert (answer.status_code, "12 messages" in answer.json()["error"]) == (409, True)
    assert host.requests.ops() == []
    stored(host, [])
    assert host.write("/api/queues/b1/1", method="DELETE").json()["done"] == {"messages": 3}


def test_parts_of_an_answer_are_one(host: WritingHost) -> None:
    parts = [{"messages": 2, "missing": [1], "x": 1}, {"messages": 3, "missing": [2], "x": 2, "left": 4}]
    assert joined(parts) == {"messages": 5, "missing": [1, 2], "x": 2, "left": 4}


# Messages
def test_messages_are_shown_to_who_may_view_and_bodies_to_who_may_browse(host: WritingHost) -> None:
    for user, plain, bodies in (
        ("nobody", 403, 403), ("viewer", 200, 403), ("browser", 200, 200), ("keeper", 200, 403), ("owner", 200, 200),
    ):  # fmt: skip
        assert host.ask("GET", "/api/queues/b1/1/messages", user).status_code == plain, user
        assert host.ask("GET", "/api/queues/b1/1/messages?bodies=true", user).status_code == bodies, user
    assert ("b1", {"op": "browse", "address": "orders", "limit": 50, "bodies": True, "body_bytes": 4096}) in (
        host.requests.asked
    )


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "after=-1", "after=x", "bodies=yes", "body_bytes=65537", "search=", "x=1"]
)
def test_a_wrong_parameter_of_messages_is_a_400_with_the_place(host: WritingHost, query: str) -> None:
    answer = host.ask("GET", f"/api/queues/b1/1/messages?{query}")
    assert (answer.status_code, answer.json()["place"]) == (400, query.partition("=")[0])
    assert host.requests.asked == []


def test_me_says_who_asks_with_which_rights(host: WritingHost) -> None:
    assert host.ask("GET", "/api/me").json() == {
        "user": "the owner of the mesh", "is_owner": True, "view": ["#"], "browse": ["#"], "manage": ["#"]
    }  # fmt: skip
    assert host.ask("GET", "/api/me", "keeper").json() == {
        "user": "keeper", "is_owner": False, "view": [], "browse": [], "manage": ["orders.#"]
    }  # fmt: skip
    assert host.ask("GET", "/api/me", "nobody").json()["manage"] == []
    assert json.loads(host.ask("GET", "/api/me", None).text)["error"]
