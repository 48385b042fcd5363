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

import re
from typing import NamedTuple

from addressing.address import DEFAULT_SPACE
from wire import routed_name
from wire.routed_name import DELIMITER

_SHARED, _PASSING = "shared", "volatile"
_GLOBAL = "global"
_MARKS = {_SHARED: ("shared",), _PASSING: ("shared", "not durable")}


class SubscriptionKey(NamedTuple):
    """The key by which links find a subscription: two texts, which the store keeps for a durable subscription.

    A subscription of one link has the container-id and link name of the link; all routers have the mesh's name as their
    container-id, and put the client's container-id before the link name.

        one link          container-id, link name        a container-id that begins with | has another | before it
        shared            |shared|container-id, name     container-id of the client, also if it came through a router
        shared by anybody |shared, name
        not durable       |volatile..., name             shared, too; never stored

    A subscription of another space than the default space has the space in its key: ``|shared(acme)|...`` if the
    subscription is shared, else in the link name, as `wire.routed_name` writes the space.
    """

    container_id: str
    link_name: str

    @property
    def text(self) -> str:
        """The key as text for people.

        ``mesh|app|reader`` is of one link over a router, ``app|reader (shared)`` shared by the links of client app,
        ``reader (shared, global)`` by the links of all clients.
        """
        shared = self.shared_part
        if shared is None:
            return f"{self.container_id.removeprefix(DELIMITER)}{DELIMITER}{self.link_name}"
        whose = self.link_name if shared.scope is None else f"{shared.scope}{DELIMITER}{self.link_name}"
        marks = [*_MARKS[shared.kind], *([_GLOBAL] if shared.scope is None else [])]
        return f"{whose} ({', '.join([*marks, *([f'space {shared.space}'] if shared.space else [])])})"

    @property
    def shared_part(self) -> _SharedPart | None:
        """The parts of the first text of a shared subscription's key; None for a subscription of one link."""
        found = _SHARED_PART.fullmatch(self.container_id)
        return None if found is None else _SharedPart(found[1], found[2] or "", found[3])


class _SharedPart(NamedTuple):
    """Kind, space and scope of a shared subscription; the scope is its client's container-id, None for all clients."""

    kind: str
    space: str
    scope: str | None

    @property
    def text(self) -> str:
        head = f"{DELIMITER}{self.kind}({self.space})" if self.space else DELIMITER + self.kind
        return head if self.scope is None else f"{head}{DELIMITER}{self.scope}"


_SHARED_PART = re.compile(r"\|(shared|volatile)(?:\(([^)|]+)\))?(?:\|(.*))?", re.DOTALL)


class Subscribers:
    """Makes keys of subscriptions from container-ids and link names; ``mesh`` is the container-id of all routers."""

    def __init__(self, mesh: str) -> None:
        self._mesh = mesh

    def own(self, container_id: str, link_name: str) -> SubscriptionKey:
        """Return the key of the durable subscription that the link of this name has for itself, unshared."""
        return SubscriptionKey(DELIMITER * container_id.startswith(DELIMITER) + container_id, link_name)

    def shared(self, container_id: str, link_name: str, *, is_global: bool, is_durable: bool) -> SubscriptionKey:
        kind = _SHARED if is_durable else _PASSING
        space, link_name = self._split_space(container_id, link_name)
        name = routed_name.subscription_of(link_name)
        if is_global:
            return _shared_key(kind, space, None, name)
        read = routed_name.read_sharing(link_name) if container_id == self._mesh else None
        scope, name = read or (container_id, name)
        return _shared_key(kind, space, scope, name)

    def recalled(self, container_id: str, link_name: str) -> tuple[SubscriptionKey, SubscriptionKey]:
        """Return the keys that a link with a null source may mean: of the unshared, then the shared subscription."""
        space, scope, client_name = self._client(container_id, link_name)
        name, _, suffix = client_name.rpartition(DELIMITER)
        is_global = suffix == _GLOBAL and bool(name)
        shared = _shared_key(_SHARED, space, *((None, name) if is_global else (scope, client_name)))
        return self.own(container_id, link_name), shared

    def shared_alike(self, container_id: str, link_name: str) -> tuple[SubscriptionKey, ...]:
        """Return the keys of shared durable subscriptions with the same name as this link's unshared subscription."""
        return (_shared_key(_SHARED, *self._client(container_id, link_name)),)

    def own_alike(self, key: SubscriptionKey) -> tuple[SubscriptionKey, ...]:
        """Return the keys of unshared durable subscriptions with the same name as the shared subscription of ``key``.

        Empty if the shared subscription is not durable, or is global: shared by all clients.
        """
        shared = key.shared_part
        if shared is None or shared.kind != _SHARED or shared.scope is None:
            return ()
        routed = self.own(self._mesh, routed_name.lasting(shared.scope, key.link_name, space=shared.space))
        return (routed,) if shared.space else (self.own(shared.scope, key.link_name), routed)

    def _client(self, container_id: str, link_name: str) -> tuple[str, str, str]:
        """Return space, container-id and link name of the client behind a link."""
        space, link_name = self._split_space(container_id, link_name)
        read = routed_name.read_lasting(link_name) if container_id == self._mesh else None
        return space, *(read or (container_id, link_name))

    def _split_space(self, container_id: str, link_name: str) -> tuple[str, str]:
        """Return (space, rest of the link name); only routers mark link names with a space."""
        return routed_name.split_space(link_name) if container_id == self._mesh else (DEFAULT_SPACE, link_name)


def _shared_key(kind: str, space: str, scope: str | None, name: str) -> SubscriptionKey:
    return SubscriptionKey(_SharedPart(kind, space, scope).text, name)
