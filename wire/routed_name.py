"""What does a router call a client's link at a broker?

All routers are one container to a broker, so whose link it is has to be in its name. ``connection`` tells links apart
that their clients do not mean to find again: programs that never set a container-id would steal each other's. [2.6.1]

    that lasts, or is asked for by name alone   <container-id>|<link name>
    of a shared subscription                    <container-id>%7C<subscription>|...|<connection>
    of one that is global                       <subscription>|...|<connection>
    any other                                   <container-id>|<link name>|<connection>

At an existing broker with ``subscriptions: by_user`` in the topology, ``<user>|`` stands before the last, ``<user>%7C``
before those of shared subscriptions, and the first is ``<user>%7C<container-id>%7C<link name>``: an Artemis deletes no
subscription that is not shared and has ``|`` in its name, though its link is closed.
An embedded broker hears of the user in the link property `USER`, so that names stay as they are.

What is before the first ``|`` of a shared one names the subscription, here as for clients: so it is read by every
broker that knows shared subscriptions. In a container-id ``|`` is written ``%7C``, and ``%`` as ``%25``.
"""

from __future__ import annotations

DELIMITER = "|"
USER = "amqpmesh.user"
"""Property of a router's link at an embedded broker: the user whose link it is. Of nodes only: routers copy no property
of a client's link, and a link without it is a node's or an operator's."""


def lasting(container_id: str, link_name: str, user: str | None = None) -> str:
    name = f"{_of(user)}{_quoted(container_id)}{DELIMITER}{link_name}"
    return name if user is None else _quoted(name)


def passing(container_id: str, link_name: str, connection: str, user: str | None = None) -> str:
    return f"{_of(user)}{lasting(container_id, link_name)}{DELIMITER}{connection}"


def sharing(container_id: str, link_name: str, connection: str, *, is_global: bool, user: str | None = None) -> str:
    subscription = subscription_of(link_name)
    others = link_name[len(subscription) :]
    if not is_global:
        scoped = _quoted(f"{_of(user)}{lasting(container_id, subscription)}")
    else:
        scoped = subscription if user is None else _quoted(_of(user) + subscription)
    return f"{scoped}{others}{DELIMITER}{connection}"


def subscription_of(link_name: str) -> str:
    """The links of a client that share a subscription have different names: what comes after it is theirs."""
    return link_name.partition(DELIMITER)[0]


def read_lasting(name: str) -> tuple[str, str] | None:
    """The client's container-id and link name; None for what `lasting` did not make."""
    container_id, delimiter, link_name = name.partition(DELIMITER)
    return (_unquoted(container_id), link_name) if delimiter else None


def read_sharing(name: str) -> tuple[str, str] | None:
    """The client's container-id and its subscription; None for what `sharing` did not make, or is global."""
    return read_lasting(_unquoted(subscription_of(name)))


def _of(user: str | None) -> str:
    return "" if user is None else f"{_quoted(user)}{DELIMITER}"


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace(DELIMITER, "%7C")


def _unquoted(text: str) -> str:
    return text.replace("%7C", DELIMITER).replace("%25", "%")
