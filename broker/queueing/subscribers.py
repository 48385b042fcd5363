"""Keys of subscriptions: which subscription a link takes from, and which links share a subscription.

Shared subscriptions work as JMS is mapped to AMQP by Qpid JMS 2.10 (``AmqpConsumerBuilder``,
``AmqpSubscriptionTracker``) and served by ActiveMQ Artemis 2.56 (``DefaultSenderController``): the source has the
capability ``shared``, and the part of the link name before the first ``|`` names the subscription, within the client's
container-id or, with the capability ``global`` (a JMS client without a client id), for all clients. Links of one client
need different names:

                      with a client id            without
    durable           name, name|2, ...           name|global, name|global2, ...
    not durable       name|volatile1, ...         name|global-volatile1, ...
    unsubscribe       name, null source           name|global, null source

A durable and a non-durable subscription of the same name are two subscriptions. A shared and an unshared durable
subscription may not have the same name (JMS 2.0, ``Session.createSharedDurableConsumer``): ``unsubscribe`` could mean
either.
"""

from __future__ import annotations

from typing import NamedTuple

from wire import routed_name
from wire.routed_name import DELIMITER

_SHARED, _PASSING = f"{DELIMITER}shared{DELIMITER}", f"{DELIMITER}volatile{DELIMITER}"
_GLOBAL = "global"


class SubscriptionKey(NamedTuple):
    """The key by which links find a subscription: two texts, which the store keeps for a durable subscription.

    A subscription of one link has the container-id and link name of the link; all routers have the mesh's name as their
    container-id, and put the client's container-id before the link name.

        one link          container-id, link name        a container-id that begins with | has another | before it
        shared            |shared|container-id, name     container-id of the client, also if it came through a router
        shared by anybody |shared, name
        not durable       |volatile..., name             shared, too; never stored
    """

    container_id: str
    link_name: str

    @property
    def text(self) -> str:
        """The key as shown to people: ``mesh|app|reader``, ``app|reader (shared)``, ``reader (shared, global)``."""
        kind, scope, marks = self._read()
        whose = self.link_name if scope is None else f"{scope}{DELIMITER}{self.link_name}"
        return f"{whose} ({', '.join(marks)})" if kind else whose

    def _read(self) -> tuple[str, str | None, list[str]]:
        for kind, marks in ((_SHARED, ["shared"]), (_PASSING, ["shared", "not durable"])):
            if self.container_id == kind[:-1]:
                return kind, None, [*marks, _GLOBAL]
            if self.container_id.startswith(kind):
                return kind, self.container_id[len(kind) :], marks
        return "", self.container_id.removeprefix(DELIMITER), []


class Subscribers:
    """Makes keys of subscriptions from the names of links. ``mesh`` is the container-id that every router shows."""

    def __init__(self, mesh: str) -> None:
        self._mesh = mesh

    def own(self, container_id: str, link_name: str) -> SubscriptionKey:
        """The key of a durable subscription that one link has for itself."""
        return SubscriptionKey(DELIMITER * container_id.startswith(DELIMITER) + container_id, link_name)

    def shared(self, container_id: str, link_name: str, *, is_global: bool, is_durable: bool) -> SubscriptionKey:
        kind = _SHARED if is_durable else _PASSING
        name = routed_name.subscription_of(link_name)
        if is_global:
            return SubscriptionKey(kind[:-1], name)
        read = routed_name.read_sharing(link_name) if container_id == self._mesh else None
        scope, name = read or (container_id, name)
        return SubscriptionKey(kind + scope, name)

    def recalled(self, container_id: str, link_name: str) -> tuple[SubscriptionKey, SubscriptionKey]:
        """The keys that a link with a null source may mean, in order: the unshared, then the shared subscription."""
        scope, client_name = self._client(container_id, link_name)
        name, _, suffix = client_name.rpartition(DELIMITER)
        is_global = suffix == _GLOBAL and bool(name)
        shared = SubscriptionKey(_SHARED[:-1], name) if is_global else SubscriptionKey(_SHARED + scope, client_name)
        return self.own(container_id, link_name), shared

    def shared_alike(self, container_id: str, link_name: str) -> tuple[SubscriptionKey, ...]:
        """Keys of shared durable subscriptions with the same name as this link's unshared subscription."""
        scope, client_name = self._client(container_id, link_name)
        return (SubscriptionKey(_SHARED + scope, client_name),)

    def own_alike(self, key: SubscriptionKey) -> tuple[SubscriptionKey, ...]:
        """Keys of unshared durable subscriptions with the same name as this shared key; none for a global key."""
        if not key.container_id.startswith(_SHARED):
            return ()
        scope = key.container_id[len(_SHARED) :]
        return self.own(scope, key.link_name), self.own(self._mesh, routed_name.lasting(scope, key.link_name))

    def _client(self, container_id: str, link_name: str) -> tuple[str, str]:
        read = routed_name.read_lasting(link_name) if container_id == self._mesh else None
        return read or (container_id, link_name)
