"""The reference of management is current, and has every operation, type and attribute.

``REWRITE=1 pytest mesh_tests/unit/test_management_reference.py`` makes it anew; the diff is for review.
"""

from __future__ import annotations

from collections.abc import Iterator

from mesh.watch.management.agent import ANSWER_S, AT_ONCE, FORWARD_S, MAX_LOG_LINES
from mesh.watch.management.answering import OPERATIONS
from mesh.watch.management.dispatch_entities import TYPES
from mesh.watch.management.entity_types import Attribute, EntityType
from mesh.watch.management.protocol import MAX_ROWS
from mesh_tests.unit.addressing.topology.test_generated_files import ROOT, assert_current
from router.clients.management import CREDIT, REQUEST_BYTES

REFERENCE = ROOT / "docs" / "reference" / "management.md"
HEAD = f"""\
# Management over AMQP: `$management`

Nodes are managed over AMQP in the words of Qpid Dispatch, so that its `qdstat` and `qdmanage` work unchanged
([how to use them](../how-to/qdstat-and-qdmanage.md)). This page is made from `mesh/watch/management/`; a test compares.

## Addresses

| address | node |
|---|---|
| `$management` | the router that the client is connected to |
| `_topo/0/NODE/$management` | the router or embedded broker NODE, wherever it is |
| `_edge/NODE/$management` | the same |

An address may begin with `amqp:` or `amqp:/`. `reply-to` of a request is the address of a dynamic source of the mesh.
A request may have {REQUEST_BYTES:,} bytes, and {CREDIT} may be under way over a link. The observer of a host
(`amqpmesh watch`) answers for all nodes there, {AT_ONCE} requests at the same time; without an observer, the router
refuses the link. An answer is dropped if its client grants no credit for {ANSWER_S:g} s. A node of another host, whose
observer takes no request within {FORWARD_S:g} s, is answered with 504.

## Requests

The application property `operation` says what to do; `type`, `name`, `identity`, `entityType`, `offset`, `count` and
`limit` are further ones. Entity types may be without `org.apache.qpid.dispatch.`

| operation | properties | answer |
|---|---|---|
| QUERY | `entityType`, `offset`, `count` (at most {MAX_ROWS:,}) | map of `attributeNames` and `results`, a list of \
lists; the request's body may name the attributes in a list `attributeNames`. The answer's property `count` is the \
number of rows. Without `count`, there are at most {MAX_ROWS:,}, and `statusDescription` says how many there would be |
| READ | `identity` or `name`, `type` | map of all attributes of an entity |
| UPDATE | `identity` or `name`, `type` | map of all attributes after the change; the request's body has those to \
change: `cost` of a connector, `enable` of a log, `adminStatus` = `deleted` of a client's connection or link |
| CREATE, DELETE | | 501: a mesh takes its addresses from the topology file |
| GET-TYPES | `entityType` | map of types to lists of base types, which are empty |
| GET-ATTRIBUTES | `entityType` | map of types to lists of attributes |
| GET-OPERATIONS | `entityType` | map of types to lists of operations |
| GET-ANNOTATIONS | | empty map |
| GET-MGMT-NODES | | list of the addresses by which the routers of the mesh are managed |
| GET-SCHEMA, GET-JSON-SCHEMA | | all types with their attributes, as a map or as a text of JSON |
| GET-LOG | `limit` (at most {MAX_LOG_LINES:,}) | list of the last events in the node's log: name, level, text, null, \
null, seconds since 1970 |

The answer has the correlation-id of the request, with the same AMQP type, or its message-id, if it has none.

| `statusCode` | when |
|---|---|
| 200 | done; `statusDescription` is OK, with a remark on rows that were left out or on a node that is silent |
| 400 | a property, a body or a value is not valid; an unknown type |
| 403 | the user has no right to see, or to change, what the request is about |
| 404 | no such node, entity or attribute. Types marked * answer null for an unknown attribute, as in Dispatch |
| 501 | an operation or a change that there is not |
| 503 | the node does not run, or does not answer |
| 504 | the observer of the node's host does not answer |

## Rights

A user with any of the rights `view`, `browse` and `manage` may send requests; in a mesh without users, everybody may.
Rows of addresses and queues are those that the user may view. Connections and links are those of the user itself, and
all for who views `#`, who also sees logs. Changes need `manage: ['#']`, or an operator's certificate at a node port.

## Entity types

Values may be null: unknown, or not applicable. An attribute with a field is this field of the
[model](entities.md), of one node.
"""


def test_the_reference_has_every_type_and_every_attribute() -> None:
    assert_current(REFERENCE, "\n".join(reference()))


def test_the_reference_has_every_operation() -> None:
    assert all(operation in HEAD for operation in OPERATIONS)


def reference() -> Iterator[str]:
    yield HEAD
    for type_ in TYPES:
        yield from section(type_)


def section(type_: EntityType) -> Iterator[str]:
    mark = " *" if type_.ignores_unknown else ""
    yield from (f"### `{type_.name}`{mark}", "", type_.meaning, "")
    yield from ("| attribute | type | field | meaning |", "|---|---|---|---|")
    yield from (row(each) for each in type_.attributes)
    yield ""


def row(attribute: Attribute) -> str:
    field = f" `{attribute.field}` " if attribute.field else " "
    return f"| `{attribute.name}` | {attribute.type} |{field}| {attribute.meaning} |"
