"""Whose is a subscription, and may this user have it?

A client names a subscription by its container-id and link name, which anybody can use. So a broker keeps the user who
made each subscription, as the router says it (`wire.routed_name.USER`), and refuses all others. Where a link names no
address, as to end a subscription, the rights on what its name leads to count, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from addressing.names import ANONYMOUS
from addressing.permissions import Permissions
from addressing.topology import Topology
from broker.events import SubscriptionEnded, SubscriptionOwned
from broker.held_queue import HeldQueue
from broker.stock import Stock
from wire.errors import LinkError
from wire.link import Link
from wire.log import Emit
from wire.routed_name import USER


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose link asks for something. ``user`` None: a node's or an operator's, who may have everything."""

    user: str | None
    peer: str


def claim_of(link: Link) -> Claim:
    return Claim(link.remote_property(USER), link.endpoint.peer.remote_address)


class Owners:
    """``name_in_mesh`` says what the mesh calls the address that this broker knows by another name."""

    def __init__(self, topology: Topology, name_in_mesh: Callable[[str], str], stock: Stock, log: Emit) -> None:
        self._permissions = Permissions(topology)
        self._name_in_mesh = name_in_mesh
        self._has_anonymous = not topology.users or ANONYMOUS in topology.users
        self._stock = stock
        self._log = log

    def judge(self, held: HeldQueue, user: str | None) -> None:
        """Raise LinkError unless ``user`` may have the subscription."""
        if user is None:
            return
        owner = self._owner_of(held)
        if owner is not None and owner != user:
            raise LinkError(
                "amqp:unauthorized-access",
                f"{_subscription(held)} belongs to another user than {user!r}: only its owner may take or end it",
            )
        name = self._name_in_mesh(held.address)
        if not self._permissions.may_receive(user, name):
            raise LinkError(
                "amqp:unauthorized-access",
                f"user {user!r} may not receive from {name!r}, where {_subscription(held)} is",
            )

    def take(self, held: HeldQueue, user: str | None) -> None:
        """A link of ``user``, who may have it, takes from the subscription: one without an owner is the user's now."""
        if user is not None and held.is_durable and self._owner_of(held) is None:
            self._stock.give_to(held, user)
            self._log(SubscriptionOwned(held.address, held.subscriber or "", user))

    def note_ended(self, held: HeldQueue, user: str | None, peer: str, new_filter: str | None = None) -> None:
        """A link of ``user`` is about to end the subscription, perhaps by one to another filter."""
        found = held.queue.snapshot()
        self._log(
            SubscriptionEnded(
                held.address, held.subscriber or "", held.owner, user, peer, found.available_count, new_filter
            )
        )

    def _owner_of(self, held: HeldQueue) -> str | None:
        """None also for what was anonymous before there were users: nobody could be its owner any more."""
        return None if held.owner == ANONYMOUS and not self._has_anonymous else held.owner


def _subscription(held: HeldQueue) -> str:
    return f"subscription {held.subscriber} on {held.address!r}"
