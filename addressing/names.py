"""Valid names of meshes, routers, brokers, spaces and users."""

from __future__ import annotations

import re

from addressing.errors import BadValue

NODE_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
USER_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@+-]{0,254}$"

# User name for the permissions and limits of a connection that did not authenticate.
ANONYMOUS = "anonymous"

_NODE_NAME = re.compile(NODE_NAME_PATTERN[1:-1])
_USER_NAME = re.compile(USER_NAME_PATTERN[1:-1])


def check_node_name(name: str) -> str:
    """Return ``name``; raise BadValue if no mesh, router or broker may have the name."""
    if not _NODE_NAME.fullmatch(name):
        raise BadValue(
            f"{name!r} is not a valid name: expected 1 to 64 of A-Z a-z 0-9 _ . - beginning with a letter or digit",
            "AM107",
        )
    return name


def check_router_name(name: str) -> str:
    if name == "all":
        raise BadValue("'all' is not a valid name of a router: 'all' means every router", "AM107")
    return check_node_name(name)


def check_user_name(name: str) -> str:
    if not _USER_NAME.fullmatch(name):
        raise BadValue(
            f"{name!r} is not a valid user name: expected 1 to 255 of A-Z a-z 0-9 _ . @ + - "
            "beginning with a letter or digit",
            "AM107",
        )
    return name


def check_space_name(name: str) -> str:
    """Return ``name``; raise BadValue if the name is not valid for a space beside the default space, which is \"\"."""
    return check_node_name(name)


def similar_node_name(name: str) -> str:
    """Return a valid name of a node to suggest for ``name``: a dash replaces each run of invalid characters."""
    return _similar(name, r"[^A-Za-z0-9_.-]+", 64)


def similar_user_name(name: str) -> str:
    return _similar(name, r"[^A-Za-z0-9_.@+-]+", 255)


def _similar(name: str, forbidden: str, length: int) -> str:
    if name == "all":
        return "all-1"
    return re.sub(forbidden, "-", name).strip("-_.@+")[:length] or "n1"
