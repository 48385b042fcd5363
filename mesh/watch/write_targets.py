"""The entity that a request for a change names in its path, and the body of the request.

Ids have a node's name, and for all but nodes a slash and one more segment: a number that the node gave, or the name of
a neighbor. Neither has a slash, so that `/api/queues/b1/7/purge` says which part is the id; `b1%2F7` is the same. Names
of addresses are in no id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesh.watch.mesh_requests import SHOWS
from mesh.watch.states import GETTERS
from mesh.watch.write_request import MAX_BODY_BYTES, WriteRefused
from recording.entities import BY_PLURAL, NODE

if TYPE_CHECKING:
    from starlette.requests import Request

    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel
    from mesh.watch.visible_rows import VisibleRows
    from recording.entities import Entity

_SHOWN_CHARS = 80


def path_of(path: str, entity: Entity) -> str:
    """Return ``path`` with the segments of an id in place of `{id}`, as routes of starlette have them."""
    return path.replace("{id}", "{node}" if entity is NODE else "{node}/{of_node}")


def id_of(request: Request) -> str:
    return "/".join(request.path_params[name] for name in ("node", "of_node") if name in request.path_params)


def find(host: HostModel, rows: VisibleRows, topology: Topology, plural: str, id_: str) -> Any:
    """Return the state of an entity that ``rows`` shows.

    Raises WriteRefused: 501 for an existing broker's, 502 for one of a node that does not run here, 404 for an unknown.
    """
    entity = BY_PLURAL[plural]
    name = id_.partition("/")[0]
    broker = topology.brokers.get(name)
    if broker is not None and not broker.is_embedded:
        raise WriteRefused(
            501, f"{name} is an existing broker: use its own tools, as amqpmesh looks into and changes the queues of "
            "its embedded brokers only"
        )  # fmt: skip
    node = host.nodes.get(name)
    if (name in topology.brokers or name in topology.routers) and (node is None or node.is_over):
        raise WriteRefused(502, f"{name} does not run on this host. {SHOWS}")
    value_of = GETTERS[entity]["id"]
    found = next((each for each in host.states(entity) if value_of(each) == id_), None)
    if found is None or not rows.has(entity, found):
        raise WriteRefused(404, f"there is no {entity.name} {id_[:_SHOWN_CHARS]!r} now")
    return found


async def body_of(request: Request) -> bytes:
    """Return the body. Raises WriteRefused for a longer one than MAX_BODY_BYTES."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise WriteRefused(400, f"expected a body of at most {MAX_BODY_BYTES:,} bytes", "body")
    return bytes(body)
