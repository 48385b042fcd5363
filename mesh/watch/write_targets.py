"""The entity that a request for a change names in its path, and the body of the request.

Ids have a node's name, and for all but nodes a slash and one more segment: a number that the node gave, or the name of
a neighbor. Neither has a slash, so that `/api/queues/b1/7/purge` says which part is the id; `b1%2F7` is the same. The
id of an address is its name, which may have slashes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mesh.watch.mesh_requests import SHOWS
from mesh.watch.write_request import MAX_BODY_BYTES, WriteRefused
from recording.entities import ADDRESS, LINK, NEIGHBOR, NODE, QUEUE

if TYPE_CHECKING:
    from starlette.requests import Request

    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel
    from mesh.watch.states import ObservedNode
    from mesh.watch.visible_rows import VisibleRows
    from recording.entities import Entity

_SHOWN_CHARS: Final = 80
_NUMBER_DIGITS: Final = 20


def path_of(path: str, entity: Entity) -> str:
    """Return ``path`` with the segments of an id in place of `{id}`, as routes of starlette have them."""
    if entity is ADDRESS:
        return path.replace("{id}", "{address:path}")
    return path.replace("{id}", "{node}" if entity is NODE else "{node}/{of_node}")


def id_of(request: Request) -> str:
    parameters = request.path_params
    return "/".join(parameters[name] for name in ("address", "node", "of_node") if name in parameters)


def find(host: HostModel, rows: VisibleRows, topology: Topology, entity: Entity, id_: str) -> Any:
    """Return the state of the ``entity`` with an id, if ``rows`` shows it.

    Raises WriteRefused: 501 for an existing broker's, 502 for one of a node that does not run here, 404 for an unknown.
    """
    name, _, of_node = id_.partition("/")
    broker = topology.brokers.get(name)
    if broker is not None and not broker.is_embedded:
        raise WriteRefused(
            501, f"{name} is an existing broker: use its own tools, as amqpmesh looks into and changes the queues of "
            "its embedded brokers only"
        )  # fmt: skip
    node = host.nodes.get(name)
    if (name in topology.brokers or name in topology.routers) and not runs_here(host, name):
        raise WriteRefused(
            502, f"{name} does not run on this host, and no observer of another host has told of it. {SHOWS}"
        )  # fmt: skip
    found = node if entity is NODE or node is None else _of_node(node, entity, of_node)
    if found is None or not rows.has(entity, found):
        raise WriteRefused(404, f"there is no {entity.name} {id_[:_SHOWN_CHARS]!r} now")
    return found


def runs_here(host: HostModel, node: str) -> bool:
    found = host.nodes.get(node)
    return found is not None and not found.is_over


def _of_node(node: ObservedNode, entity: Entity, segment: str) -> Any:
    """Return the state with the last ``segment`` of its id, or None."""
    if entity is NEIGHBOR:
        return node.neighbors.get(segment)
    # A number has one form only, without zeros before it: else one entity had several ids, and keys of its own by each.
    if not (segment.isascii() and segment.isdecimal()) or str(int(segment[:_NUMBER_DIGITS])) != segment:
        return None
    number = int(segment)
    if entity is LINK:
        link = node.links.get(number)
        return None if link is None or link.is_ended else link
    return (node.queues if entity is QUEUE else node.connections).get(number)


async def body_of(request: Request) -> bytes:
    """Return the body. Raises WriteRefused for a longer one than MAX_BODY_BYTES."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise WriteRefused(400, f"expected a body of at most {MAX_BODY_BYTES:,} bytes", "body")
    return bytes(body)
