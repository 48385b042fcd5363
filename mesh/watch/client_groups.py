"""Groups of clients, for the console: a group has all open connections with the same user and container-id. Sans-IO."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from recording.entities import Entity, EntityField, EntityFieldType, FieldSource, FieldUnit

if TYPE_CHECKING:
    from collections.abc import Collection

    from mesh.watch.host_model import HostModel
    from mesh.watch.states import ObservedConnection


def _number(name: str, unit: FieldUnit, meaning: str, source: FieldSource = FieldSource.SUM) -> EntityField:
    return EntityField(name, EntityFieldType.NUMBER, meaning, source, unit)


CLIENT_GROUP: Final = Entity(
    "client group",
    "clients",
    "The open connections of clients with one user and one container-id. Numbers end with their connections; those of "
    "entity `user` do not.",
    (
        EntityField("id", EntityFieldType.TEXT, "user and container-id, as a list in JSON", FieldSource.OBSERVER),
        EntityField(
            "user", EntityFieldType.TEXT, "name of the user; anonymous for clients without one", FieldSource.RECORD
        ),
        EntityField("container", EntityFieldType.TEXT, "container-id of the clients", FieldSource.RECORD),
        EntityField("nodes", EntityFieldType.TEXT, "routers that the clients are connected to", FieldSource.RING),
        _number("connections", FieldUnit.CONNECTIONS, "connections that are open", FieldSource.COUNT),
        _number("links", FieldUnit.LINKS, "links that are attached", FieldSource.COUNT),
        _number("waiting_producers", FieldUnit.LINKS, "links that send and have no credit", FieldSource.COUNT),
        _number("in_deliveries", FieldUnit.DELIVERIES, "deliveries from the clients"),
        _number("in_rate", FieldUnit.PER_SECOND, "deliveries from the clients, per second, over the last seconds"),
        _number("out_deliveries", FieldUnit.DELIVERIES, "deliveries to the clients"),
        _number("out_rate", FieldUnit.PER_SECOND, "deliveries to the clients, per second, over the last seconds"),
    ),
)


class ClientGroup:
    """Fields are those of CLIENT_GROUP."""

    def __init__(self, user: str, container: str) -> None:
        self.id = json.dumps([user, container], ensure_ascii=False)
        self.user, self.container = user, container
        self.routers: set[str] = set()
        self.connections = self.links = self.waiting_producers = self.in_deliveries = self.out_deliveries = 0
        self.in_rate = self.out_rate = 0.0

    @property
    def nodes(self) -> str:
        return ", ".join(sorted(self.routers))

    def add(self, node: str, connection: ObservedConnection) -> None:
        self.routers.add(node)
        self.connections += 1
        self.links += len(connection.links)
        self.waiting_producers += sum(
            link.is_producer and link.waits_for is not None for link in connection.links.values()
        )
        self.in_deliveries += connection.incoming.deliveries
        self.out_deliveries += connection.outgoing.deliveries
        self.in_rate += connection.incoming.rate
        self.out_rate += connection.outgoing.rate


def client_groups(host: HostModel) -> Collection[ClientGroup]:
    """Return the clients on the host by user and container-id, in no order."""
    groups: dict[tuple[str, str], ClientGroup] = {}
    for node in host.nodes.values():
        for connection in node.connections.values():
            if connection.user is None:
                continue
            key = (connection.user.name, connection.container or "")
            group = groups.get(key)
            if group is None:
                group = groups[key] = ClientGroup(*key)
            group.add(node.name, connection)
    return groups.values()
