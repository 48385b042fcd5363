"""Answers to requests of management, of the model and the topology. Sans-IO.

An answer is made in slices, so that a table of a hundred thousand addresses does not hold the observer's event loop:
`answer` is a generator that yields after each slice, and returns the encoded answer.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from addressing.address import AREA_PREFIX
from addressing.management import MANAGEMENT
from mesh.watch.management.dispatch_entities import ALL_NAMES, MANAGEMENT_TYPE, TYPES, type_of
from mesh.watch.management.entity_types import PREFIX, EntityType, ManagedNode, Viewer
from mesh.watch.management.protocol import (
    ManagementError,
    ManagementRequest,
    Status,
    encode_answer,
    encode_rows,
    shown,
)
from wire.codec.values import encode

if TYPE_CHECKING:
    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology

Steps = Generator[None, None, bytes]
ROWS_A_SLICE: Final = 50
"""Rows that are encoded in a slice: about 2 ms for links, which have the most attributes."""
LOOKED_AT_A_SLICE: Final = 500
"""Entities in a slice of which it is asked whether the operator may see them: about 5 ms."""
OPERATIONS: Final = (
    "QUERY", "READ", "UPDATE", "CREATE", "DELETE", "GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-ANNOTATIONS",
    "GET-MGMT-NODES", "GET-SCHEMA", "GET-JSON-SCHEMA", "GET-LOG",
)  # fmt: skip
NOT_LIVE: Final = (
    "a mesh takes its addresses, listeners and connections from the topology file: change the file, then `amqpmesh "
    "down` and `amqpmesh up`"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A request about a node, and who asks. ``note``: what to say of the node in the status of a good answer."""

    request: ManagementRequest
    view: ManagedNode
    operator: Operator
    note: str = ""
    known: dict[str, bool] = field(default_factory=dict)
    """As in `Viewer`; kept over the requests of an operator."""

    def ok(self, body: bytes, count: int | None = None, description: str = "OK") -> bytes:
        """Return the answer with an encoded ``body``; ``count`` is its number of rows, if it has rows."""
        text = f"{description}; {self.note}" if self.note else description
        return encode_answer(self.request, Status.OK, text, body, count)


def answer(question: Question) -> Steps:
    """Return the answer to a request that reads only. Raises ManagementError, in any slice."""
    operation = question.request.operation
    match operation:
        case "QUERY":
            return (yield from _query(question))
        case "READ":
            return (yield from _read(question))
        case "CREATE" | "DELETE":
            raise ManagementError(Status.NOT_IMPLEMENTED, f"{operation}: {NOT_LIVE}")
        case _ if operation in _ABOUT_TYPES:
            body = _ABOUT_TYPES[operation](question)
            return question.ok(encode(body))
        case _:
            raise ManagementError(
                Status.NOT_IMPLEMENTED,
                f"unknown operation {shown(operation)}: expected one of {', '.join(OPERATIONS)}",
            )


# Entities
def _query(question: Question) -> Steps:
    request = question.request
    asked = request.text("entityType")
    types = TYPES if asked is None else (_known(asked),)
    names = request.attribute_names() or (ALL_NAMES if asked is None else types[0].names)
    unknown = [name for name in names if all(each.attribute(name) is None for each in types)]
    if unknown and not (len(types) == 1 and types[0].ignores_unknown):
        of = f"of {types[0].name}" if asked is not None else "of any type"
        raise ManagementError(
            Status.NOT_FOUND, f"no attribute {shown(unknown[0])} {of}: expected {', '.join(types[0].names)}"
        )
    offset, count = request.page()
    rows: list[bytes] = []
    total = 0
    for type_ in types:
        seen = yield from _seen(question, type_)
        page = seen[max(0, offset - total) : max(0, offset + count - total)]
        total += len(seen)
        attributes = [type_.attribute(name) for name in names]
        for index, state in enumerate(page):
            if index % ROWS_A_SLICE == ROWS_A_SLICE - 1:
                yield
            rows.append(encode([None if each is None else each.of(question.view, state) for each in attributes]))
    is_cut = request.number("count") is None and offset + len(rows) < total
    description = "OK" if not is_cut else (
        f"OK: rows {offset + 1:,} to {offset + len(rows):,} of {total:,}; ask for more with offset and count"
    )  # fmt: skip
    return encode_answer(request, Status.OK, description, encode_rows(names, rows), len(rows))


def _seen(question: Question, type_: EntityType) -> Generator[None, None, list[Any]]:
    """Return the entities of ``type_`` that the operator may see, in the order in which the node got them."""
    states: Collection[Any] = type_.rows(question.view)
    may_see, viewer = type_.may_see, Viewer(question.operator, question.known)
    # The list is a copy, since entities come and go between slices.
    found = list(states)
    if may_see is None or question.operator.views_all:
        return found
    seen: list[Any] = []
    for start in range(0, len(found), LOOKED_AT_A_SLICE):
        seen += [state for state in found[start : start + LOOKED_AT_A_SLICE] if may_see(viewer, state)]
        yield
    return seen


