"""Nodes behind the observer's real interface for changes: queues that are lists, and nodes that take every request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesh.client.errors import MeshError
from mesh.terminal.failure import CommandFailed
from mesh.watch.audit import AuditLog
from mesh.watch.idempotency import WriteKeys
from mesh.watch.node_events import NodeEvents
from mesh.watch.operator_views import OperatorViews
from mesh.watch.writes import MeshWrites
from mesh_tests.unit.mesh.watch.console_host import NOW_S, TRIANGLE, ConsoleHost
from mesh_tests.unit.mesh.watch.memory_link import MemoryHost

if TYPE_CHECKING:
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from addressing.topology.model import Topology
    from mesh.watch.visible_rows import RowsByOperator


def message(number: int, body: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a message as a broker's answer to `browse` has it."""
    stored = datetime.fromtimestamp(NOW_S - 3600 + number, UTC)
    return {
        "number": number, "priority": 4, "durable": True, "expires_at": None,
        "stored_at": stored.isoformat(timespec="milliseconds"), "attempts": 0, "bytes": 200,
        "message_id": f"m-{number}", "correlation_id": None, "subject": "order", "properties": {}, "annotations": {},
        "is_locked": False, "reason": None, "origin": None, "why": None, "left_out": [],
        "body": body or text_body(f"order {number}"),
        **fields,
    }  # fmt: skip


def text_body(text: str, kind: str = "text") -> dict[str, Any]:
    return {"kind": kind, "section": "data", "text": text, "bytes": len(text), "is_cut": False, "why": None}


def json_body(text: str) -> dict[str, Any]:
    return text_body(text, "json")


@dataclass
class FakedMesh:
    """``queues``: messages by name of the queue. ``asked``: node and request of each change."""

    queues: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    error: MeshError | None = None
    """What a change at a broker ends with."""

    async def ask_broker(self, broker: str, request: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> None:
        queue = self.queues.setdefault(request.get("source") or request["address"], [])
        match request["op"]:
            case "show":
                parts.append({"queues": [{"address": request["address"], "available_count": len(queue)}]})
            case "browse":
                parts.append(_browse(queue, request))
            case _:
                self.asked.append((broker, dict(request)))
                if self.error is not None:
                    raise self.error
                parts.append(self._change(queue, request))

    async def ask_node(self, node: str, op: str, **arguments: Any) -> Any:
        if op == "log_levels":
            return {"": "info"}
        self.asked.append((node, {"op": op, **arguments}))
        return 1 if op == "cost" else {}

    async def send(self, routers: Sequence[str], address: str, message: Any) -> str:
        self.sent.append((address, message))
        return routers[0]

    def _change(self, queue: list[dict[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
        numbers = request.get("numbers") or [
            each["number"] for each in queue if each["number"] <= request.get("up_to", float("inf"))
        ]
        taken = [each for each in queue if each["number"] in numbers and not each["is_locked"]]
        queue[:] = [each for each in queue if each not in taken]
        if request["op"] == "move":
            self.queues.setdefault(request["target"], []).extend(taken)
        return {"messages": len(taken)}


def _browse(queue: list[dict[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    after, limit = request.get("after", 0), request["limit"]
    found = [each for each in queue if each["number"] > after and request.get("search", "") in json.dumps(each)]
    left_out = () if request.get("bodies") else ("body",)
    return {
        "messages": [{name: each[name] for name in each if name not in left_out} for each in found[:limit]],
        "next": found[limit - 1]["number"] if len(found) > limit else None,
        "last": max((each["number"] for each in queue), default=0),
        "scanned": len(queue),
    }


def refused(sentence: str) -> MeshError:
    return CommandFailed(sentence)


class WritingConsoleHost(ConsoleHost):
    """An observer whose mesh takes changes. ``folder``: the work directory, for the audit and the logs of nodes."""

    def __init__(
        self,
        folder: Path,
        topology: str | Path = TRIANGLE,
        token: str | None = None,
        neighbor: MemoryHost | None = None,
    ) -> None:
        self.folder, self.mesh = folder, FakedMesh()
        (folder / "log").mkdir()
        for node in ("r1", "r2", "r3", "b1"):
            (folder / "log" / f"{node}.jsonl").touch()
        self._audit = AuditLog(folder / "audit")
        super().__init__(topology, token, neighbor)

    def operations(self, topology: Topology, rows: RowsByOperator) -> Sequence[Route]:
        keys = WriteKeys(self.folder / "audit" / "keys.jsonl", lambda: self.model.utc_s)
        writes = MeshWrites(topology, self.model, rows, self.mesh, keys, self._audit, _raise)
        events = NodeEvents(self.folder / "log")
        views = OperatorViews(topology, self.model, rows, writes, self._audit, events)
        return [*writes.routes(), *views.routes()]

    async def audit(self, **entry: Any) -> None:
        await self._audit.append({"at": NOW_S, "outcome": "done", **entry})

    def log(self, node: str, event: str, level: str = "warning", at_s: float = NOW_S, **fields: Any) -> None:
        """Write an event into the log of a node."""
        at = datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with (self.folder / "log" / f"{node}.jsonl").open("a") as file:
            file.write(json.dumps({"ts": at, "level": level, "node": node, "event": event, **fields}) + "\n")


def _raise(sentence: str) -> None:
    raise AssertionError(sentence)


@dataclass
class RecordedWrites:
    """Notes the changes that are asked for over HTTP: method, path, whether it is a dry run, body, and key.

    A change is noted before its answer is sent, so that a test that sees the answer in the page finds the change.
    """

    app: ASGIApp
    asked: list[tuple[str, str, bool, Any, str]] = field(default_factory=list)
    breaks: int = 0
    """How many changes are carried out, and get no answer."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] == "GET" or not scope["path"].startswith("/api/"):
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        is_dry, body = b"dry_run=true" in scope["query_string"], bytearray()

        async def receive_noted() -> Message:
            told = await receive()
            body.extend(told.get("body", b""))
            return told

        async def send_noted(told: Message) -> None:
            if told["type"] == "http.response.start":
                self.asked.append((scope["method"], scope["path"], is_dry, json.loads(bytes(body) or b"{}"), key))
            if not is_broken:
                await send(told)

        key = headers[b"idempotency-key"].decode()
        is_broken = self.breaks > 0 and not is_dry
        await self.app(scope, receive_noted, send_noted)
        if is_broken:
            self.breaks -= 1
            # The server closes the connection, since the answer is shorter than it says.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
            await send({"type": "http.response.body", "body": b"{"})
