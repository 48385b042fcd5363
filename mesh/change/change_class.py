"""The classes of changes of a running mesh, in the order of what clients and operators notice."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ChangeClass(StrEnum):
    """What a change of a running mesh takes. A later member is the larger intervention."""

    LIVE = "LIVE"
    """Nodes swap tables by reference; clients notice nothing."""
    REMADE = "REMADE"
    """Circuits, routes or connections between nodes are made anew, the new ones first; clients notice a pause."""
    TOLD = "TOLD"
    """Links or connections of clients end with a condition that names the reason, their deliveries settled before."""
    MOVED = "MOVED"
    """Messages of a queue or topic move to another broker, or have nowhere to go."""
    RESTARTED = "RESTARTED"
    """Processes of nodes are restarted, one after the other; clients of a router reconnect."""
    REFUSED = "REFUSED"
    """The change cannot be made on a running mesh; the plan says what to do instead."""

    @property
    def rank(self) -> int:
        """The position of the class among all: 0 for the class that clients notice least."""
        return _RANKS[self]


_RANKS: Final = {each: rank for rank, each in enumerate(ChangeClass)}


def largest(first: ChangeClass, *others: ChangeClass) -> ChangeClass:
    """Return the class among the arguments that clients notice most."""
    return max(first, *others, key=lambda each: each.rank) if others else first
