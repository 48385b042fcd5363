"""The parts of the OpenAPI document beside the entities: changes, messages, audit, events, login, metrics, health."""

from __future__ import annotations

from typing import Any, Final

from mesh.watch import audit, console, node_events, operator_views
from mesh.watch.metric_details import DETAIL_PARAMETERS
from mesh.watch.write_operations import MAX_NUMBERS, WRITES, MemberType, NeededRight, WriteMember, WriteOperation
from mesh.watch.write_request import EXPECT, KEY_HEADER, MAX_KEY_CHARS
from wire.message_json import FIELDS

ERRORS: Final = {
    "400": "A part of the request is wrong; the answer names it, and what is allowed.",
    "401": "The request has no valid login.",
    "403": "The login has not the right that the request needs, or a page of another site asks.",
    "404": "There is no such entity, or the login may not see it.",
    "409": "The entity or the key is not as the request expects, or a node refuses the change.",
    "429": "Too many passwords were wrong, or too many changes, streams or pages of messages are asked for.",
    "501": "The broker is an existing one, which has tools of its own.",
    "502": "The node does not run, or ended before its answer, or no observer answers for its host.",
    "503": "The observer cannot answer now, or not the host that may have the entity; the answer says why.",
    "504": "The node did not answer in time.",
}
"""By status of HTTP, what it means."""
_MEANINGS: Final = {
    "after": "the `next` of the page before",
    "limit": "most rows of a page",
    "search": "a text that a header, a property or, with the right `browse`, the body contains",
    "bodies": "true: with bodies, which needs the right `browse`",
    "body_bytes": "most bytes of a body that are shown",
    "node": "name of a node, or of a log of this host beside those of nodes",
    "host": "id of the host, as entity `node` has it; else this host",
    "level": "lowest level: debug, info, warning or error",
    "event": "name of the event",
    "since": "first time, as 2026-01-31T12:00:00Z or in seconds since 1970",
    "until": "last time",
    "who": "name of the user",
    "operation": "name of the change",
    "outcome": "done, refused, uncertain, counted, repeated, interrupted or failed",
    "target": "id of the entity",
    "family": "address, queue, link or user",
    "match": "pattern of addresses, or name of a user",
    "top": "most entities",
    "by": "number of the entity of which the largest are taken",
    "entity": "entities to stream; the other parameters are those of their list",
}
_TEXT: Final = "text/plain"
_JSON: Final = "application/json"


def operation_paths() -> dict[str, Any]:
    """Return the paths of the document that have no entity, or change one."""
    paths: dict[str, Any] = {}
    for operation in WRITES:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _write(operation)
    browse = _read(
        "browse_queue", "Shows messages of a queue, the oldest first; bodies need the right `browse`.",
        operator_views.BROWSE_PARAMETERS, "400", "401", "403", "404", "429", "501", "502", "503", "504",
    )  # fmt: skip
    browse["parameters"].insert(0, _id())
    paths[operator_views.MESSAGES] = {"get": browse}
    decisions = _read(
        "list_decisions", "Lists the recorded decisions of routers about deliveries of an address, the oldest first; "
        "an address whose own name ends in /decisions is shown by the list of addresses.",
        operator_views.DECISION_PARAMETERS, "400", "401", "403", "404", "429",
    )  # fmt: skip
    decisions["parameters"].insert(0, _id())
    paths[operator_views.DECISIONS] = {"get": decisions}
    paths[operator_views.AUDIT] = {
        "get": _read("list_audit", "Lists changes, also refused ones, the newest first; needs the right `view` of #.",
                     (*audit.PARAMETERS, operator_views.HOST), "400", "401", "403", "502")
    }  # fmt: skip
    paths[operator_views.EVENTS] = {
        "get": _read("list_events", "Lists events of the nodes' logs, the newest first; needs the right `view` of #.",
                     (*node_events.PARAMETERS, operator_views.HOST), "400", "401", "403", "502")
    }  # fmt: skip
    paths[console.FINDINGS] = {
        "get": _read("list_findings", "Lists what is wrong now, the worst first, with the hosts that cannot tell.",
                     (), "401", "403")
    }  # fmt: skip
    reads: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
        ("/api", "show_index", "Lists the entities.", (), _JSON),
        ("/api/me", "show_me", "Says who asks, and the patterns of addresses by right.", (), _JSON),
        ("/api/stream", "stream", "Streams a page and its changes as server-sent events.", ("entity",),
         "text/event-stream"),
        ("/openapi.json", "show_openapi", "Returns this document.", (), _JSON),
        ("/metrics", "show_metrics", "Returns metrics for Prometheus; needs the right `view` of #.", (), _TEXT),
        ("/metrics/detailed", "show_metric_details", "Returns metrics of single entities.", DETAIL_PARAMETERS, _TEXT),
        ("/livez", "show_liveness", "Says whether the observer, or a node, runs.", ("node",), _JSON),
        ("/readyz", "show_readiness", "Says whether the nodes of this host are ready.", (), _JSON),
        ("/healthz/mesh", "show_health", "Says what the mesh lacks.", (), _JSON),
    )  # fmt: skip
    for path, name, meaning, parameters, media in reads:
        paths[path] = {"get": _read(name, meaning, parameters, "400", "401", "403", "429", "503", media=media)}
    return paths


