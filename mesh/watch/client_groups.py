"""Clients as the console shows them: the open connections of one user with one container-id are one entity. Sans-IO."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mesh.watch.states import GETTERS
from recording.entities import Entity, Field, FieldType, Source, Unit

if TYPE_CHECKING:
    from collections.abc import Collection

    from mesh.watch.host_model import HostModel
    from mesh.watch.states import ConnectionState


def _number(name: str, unit: Unit, meaning: str, source: Source = Source.SUM) -> Field:
    return Field(name, FieldType.NUMBER, meaning, source, unit)


CLIENT_GROUP: Final = Entity(
    "client group",
    "clients",
    "The open connections of clients with one user and one container-id. Numbers end with their connections; those of "
    "entity `user` do not.",
    (
        Field("id", FieldType.TEXT, "user and container-id, as a list in JSON", Source.OBSERVER),
        Field("user", FieldType.TEXT, "name of the user; anonymous for clients without one", Source.RECORD),
        Field("container", FieldType.TEXT, "container-id of the clients", Source.RECORD),
        Field("nodes", FieldType.TEXT, "routers that the clients are connected to", Source.RING),
        _number("connections", Unit.CONNECTIONS, "connections that are open", Source.COUNT),
        _number("links", Unit.LINKS, "links that are attached", Source.COUNT),
        _number("waiting_producers", Unit.LINKS, "links that send and have no credit", Source.COUNT),
        _number("in_deliveries", Unit.DELIVERIES, "deliveries from the clients"),
        _number("in_rate", Unit.PER_SECOND, "deliveries from the clients, per second, over the last seconds"),
        _number("out_deliveries", Unit.DELIVERIES, "deliveries to the clients"),
        _number("out_rate", Unit.PER_SECOND, "deliveries to the clients, per second, over the last seconds"),
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

    def add(self, node: str, connection: ConnectionState) -> None:
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


GETTERS[CLIENT_GROUP] = {name: attrgetter(name) for name in CLIENT_GROUP.names}


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
