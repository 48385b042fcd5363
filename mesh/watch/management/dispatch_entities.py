"""All entity types of management, in the order in which a query without a type has them."""

from __future__ import annotations

from typing import Final

from mesh.watch.management import config_types, link_types, router_types
from mesh.watch.management.entity_types import PREFIX, EntityType

MANAGEMENT_TYPE: Final = "org.amqp.management"
"""Type of the management node itself, to which requests other than those for entities go."""
TYPES: Final = (
    router_types.ROUTER,
    link_types.CONNECTION_TYPE,
    link_types.LINK_TYPE,
    link_types.ADDRESS_TYPE,
    router_types.NODE_TYPE,
    router_types.QUEUE_TYPE,
    config_types.ADDRESS,
    config_types.AUTO_LINK,
    config_types.LINK_ROUTE,
    config_types.LISTENER,
    config_types.CONNECTOR,
    config_types.LOG,
    config_types.LOG_STATS,
    config_types.ALLOCATOR,
    config_types.POLICY,
    config_types.VHOST,
    config_types.VHOST_STATS,
)
BY_NAME: Final[dict[str, EntityType]] = {each.name: each for each in TYPES}
ALL_NAMES: Final = tuple(dict.fromkeys(name for each in TYPES for name in each.names))
"""The attributes of all types together."""


def type_of(name: str) -> EntityType | None:
    """Return the type ``name``, which may be without the prefix of Dispatch; None if there is none."""
    return BY_NAME.get(name) or BY_NAME.get(PREFIX + name)
