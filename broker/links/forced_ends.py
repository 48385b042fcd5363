"""Closing of a broker's connections and links by an operator's request (`wire.forced_end`).

Deliveries under way end as when the peer had been lost: a message that was not stored yet was not accepted, and what a
consumer had without an outcome returns to its queue as tried.
"""

from __future__ import annotations

from broker.links.attachments import Attachments
from broker.links.link_log import BrokerLinkLog
from broker.links.link_name import name_of
from broker.queueing.subscription_owners import claim_of
from wire.endpoint import Endpoint
from wire.forced_end import ForcedEnd, unknown_number
from wire.link import Link
from wire.log import Emit
from wire.log_events import ConnectionForced, LinkForced
from wire.routed_name import DELIMITER
from wire.transport.tls import Role


class BrokerForcedEnds:
    """Closes connections and links of broker ``name``, by the numbers that the link log gave them."""

    def __init__(self, name: str, link_log: BrokerLinkLog, attachments: Attachments, log: Emit) -> None:
        self._name = name
        self._link_log = link_log
        self._attachments = attachments
        self._log = log

    def close_connection(self, number: int, forced: ForcedEnd) -> None:
        """Close the connection of a router or operator; a router connects again.

        Raises ValueError if there is no connection with this number.
        """
        endpoint = self.endpoint(number)
        links = len(endpoint.links)
        endpoint.force_close(forced.of_connection())
        self._log(
            ConnectionForced(
                connection=number,
                client=_describe(endpoint),
                user=endpoint.peer.user or endpoint.peer.mesh_name,
                links=links,
                operator=forced.operator,
                reason=forced.reason,
            )
        )

    def close_link(self, connection: int, number: int, forced: ForcedEnd, now: float) -> None:
        """Close a link that a client attached over its router, or that an operator attached: both of its sides end.

        Raises ValueError if there is no such link, or it is a router's own, for all its clients of an address.
        """
        endpoint = self.endpoint(connection)
        links = self._link_log.links_of(endpoint)
        link = links.get(number)
        if link is None:
            raise unknown_number(f"link of connection {self._name}/{connection}", number, links)
        if not _is_of_client(link):
            raise ValueError(
                f"link {self._name}/{number} is the router's own, for all clients of its address: expected a link of a "
                "client; close the client's link at its router"
            )
        address, user = getattr(link.owner, "address", None), claim_of(link).user
        self._attachments.force_end(link, forced.of_link(), now)
        self._log(
            LinkForced(
                connection=connection,
                number=number,
                client=_describe(endpoint),
                user=user,
                link=name_of(link),
                address=address,
                operator=forced.operator,
                reason=forced.reason,
            )
        )

    def endpoint(self, number: int) -> Endpoint:
        """Return the endpoint of the open connection with this number. Raises ValueError if there is none."""
        found = self._link_log.endpoint_of(number)
        if found is None or not found.is_local_open:
            raise unknown_number(f"open connection of broker {self._name}", number, self._link_log.connection_numbers())
        return found


def _describe(endpoint: Endpoint) -> str:
    return f"{endpoint.peer_name} at {endpoint.peer.remote_address}"


def _is_of_client(link: Link) -> bool:
    """Whether the link is of a client or operator: a router gives only clients' links a name with ``|``."""
    return DELIMITER in link.name or link.endpoint.peer.mesh_role is Role.OPERATOR
