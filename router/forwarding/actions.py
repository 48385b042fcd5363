"""Actions of groups: work for the owner of the groups, which takes the actions after each input of the node.

A group in the midst of a delivery only notes that something changed. The owner acts once the input is handled, and
before the node's output is flushed, so a group never finds itself changed by its own report. Calls that a group has to
make at once are in `GroupOwner` (`router/forwarding/address.pyi`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from router.forwarding.address import AddressGroup
from router.forwarding.ends import Taker


@dataclass(frozen=True, slots=True)
class ReplacementUp:
    """The peer answered the attach of ``taker``, a circuit that is not in ``group`` yet.

    The owner of the group may put this circuit in place of the circuit that it replaces.
    """

    group: AddressGroup
    taker: Taker


@dataclass(frozen=True, slots=True)
class NoTakerInTime:
    """The producers of ``group`` had no taker for ``hold_s`` where the group sends now.

    The group sends to its fallback queue or to the takers of its address; the owner may change between the two.
    """

    group: AddressGroup


GroupAction: TypeAlias = ReplacementUp | NoTakerInTime


class GroupActions:
    """The actions of a router's groups since the owner last took them, and the groups that changed.

    A group changed when an inlet or taker came or went, or when a branch is to be made anew. The group marks itself, as
    an endpoint with output does, and is marked once, however often it changes: an attach costs no object.
    """

    __slots__ = ("actions", "changed")

    def __init__(self) -> None:
        self.changed: dict[AddressGroup, None] = {}
        self.actions: list[GroupAction] = []

    # Methods that the groups call
    def on_replacement_up(self, group: AddressGroup, taker: Taker) -> None:
        self.actions.append(ReplacementUp(group, taker))

    def on_no_taker_in_time(self, group: AddressGroup) -> None:
        self.actions.append(NoTakerInTime(group))

    # Methods that the owner of the groups calls
    def take(self) -> list[GroupAction]:
        """Return the actions that groups have reported, in order, and forget these actions."""
        taken, self.actions = self.actions, []
        return taken

    def take_changed(self) -> list[AddressGroup]:
        """Return the groups that changed, in the order of their first change, and forget that they changed."""
        taken = list(self.changed)
        self.changed.clear()
        return taken