def errors(*codes: str) -> dict[str, Any]:
    """Return the responses for the statuses ``codes``."""
    content = {_JSON: {"schema": {"$ref": "#/components/schemas/error"}}}
    return {code: {"description": ERRORS[code], "content": content} for code in codes}


def operation_schemas() -> dict[str, Any]:
    """Return the schemas that the paths of `operation_paths` refer to."""
    counts = {"type": "object", "description": "counts, such as messages, and what a node has answered"}
    return {
        "change": {
            "type": "object",
            "properties": {
                "done": counts,
                "before": {"type": "object", "description": "what was there before, such as the messages that waited"},
                "after": {"type": "object", "description": "what is there now"},
                "dry_run": {"type": "boolean", "description": "true for a dry run, which changes nothing"},
                "would": {**counts, "description": "what the change would do; `at_most`: it could be less"},
            },
        },
        "message": {
            "type": "object",
            "properties": {
                **{name: {"type": ["string", "number", "object", "null"]} for name in FIELDS},
                "priority": {"type": ["integer", "null"]},
                "durable": {"type": ["boolean", "null"]},
                "ttl_s": {"type": ["number", "null"], "description": "time to live in seconds"},
                "properties": {"type": ["object", "null"], "description": "application properties"},
                "annotations": {"type": ["object", "null"], "description": "message annotations"},
                "body": {
                    "type": ["object", "null"],
                    "description": "the body, as messages of a queue are shown: `kind`, and `text` or `base64`",
                    "properties": {
                        "kind": {"enum": ["text", "json", "binary", "value", "none"]},
                        "section": {"enum": ["data", "value", "sequence", None]},
                        "text": {"type": "string"},
                        "base64": {"type": "string"},
                    },
                },
            },
        },
    }  # fmt: skip


def _write(operation: WriteOperation) -> dict[str, Any]:
    right = "of the address" if operation.right is NeededRight.ADDRESS else "of #"
    properties = {member.name: _property(member) for member in operation.members}
    properties[EXPECT] = {
        "type": "object",
        "description": f"fields of the {operation.entity.name} as they were shown; refused if one has another value",
    }
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if needed := [member.name for member in operation.members if member.is_needed]:
        schema["required"] = needed
    if operation.one_of:
        schema["oneOf"] = [{"required": [name]} for name in operation.one_of]
    return {
        "summary": f"{operation.meaning} Needs a login with the right `manage` {right}.",
        "operationId": operation.name.replace("-", "_"),
        "parameters": [
            _id(),
            {
                "name": "dry_run", "in": "query", "schema": {"type": "boolean", "default": False},
                "description": "true: answer what the change would do, and change nothing",
            },
            {
                "name": KEY_HEADER, "in": "header", "required": True,
                "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS},
                "description": "for 24 h, the same key with the same request gets the first answer again",
            },
        ],
        "requestBody": {"required": True, "content": {_JSON: {"schema": schema}}},
        "responses": {
            "200": {
                "description": "The change was made, or counted.",
                "content": {_JSON: {"schema": {"$ref": "#/components/schemas/change"}}},
            },
            **errors(*ERRORS),
        },
    }  # fmt: skip


def _property(member: WriteMember) -> dict[str, Any]:
    numbers = {"type": "integer", "minimum": member.least, "maximum": member.most}
    match member.type:
        case MemberType.NUMBER:
            schema: dict[str, Any] = numbers
        case MemberType.NUMBERS:
            schema = {"type": "array", "items": numbers, "minItems": 1, "maxItems": MAX_NUMBERS, "uniqueItems": True}
        case MemberType.FLAG:
            schema = {"type": "boolean"}
        case MemberType.MESSAGE:
            return {"$ref": "#/components/schemas/message"}
        case _ if member.values:
            schema = {"enum": list(member.values)}
        case _:
            schema = {"type": "string", "minLength": member.least, "maxLength": member.most}
    return {**schema, "description": member.meaning}


def _read(name: str, meaning: str, parameters: tuple[str, ...], *codes: str, media: str = _JSON) -> dict[str, Any]:
    return {
        "summary": meaning,
        "operationId": name,
        "parameters": [
            {"name": each, "in": "query", "description": _MEANINGS[each], "schema": {"type": "string"}}
            for each in parameters
        ],
        "responses": {"200": {"description": meaning, "content": {media: {}}}, **errors(*codes)},
    }


def _id() -> dict[str, Any]:
    return {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}, "description": "its `id`"}
