"""Which subscriptions are to get nothing that their own connection publishes?

A router gives each of its clients a connection of its own to a broker, so the connection that a message comes over
tells whose it is. What a client sends without a fixed address comes over a connection that all share: it is nobody's
own.
"""

from __future__ import annotations

from typing import Any

from broker.held_queue import HeldQueue
from wire.endpoint import Endpoint
from wire.link import Link
from wire.terminus import Terminus

NO_LOCAL = ("apache.org:no-local-filter:list", 0x0000468C00000003)
"""Descriptors of the filter; its name in the map is the client's choice."""


def no_local_of(wanted: Terminus) -> dict[str, Any]:
    """The filter that asks for it, by its name; {} where the source has none, or shares its subscription."""
    if "shared" in wanted.capabilities:
        return {}
    return {name: value for name, value in wanted.filter.items() if getattr(value, "descriptor", None) in NO_LOCAL}


class NoLocal:
    """Always: ``_own`` has the subscriptions whose consumer asked for it, each with that consumer's connection."""

    def __init__(self) -> None:
        self._own: dict[HeldQueue, Endpoint] = {}

    def begin(self, held: HeldQueue, link: Link) -> None:
        self._own[held] = link.endpoint

    def end(self, held: HeldQueue, link: Link) -> None:
        if self._own.get(held) is link.endpoint:
            del self._own[held]

    def without_own(self, targets: list[HeldQueue], link: Link) -> list[HeldQueue]:
        """Of ``targets`` those that are to get what comes over ``link``."""
        if not self._own:
            return targets
        return [held for held in targets if self._own.get(held) is not link.endpoint]
