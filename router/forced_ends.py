"""Closing of connections and clients' links by an operator's request (`wire.forced_end`).

Deliveries under way end as when the peer had been lost: complete deliveries of a client go on to their takers, and what
a consumer had without an outcome goes to others, by the rules of the address.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.clients.clients import ClientConnection
from router.connections.peers import RouterConnection
from router.forwarding.ends import Inlet, Taker
from router.link_log import RouterLinkLog
from wire.forced_end import ForcedEnd, unknown_number
from wire.link import Link
from wire.log import Emit
from wire.log_events import ConnectionForced, LinkForced


class ForcedEnds:
    """Closes connections and links of router ``router_id``; ``connections`` are the node's, by number."""

    def __init__(
        self, router_id: str, connections: Mapping[int, RouterConnection], link_log: RouterLinkLog, emit: Emit
    ) -> None:
        self._router_id = router_id
        self._connections = connections
        self._link_log = link_log
        self._emit = emit

    def close_connection(self, number: int, forced: ForcedEnd) -> None:
        """Close a connection of any kind; one that this router dialed is dialed again.

        Raises ValueError if there is no connection with this number.
        """
        connection = self.connection(number)
        endpoint = connection.endpoint
        links = len(endpoint.links)
        endpoint.force_close(forced.of_connection())
        self._emit(
            ConnectionForced(
                connection=number,
                client=connection.describe(),
                user=endpoint.peer.user or endpoint.peer.mesh_name,
                links=links,
                operator=forced.operator,
                reason=forced.reason,
            )
        )

    def close_link(self, connection: int, number: int, forced: ForcedEnd) -> None:
        """Close a client's link, and with a link route the link at the broker, too.

        Each address of a producer without a fixed address has a number, and each of these numbers stands for the
        producer's one link. Raises ValueError if there is no such link, or it is a link to a router or broker.
        """
        found = self.connection(connection)
        end = self._link_log.end_of(connection, number)
        if end is None:
            raise unknown_number(
                f"link of connection {self._router_id}/{connection}", number, self._link_log.numbers_of(connection)
            )
        link: Link = end.link
        if not isinstance(found, ClientConnection):
            raise ValueError(self._why_kept(found, number))
        if link.is_gone or link.has_left or link.owner is None:
            raise ValueError(f"link {self._router_id}/{number} is ending already: expected a link that is attached")
        address = _address_of(end)
        found.close_link(link, forced.of_link())
        self._emit(
            LinkForced(
                connection=connection,
                number=number,
                client=found.describe(),
                user=found.endpoint.peer.user,
                link=link.name,
                address=address,
                operator=forced.operator,
                reason=forced.reason,
            )
        )

    def connection(self, number: int) -> RouterConnection:
        """Return the open connection with this number. Raises ValueError if there is none."""
        found = self._connections.get(number)
        if found is None or not found.endpoint.is_local_open:
            known = [each.number for each in self._connections.values() if each.endpoint.is_local_open]
            raise unknown_number(f"open connection of router {self._router_id}", number, known)
        return found

    def _why_kept(self, connection: RouterConnection, number: int) -> str:
        return (
            f"link {self._router_id}/{number} joins this router and {connection.describe()}: expected a link of a "
            f"client; close the client's link, or the connection {self._router_id}/{connection.number}"
        )


def _address_of(end: Inlet | Taker) -> str | None:
    address = getattr(end.group, "address", None)
    if address is not None:
        return str(address.text)
    return end.link.wanted.address
