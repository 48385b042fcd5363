"""Owners of subscriptions, and the check whether a user may have a subscription.

A client names a subscription by its container-id and link name, and any client can use the same names. So a broker
keeps the user who made each subscription, as the router reports the user (`wire.routed_name.USER`), and refuses all
other users. The user also needs the permission to receive from the subscription's address: the broker checks this, as a
link that ends a subscription may name no address that a router could check.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from addressing.names import ANONYMOUS
from addressing.permissions import Permissions
from broker.events import SubscriptionEnded, SubscriptionOwned
from broker.queueing.held_queue import HeldQueue
from broker.queueing.message_store import MessageStore
from wire.errors import LinkError
from wire.link import Link
from wire.log import Emit
from wire.routed_name import USER

if TYPE_CHECKING:
    from addressing.topology.model import Topology


@dataclass(frozen=True, slots=True)
class OwnershipClaim:
    """The user and peer of a link that wants a subscription; ``user`` is None for a node or operator, never refused."""

    user: str | None
    peer: str


def claim_of(link: Link) -> OwnershipClaim:
    return OwnershipClaim(link.remote_property(USER), link.endpoint.peer.remote_address)


class SubscriptionOwners:
    """Checks and keeps the owners of this broker's subscriptions.

    ``name_in_space`` gives the name that an address of this broker has in its space, because the permissions of users
    are for such names.
    """

    def __init__(
        self, topology: Topology, name_in_space: Callable[[str], str], message_store: MessageStore, log: Emit
    ) -> None:
        self._permissions = Permissions(topology)
        self._name_in_space = name_in_space
        self._has_anonymous = not topology.users or ANONYMOUS in topology.users
        self._message_store = message_store
        self._log = log

    def judge(self, held: HeldQueue, user: str | None) -> None:
        """Raise LinkError unless ``user`` may take from subscription ``held`` or end it; None, a node or operator, may.

        The owner, or any user if there is none, may if the permissions allow the user to receive from its address.
        """
        if user is None:
            return
        owner = self._owner_of(held)
        if owner is not None and owner != user:
            raise LinkError(
                "amqp:unauthorized-access",
                f"{_subscription(held)} belongs to another user than {user!r}: only its owner may take or end it",
            )
        name = self._name_in_space(held.address)
        if not self._permissions.may_receive(user, name):
            raise LinkError(
                "amqp:unauthorized-access",
                f"user {user!r} may not receive from {name!r}, the topic of {_subscription(held)}",
            )

    def take(self, held: HeldQueue, user: str | None) -> None:
        """Make ``user``, whom `judge` let pass, the owner of ``held`` if that is durable and has no owner; log this."""
        if user is not None and held.is_durable and self._owner_of(held) is None:
            self._message_store.give_to(held, user)
            self._log(SubscriptionOwned(held.address, held.subscriber or "", user))

    def note_ended(self, held: HeldQueue, user: str | None, peer: str, new_filter: str | None = None) -> None:
        """Log that ``user`` is about to end the subscription ``held``, or to replace its filter by ``new_filter``."""
        found = held.queue.snapshot()
        self._log(
            SubscriptionEnded(
                held.address, held.subscriber or "", held.owner, user, peer, found.available_count, new_filter
            )
        )

    def _owner_of(self, held: HeldQueue) -> str | None:
        """Return the owner of a subscription; None if it has no owner.

        None, too, if the owner is `anonymous`, and the topology has no such user any more.
        """
        return None if held.owner == ANONYMOUS and not self._has_anonymous else held.owner


def _subscription(held: HeldQueue) -> str:
    return f"subscription {held.subscriber} on {held.address!r}"