def find(question: Question) -> Generator[None, None, tuple[EntityType, Any]]:
    """Return type and state of the entity that the request names by `identity` or `name`, and perhaps by `type`.

    Raises ManagementError if there is none that the operator may see.
    """
    request, view = question.request, question.view
    identity, name, asked = request.text("identity"), request.text("name"), request.text("type")
    if identity is None and name is None:
        raise ManagementError(Status.BAD_REQUEST, f"{request.operation} needs the property 'identity' or 'name'")
    types = TYPES if asked is None else (_known(asked),)
    for type_ in types:
        value = type_.identity if identity is not None else type_.attributes[0].value
        wanted = identity if identity is not None else name
        seen = yield from _seen(question, type_)
        for start in range(0, len(seen), LOOKED_AT_A_SLICE):
            for state in seen[start : start + LOOKED_AT_A_SLICE]:
                if value(view, state) == wanted:
                    return type_, state
            yield
    what = f"identity {shown(identity)}" if identity is not None else f"name {shown(name)}"
    of = types[0].name if asked is not None else "entity"
    raise ManagementError(Status.NOT_FOUND, f"{view.name} has no {of} with the {what}, or you may not see it")


def _read(question: Question) -> Steps:
    if question.request.text("type") == MANAGEMENT_TYPE:
        itself = {"name": "self", "identity": "self", "type": MANAGEMENT_TYPE}
        return question.ok(encode(itself))
    type_, state = yield from find(question)
    return question.ok(encode(attributes_of(question.view, type_, state)))


def attributes_of(view: ManagedNode, type_: EntityType, state: Any) -> dict[str, Any]:
    """Return all attributes of an entity, as `wire.codec.values` encodes them."""
    return {each.name: each.of(view, state) for each in type_.attributes}


def _known(name: str) -> EntityType:
    found = type_of(name)
    if found is None:
        names = ", ".join(each.name for each in TYPES)
        raise ManagementError(Status.BAD_REQUEST, f"unknown entity type {shown(name)}: expected one of {names}")
    return found


# Types
def _asked(question: Question) -> Iterable[EntityType]:
    name = question.request.text("entityType")
    return TYPES if name is None or name == MANAGEMENT_TYPE else (_known(name),)


def _types(question: Question) -> dict[str, Any]:
    return {each.name: [] for each in _asked(question)}


def _attributes(question: Question) -> dict[str, Any]:
    return {each.name: list(each.names) for each in _asked(question)}


def _operations(question: Question) -> dict[str, Any]:
    found: dict[str, Any] = {each.name: list(each.operations) for each in _asked(question)}
    if question.request.text("entityType") in (None, MANAGEMENT_TYPE):
        found[MANAGEMENT_TYPE] = list(OPERATIONS)
    return found


def _annotations(question: Question) -> dict[str, Any]:
    return {}


def _nodes(question: Question) -> list[str]:
    return management_addresses(question.view.topology)


def management_addresses(topology: Topology) -> list[str]:
    """Return the address of management of each router of the mesh; brokers are managed by the same form of address."""
    return [f"amqp:/{AREA_PREFIX}{name}/{MANAGEMENT}" for name in topology.routers]


def schema(question: Question) -> dict[str, Any]:
    """Return the types with their attributes, as Dispatch's schema has them."""
    found: dict[str, Any] = {each.short_name: _described(each) for each in TYPES}
    # qdstat looks the settings of a virtual host up before it asks for virtual hosts.
    found["vhostUserGroupSettings"] = {"attributes": {}, "operations": []}
    return {"prefix": PREFIX.rstrip("."), "entityTypes": found}


def _described(type_: EntityType) -> dict[str, Any]:
    attributes = {
        each.name: {
            "type": each.type.value,
            "description": each.meaning,
            "required": False,
            "unique": each.name == "identity",
            "create": False,
            "update": each.name in type_.updated,
        }
        for each in type_.attributes
    }
    return {"description": type_.meaning, "attributes": attributes, "operations": list(type_.operations)}


_ABOUT_TYPES: Final[dict[str, Any]] = {
    "GET-TYPES": _types,
    "GET-ATTRIBUTES": _attributes,
    "GET-OPERATIONS": _operations,
    "GET-ANNOTATIONS": _annotations,
    "GET-MGMT-NODES": _nodes,
    "GET-SCHEMA": schema,
    "GET-JSON-SCHEMA": lambda question: json.dumps(schema(question)),
}
"""By operation, the function that returns the body of the answer."""


def run(steps: Steps) -> bytes:
    """Return the result of ``steps`` at once, for callers that have no event loop to care for."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: bytes = end.value
        return result
