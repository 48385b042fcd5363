"""The no-local filter of JMS: a subscription gets no message that its own client published.

A router opens a separate connection to a broker for each client, so the connection of a message identifies the client.
Messages that a client sends on a link without an address come over a shared connection: in
spite of its filter the client gets these messages.
"""

from __future__ import annotations

from typing import Any

from broker.queueing.held_queue import HeldQueue
from wire.endpoint import Endpoint
from wire.link import Link
from wire.terminus import Terminus

NO_LOCAL = ("apache.org:no-local-filter:list", 0x0000468C00000003)
"""Descriptors, by which the filter is known in a source: its name in the filter map is the client's choice."""


def no_local_of(wanted: Terminus) -> dict[str, Any]:
    """Return {name: no-local filter} of the source ``wanted``; {} if it has none, or if the subscription is shared."""
    if "shared" in wanted.capabilities:
        return {}
    return {name: value for name, value in wanted.filter.items() if getattr(value, "descriptor", None) in NO_LOCAL}


class NoLocal:
    """Leaves out subscriptions that are not to get a message, since it came over the connection of their consumer.

    Always: ``_own`` has the subscriptions whose consumer asked for no-local, each with the consumer's connection
    """

    def __init__(self) -> None:
        self._own: dict[HeldQueue, Endpoint] = {}

    def __bool__(self) -> bool:
        return bool(self._own)

    def begin(self, held: HeldQueue, link: Link) -> None:
        self._own[held] = link.endpoint

    def end(self, held: HeldQueue, link: Link) -> None:
        if self._own.get(held) is link.endpoint:
            del self._own[held]

    def without_own(self, targets: list[HeldQueue], link: Link) -> list[HeldQueue]:
        """Return ``targets``, subscriptions, without those that are not to get a message from ``link``.

        A subscription with a no-local filter is left out if its consumer has the same connection as ``link``.
        """
        if not self._own:
            return targets
        return [held for held in targets if self._own.get(held) is not link.endpoint]
