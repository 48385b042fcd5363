"""What does a router call a client's link at a broker?

All routers are one container to a broker, so whose link it is has to be in its name. ``connection`` tells links apart
that their clients do not mean to find again: programs that never set a container-id would steal each other's. [2.6.1]

    that lasts, or is asked for by name alone   <container-id>|<link name>
    of a shared subscription                    <container-id>%7C<subscription>|...|<connection>
    of one that is global                       <subscription>|...|<connection>
    any other                                   <container-id>|<link name>|<connection>

What is before the first ``|`` of a shared one names the subscription, here as for clients: so it is read by every
broker that knows shared subscriptions. In a container-id ``|`` is written ``%7C``, and ``%`` as ``%25``.
"""

from __future__ import annotations

DELIMITER = "|"


def lasting(container_id: str, link_name: str) -> str:
    return f"{_quoted(container_id)}{DELIMITER}{link_name}"


def passing(container_id: str, link_name: str, connection: str) -> str:
    return f"{lasting(container_id, link_name)}{DELIMITER}{connection}"


def sharing(container_id: str, link_name: str, connection: str, *, is_global: bool) -> str:
    subscription = subscription_of(link_name)
    others = link_name[len(subscription) :]
    scoped = subscription if is_global else _quoted(lasting(container_id, subscription))
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


def _quoted(text: str) -> str:
    return text.replace("%", "%25").replace(DELIMITER, "%7C")


def _unquoted(text: str) -> str:
    return text.replace("%7C", DELIMITER).replace("%25", "%")
