"""Place an arriving circuit, a link that another router attached with a circuit spec.

A circuit ends at a group or a broker of this router, or is passed on to the next hop; a multicast's may do both.
"""

from __future__ import annotations

from dataclasses import replace

from addressing.book import SpaceBooks
from router.addresses import RouterAddresses
from router.circuits.circuits import Circuits
from router.circuits.spec import CircuitKind, CircuitSpec, path_lost
from router.routes.egress_route import EgressRoute
from router.routes.link_routes import RoutePaths
from wire.errors import AmqpError
from wire.link import IncomingLink, Link


class CircuitPlacement:
    """Decides where an arriving circuit goes on or ends. All methods raise AmqpError if the circuit can do neither."""

    def __init__(
        self, router_id: str, books: SpaceBooks, addresses: RouterAddresses, circuits: Circuits, ways: RoutePaths
    ) -> None:
        self._router_id = router_id
        self._books = books
        self._addresses = addresses
        self._circuits = circuits
        self._ways = ways

    def of_router(self, link: Link, spec: CircuitSpec) -> None:
        if spec.kind.has_tree and isinstance(link, IncomingLink):
            self._addresses.accept_circuit(link, spec)
        elif spec.egress != self._router_id:
            self._circuits.pass_on(link, spec)
        elif spec.kind is CircuitKind.ROUTE:
            self._end_route(link, spec)
        elif isinstance(link, IncomingLink):
            self._addresses.accept_circuit(link, spec)
        else:
            raise _not_by_receiver(spec)

    def of_edge(self, link: Link, spec: CircuitSpec, number: int) -> None:
        """Place a circuit from an edge router, over the connection ``number``.

        A link route goes on to its broker over a path that this router computes, since an edge router knows no path
        beyond its uplink. Any other circuit ends at the address's group at this router.
        """
        if spec.kind is CircuitKind.ROUTE:
            path = self._ways.path_to(spec.broker)
            if path is None:
                raise path_lost(
                    f"neither router {self._router_id} nor a router in its reach is connected to broker {spec.broker}"
                )
            self.of_router(link, replace(spec, path=path))
        elif isinstance(link, IncomingLink):
            self._addresses.accept_circuit(link, spec, number)
        else:
            raise _not_by_receiver(spec)

    def _end_route(self, link: Link, spec: CircuitSpec) -> None:
        terminus = link.remote_target if isinstance(link, IncomingLink) else link.remote_source
        policy = self._books.resolve(spec.address) if spec.address.name else None
        if spec.address.name and (policy is None or spec.broker not in policy.brokers):
            raise AmqpError(
                "amqp:not-found", f"the topology has no address {spec.address.name!r} at broker {spec.broker}"
            )
        EgressRoute(link, spec, terminus.address, self._ways.side).attach(policy)


def _not_by_receiver(spec: CircuitSpec) -> AmqpError:
    return AmqpError("amqp:not-allowed", f"only the sender may attach a {spec.kind.value} circuit")
