"""Each change by a command leaves one line in the audit, whatever became of the change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.client.errors import MeshError, TimedOut, Unreachable
from mesh.deploy.control import RequestRefused
from mesh.deploy.workdir import WorkDir
from mesh.operations import broker_control, node_requests
from mesh.operations.audited_changes import BROKER_CHANGES
from mesh.operations.broker_control import QueueSite, ask_each
from mesh.operations.costs import set_cost
from mesh.operations.node_requests import change_node
from mesh.terminal.failure import CommandFailed
from mesh.watch.audit import AuditLog, parse_audit_query
from mesh.watch.write_operations import WRITES
from recording.entities import QUEUE

FILE = "mesh: m\nrouters: {r1: {connect: [r2]}, r2: }\nbrokers: {b1: {data: ./b1}}\naddresses: {orders: queue}\n"
SITE = QueueSite("b1", "orders")


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    (tmp_path / "amqpmesh.yml").write_text(FILE)
    return load_topology(tmp_path / "amqpmesh.yml")


def lines(topology: Topology) -> list[dict[str, Any]]:
    log = AuditLog(WorkDir(topology.work_dir).audit)
    return list(asyncio.run(log.page(parse_audit_query([])))["items"])


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what each request to a broker is answered by: parts, and an error after them or before the request."""

    def set_answer(*parts: dict[str, Any], error: Exception | None = None, is_sent: bool = True) -> None:
        async def ask(
            _: Topology, __: str, ___: Any, found: list[Any], on_sent: Callable[[], None] = lambda: None
        ) -> None:
            if is_sent:
                on_sent()
            found.extend(parts)
            if error is not None:
                raise error

        monkeypatch.setattr(broker_control, "_ask", ask)

    return set_answer


def test_requests_that_change_a_broker_are_those_of_rest_and_create() -> None:
    of_rest = {each.name for each in WRITES if each.entity is QUEUE and each.name != "send"}
    assert {*of_rest, "create"} == BROKER_CHANGES


@pytest.mark.parametrize("op", sorted(BROKER_CHANGES))
def test_a_change_of_a_queue_is_one_line(topology: Topology, answer: Callable[..., None], op: str) -> None:
    answer({"messages": 3}, {"messages": 2})
    ask_each(topology, [SITE], op, lambda site: {"address": site.address, "subscriber": None, "up_to": 20, "to": None})
    (line,) = lines(topology)
    told = {name: line[name] for name in ("operation", "target", "what", "arguments", "outcome", "done", "login")}
    assert told == {
        "operation": op, "target": "b1", "what": {"address": "orders"}, "arguments": {"up_to": 20},
        "outcome": "done", "done": {"messages": 5}, "login": "command",
    }  # fmt: skip
    assert line["is_owner"]
    assert "@" in line["from"]


@pytest.mark.parametrize(
    ("parts", "error", "is_sent", "outcome"),
    [
        ([], Unreachable("refused"), False, "refused"),
        ([], CommandFailed("there is no queue"), True, "refused"),
        ([{"messages": 3}], CommandFailed("the disk is full"), True, "uncertain"),
        ([], TimedOut("no answer"), True, "uncertain"),
        ([], Unreachable("connection lost"), True, "uncertain"),
    ],
)
def test_a_change_of_a_queue_that_fails_is_one_line_with_what_is_known(
    topology: Topology, answer: Callable[..., None], parts: list[Any], error: MeshError, is_sent: bool, outcome: str
) -> None:
    answer(*parts, error=error, is_sent=is_sent)
    assert ask_each(topology, [SITE], "purge", lambda site: {"address": site.address}).failures
    (line,) = lines(topology)
    assert (line["outcome"], line["error"]) == (outcome, error.message)
    assert line.get("done") == ({"messages": 3} if parts else None)


def test_a_change_that_ctrl_c_ends_is_uncertain(topology: Topology, answer: Callable[..., None]) -> None:
    answer(error=KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        ask_each(topology, [SITE], "purge", lambda site: {"address": site.address})
    assert [each["outcome"] for each in lines(topology)] == ["uncertain"]


def test_what_only_looks_is_no_line(topology: Topology, answer: Callable[..., None]) -> None:
    answer({"queues": []})
    shown = ask_each(topology, [SITE], "show", lambda site: {"address": site.address})
    assert lines(topology) == []
    assert not shown.failures


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "done"),
        (RequestRefused("no module"), "refused"),
        (FileNotFoundError(), "refused"),
        (ConnectionRefusedError(), "refused"),
        (TimeoutError(), "uncertain"),
        (ConnectionResetError(), "uncertain"),
    ],
)
def test_a_change_of_a_node_is_one_line(
    topology: Topology, monkeypatch: pytest.MonkeyPatch, error: Exception | None, outcome: str
) -> None:
    def ask(*_: Any, **__: Any) -> Any:
        if error is not None:
            raise error
        return {"before": "info"}

    monkeypatch.setattr(node_requests, "ask", ask)
    try:
        change_node(topology, "r1", "log_level", "r1", module="", level="debug")
    except MeshError:
        assert error is not None
    (line,) = lines(topology)
    assert (line["operation"], line["target"], line["outcome"]) == ("log-level", "r1", outcome)
    assert line["arguments"] == {"module": "", "level": "debug"}


@pytest.mark.parametrize(("failing", "outcome"), [("", "done"), ("r1", "refused"), ("r2", "uncertain")])
def test_a_cost_at_two_routers_is_one_line(
    topology: Topology, monkeypatch: pytest.MonkeyPatch, failing: str, outcome: str
) -> None:
    def ask(socket: Path, op: str, **_: Any) -> Any:
        if op == "cost" and failing and failing in socket.name:
            raise RequestRefused("not now")
        return 3

    monkeypatch.setattr(node_requests, "ask", ask)
    try:
        assert set_cost(topology, "r1", "r2", 7) == 3
    except MeshError:
        assert failing
    (line,) = lines(topology)
    assert (line["operation"], line["target"], line["outcome"]) == ("cost", "r1/r2", outcome)
    assert line.get("before") == (None if failing else {"cost": 3})


def test_a_line_that_cannot_be_written_is_a_warning_and_no_failure(
    topology: Topology, answer: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    answer({"messages": 3})
    folder = WorkDir(topology.work_dir).audit
    folder.parent.mkdir(parents=True)
    folder.write_text("a file in the place of the folder")
    assert not ask_each(topology, [SITE], "purge", lambda site: {"address": site.address}).failures
    assert "warning: the change is not in the audit" in capsys.readouterr().err
