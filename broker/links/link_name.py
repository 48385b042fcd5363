"""The name by which a broker knows a link: (container-id, link name, direction), whatever the link's connection is."""

from __future__ import annotations

from wire import routed_name
from wire.link import IncomingLink, Link

LinkName = tuple[str, str, bool]


def container_id(link: Link) -> str:
    return link.endpoint.remote.container_id if link.endpoint.remote is not None else ""


def name_of(link: Link) -> str:
    """Return the name of ``link``, without what a router added because several clients share the connection."""
    return routed_name.known(link.name)


def link_name(link: Link) -> LinkName:
    return container_id(link), name_of(link), isinstance(link, IncomingLink)
