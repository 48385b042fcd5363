"""The part of the REST interface that changes a mesh, over queues that are lists: for pages, before all of a mesh."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mesh_tests.unit.mesh.watch.console_host import NOW_S

OWNER: dict[str, Any] = {"user": None, "is_owner": True, "view": ["#"], "browse": ["#"], "manage": ["#"]}
BODY_BYTES = 65_536


def message(number: int, body: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    text = f"order {number}"
    return {
        "number": number, "priority": 4, "durable": True, "expires_at": None, "stored_at": stored_at(number),
        "attempts": 0, "bytes": 200, "message_id": f"m-{number}", "correlation_id": None, "subject": "order",
        "to": None, "reply_to": None, "group_id": None, "content_type": None, "user_id": None, "properties": {},
        "annotations": {}, "is_locked": False,
        "body": body or {"kind": "text", "text": text, "bytes": len(text), "is_cut": False},
        **fields,
    }  # fmt: skip


def stored_at(number: int) -> str:
    return datetime.fromtimestamp(NOW_S - 3600 + number, UTC).isoformat(timespec="milliseconds")


def json_body(text: str) -> dict[str, Any]:
    return {"kind": "json", "text": text, "bytes": len(text), "is_cut": False}


def node_event(name: str, node: str = "r1", level: str = "warning", at: float = NOW_S, **fields: Any) -> dict[str, Any]:
    return {"at": at, "node": node, "level": level, "event": name, "fields": fields}


@dataclass
class FakedWrites:
    """``queues``: messages by id of the queue. ``asked``: method, path, query, body and key of each write."""

    app: ASGIApp
    me: dict[str, Any] = field(default_factory=lambda: dict(OWNER))
    queues: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    audit: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, bool, Any, str]] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    breaks: int = 0
    """How many writes are carried out, and get no answer."""
    refuses: tuple[int, str] | None = None
    expected: dict[str, Any] = field(default_factory=dict)
    """What the last write expected of the entity."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None
        if scope["type"] == "http":
            request = Request(scope, receive)
            answer = self._read(request) if request.method == "GET" else None
            if request.method in ("POST", "DELETE") and request.url.path.startswith("/api/"):
                answer = await self._write(request)
        await (answer or self.app)(scope, receive, send)

    def _read(self, request: Request) -> Response | None:
        path, query = request.url.path, request.query_params
        if path == "/api/me":
            return JSONResponse(self.me)
        if path in ("/api/events", "/api/audit"):
            rows = self.events if path == "/api/events" else self.audit
            names = [name for name in query if name not in ("limit", "after")]
            found = [each for each in rows if all(query[name] in str(each.get(name, "")) for name in names)]
            begin, limit = int(query.get("after", "0")), int(query["limit"])
            more = str(begin + limit) if len(found) > begin + limit else None
            return JSONResponse({"items": found[begin : begin + limit], "next": more})
        if path.startswith("/api/queues/") and path.endswith("/messages"):
            queue = self.queues.setdefault(path.removeprefix("/api/queues/").removesuffix("/messages"), [])
            return JSONResponse(browse(queue, dict(query)))
        return None

    async def _write(self, request: Request) -> Response:
        path, key = request.url.path, request.headers["idempotency-key"]
        assert request.headers["content-type"] == "application/json"
        body = json.loads(await request.body())
        self.expected = body.pop("expect")
        is_dry = request.query_params.get("dry_run") == "true"
        self.asked.append((request.method, path, is_dry, body, key))
        if self.refuses is not None:
            status, sentence = self.refuses
            return JSONResponse({"error": sentence}, status)
        if is_dry:
            return JSONResponse({"dry_run": True, "would": self._carry_out(path, body, is_dry=True)})
        if key not in self.answers:
            self.answers[key] = {"done": self._carry_out(path, body, is_dry=False)}
            operation = path.rpartition("/")[2]
            entry = {
                "number": len(self.audit) + 1, "at": NOW_S, "who": "/owner", "operation": operation, "target": path,
                "arguments": body, "key": key, "outcome": "done",
            }  # fmt: skip
            self.audit.insert(0, entry)
        if self.breaks:
            self.breaks -= 1
            return Response(status_code=503)
        return JSONResponse(self.answers[key])

    def _carry_out(self, path: str, body: Any, *, is_dry: bool) -> dict[str, Any]:
        if not path.startswith("/api/queues/"):
            return {path.split("/")[2]: 1}
        id_, _, verb = path.removeprefix("/api/queues/").rpartition("/")
        queue = self.queues.setdefault(id_, [])
        if verb == "send":
            if not is_dry:
                number = max((each["number"] for each in queue), default=0) + 1
                queue.append(message(number, **body["message"]))
            return {"messages": 1}
        numbers = body.get("numbers") or [each["number"] for each in queue if each["number"] <= body.get("up_to", 1e9)]
        taken = [each for each in queue if each["number"] in numbers and not each["is_locked"]]
        if not is_dry:
            queue[:] = [each for each in queue if each not in taken]
            if verb == "move":
                self.queues.setdefault(body["target"], []).extend(taken)
        return {"messages": len(taken)}


def browse(queue: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    """Return what a broker answers to `browse`."""
    after, limit = int(query.get("after", "0")), int(query.get("limit", "100"))
    found = [each for each in queue if each["number"] > after and query.get("search", "") in json.dumps(each)]
    names = None if query.get("bodies") == "true" else "body"
    return {
        "messages": [{name: value for name, value in each.items() if name != names} for each in found[:limit]],
        "next": found[limit - 1]["number"] if len(found) > limit else None,
        "last": queue[-1]["number"] if queue else None,
        "scanned": len(queue),
    }
