"""Addresses of management: those to which clients send requests, and those over which routers and observers pass them.

Clients use the names of Qpid Dispatch: ``$management`` is the node that the client is connected to, and a path with the
name of a node, as in ``_topo/0/r2/$management``, is that node, wherever it is.
"""

from __future__ import annotations

import re
from typing import Final

from addressing.address import MESH_PREFIX, normalize

MANAGEMENT: Final = "$management"
REQUESTS_ADDRESS: Final = f"{MESH_PREFIX}management"
"""Source of the link over which one router gives clients' requests to an observer of its host; at that router only."""
MANAGEMENT_PREFIX: Final = f"{MESH_PREFIX}management/"
"""Begins the address at which observers answer for a node of their host: ``_amqpmesh/management/<node>``."""
MAX_NODE_CHARS: Final = 255
_OF_A_NODE: Final = re.compile(rf"(?:_topo/[^/]+|_edge)/([^/]{{1,{MAX_NODE_CHARS}}})/\$management", re.DOTALL)

NODE_PROPERTY: Final = "node"
USER_PROPERTY: Final = "user"
OWNER_PROPERTY: Final = "is_owner"
"""Application properties of the message in which a router gives a request to an observer. The body is the request, as
the client encoded it. A client without a login has no user."""


def managed_node(address: str, own_node: str) -> str | None:
    """Return the node that a client manages by sending to ``address``; None if ``address`` is not one of management.

    ``own_node``: the node to which the client is connected. The node that is returned need not exist.
    """
    # The end of the address decides nearly always, without the regular expression: this is asked at each attach.
    if not address.endswith(MANAGEMENT):
        return None
    name = normalize(address)
    if name == MANAGEMENT:
        return own_node
    found = _OF_A_NODE.fullmatch(name)
    return found[1] if found else None


def management_address(node: str) -> str:
    """Return the address at which the observer of the host of ``node`` answers."""
    return MANAGEMENT_PREFIX + node
