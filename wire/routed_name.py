"""Names that routers give the links to a broker that they open for links of clients.

All routers are one container to a broker, so the link's name has to identify the client. A link that its client does
not resume also has the ``connection`` in its name: clients with equal container-ids would steal each other's links
otherwise. [2.6.1]

    durable link, or link without an address    <container-id>|<link name>
    link of a shared subscription               <container-id>%7C<subscription>|...|<connection>
    link of a global shared subscription        <subscription>|...|<connection>
    any other link                              <container-id>|<link name>|<connection>

At an existing broker with ``subscriptions: by_user`` in the topology, ``<user>|`` stands before the last form,
``<user>%7C`` before the forms of shared subscriptions, and the first form is ``<user>%7C<container-id>%7C<link name>``:
an Artemis broker never deletes a subscription that is not shared and has ``|`` in its name, though its link is closed.
An embedded broker reads the user from the link property `USER`, so names stay as they are.

Over a connection that several clients share, ``%[<connection>]`` stands before all of the first form: two clients may
use the same name, and the second attach would end the first link when its frame arrives, before the broker has compared
the users. The broker knows the link by the name without this part.

In the name of a link of another space than the default space, ``%(<space>)`` stands before all of these forms, so that
equal container-ids and link names of two spaces are two names. Quoted text never begins with ``%(`` or ``%[``. If the
name of a global shared subscription of the default space does, ``%()`` stands before the name.

The part of the name before the first ``|`` names a shared subscription, here as for clients: so every broker that knows
shared subscriptions reads the name. In a container-id ``|`` is written ``%7C``, and ``%`` as ``%25``.
"""

from __future__ import annotations

DELIMITER = "|"
USER = "amqpmesh.user"
"""Property of a router's link at an embedded broker: the user of the link. Only nodes set the property, since routers
copy no property of a client's link; a link without the property belongs to a node or an operator."""

_SPACE_BEGIN, _SPACE_END = "%(", ")"
_APART_BEGIN, _APART_END = "%[", "]"


def lasting(container_id: str, link_name: str, user: str | None = None, space: str = "") -> str:
    name = f"{_of(user)}{_quoted(container_id)}{DELIMITER}{link_name}"
    return _within(space, name if user is None else _quoted(name))


def passing(container_id: str, link_name: str, connection: str, user: str | None = None, space: str = "") -> str:
    return _within(space, f"{_of(user)}{lasting(container_id, link_name)}{DELIMITER}{connection}")


def sharing(
    container_id: str, link_name: str, connection: str, *, is_global: bool, user: str | None = None, space: str = ""
) -> str:
    subscription = subscription_of(link_name)
    others = link_name[len(subscription) :]
    if not is_global:
        scoped = _quoted(f"{_of(user)}{lasting(container_id, subscription)}")
    else:
        scoped = subscription if user is None else _quoted(_of(user) + subscription)
    return _within(space, f"{scoped}{others}{DELIMITER}{connection}")


def is_of_connection(name: str, client: str) -> bool:
    """Whether ``name`` ends in the connection ``client``, so that no link of another connection has the name."""
    return name.endswith(f"{DELIMITER}{client}")


def apart(name: str, client: str) -> str:
    """Return a name for the link ``name`` of the connection ``client`` that no link of another connection has."""
    return name if is_of_connection(name, client) else f"{_APART_BEGIN}{client}{_APART_END}{name}"


def known(name: str) -> str:
    """Return the name by which a broker knows the link ``name``: without the part that `apart` adds."""
    return name.partition(_APART_END)[2] if name.startswith(_APART_BEGIN) else name


def client(name: str) -> str | None:
    """Return the connection of the client for which a router made the link ``name`` at an embedded broker.

    None if the name has no client's connection.
    """
    if name.startswith(_APART_BEGIN):
        return name[len(_APART_BEGIN) :].partition(_APART_END)[0]
    _, delimiter, last = name.rpartition(DELIMITER)
    return last if delimiter else None


def split_space(name: str) -> tuple[str, str]:
    """Return (space of the client, rest of the name) of a name that a router gave a link; "" is the default space."""
    if not name.startswith(_SPACE_BEGIN):
        return "", name
    space, _, rest = name[len(_SPACE_BEGIN) :].partition(_SPACE_END)
    return space, rest


def subscription_of(link_name: str) -> str:
    """Return the subscription in a link's name, the part before the first ``|``; links that share it differ behind."""
    return link_name.partition(DELIMITER)[0]


def read_lasting(name: str) -> tuple[str, str] | None:
    """Return (container-id, link name) of the client from a name that `lasting` made, without the space.

    The name must have been made without a user. None for a name without ``|``.
    """
    container_id, delimiter, link_name = name.partition(DELIMITER)
    return (_unquoted(container_id), link_name) if delimiter else None


def read_sharing(name: str) -> tuple[str, str] | None:
    """Return (container-id, subscription) of the client from a name that `sharing` made, without the space.

    The name must have been made without a user. None for a global shared subscription.
    """
    return read_lasting(_unquoted(subscription_of(name)))


def _within(space: str, name: str) -> str:
    return (
        f"{_SPACE_BEGIN}{space}{_SPACE_END}{name}" if space or name.startswith((_SPACE_BEGIN, _APART_BEGIN)) else name
    )


def _of(user: str | None) -> str:
    return "" if user is None else f"{_quoted(user)}{DELIMITER}"


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace(DELIMITER, "%7C")


def _unquoted(text: str) -> str:
    return text.replace("%7C", DELIMITER).replace("%25", "%")
