"""A step of a plan: differences that are carried out together, with class, conditions, cost and what may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mesh.change.change_class import ChangeClass
from mesh.change.costs import StepCost
from mesh.change.resource import Difference, ResourceKind

SECRET_FIELDS: Final = frozenset({"password", "url"})
"""Values that no text shows: a plan says only that they differ."""
MASK: Final = "***"


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """One step from a running mesh to the edited file.

    ``id`` is unique in a plan, and the same in each plan of the same two topologies. ``title`` says in words what the
    step does. ``nodes``: nodes that take part; empty for all. ``precondition`` and ``postcondition`` are sentences that
    hold before and after the step. ``costs`` are sentences about ``cost``. ``loss``: the names by which an operator
    allows the loss of messages. ``after``: ids of steps that have to be done before. ``fix`` is a sentence about what
    to do instead, only of a step that is REFUSED.
    """

    id: str
    change_class: ChangeClass
    title: str
    nodes: tuple[str, ...]
    differences: tuple[Difference, ...]
    precondition: str
    postcondition: str
    cost: StepCost
    costs: tuple[str, ...]
    loss: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    fix: str = ""

    @property
    def kind(self) -> ResourceKind:
        """The kind of the step's first resource; settings for a step without differences."""
        return self.differences[0].key[0] if self.differences else ResourceKind.SETTINGS

    def to_map(self) -> dict[str, Any]:
        """Return the step for JSON, with a mask in place of secrets."""
        return {
            "id": self.id,
            "class": self.change_class.value,
            "title": self.title,
            "nodes": list(self.nodes),
            "precondition": self.precondition,
            "postcondition": self.postcondition,
            "cost": self.cost.to_map(),
            "costs": list(self.costs),
            "loss": list(self.loss),
            "after": list(self.after),
            **({"fix": self.fix} if self.fix else {}),
            "resources": [_difference_map(each) for each in self.differences],
        }


def _difference_map(difference: Difference) -> dict[str, Any]:
    before, after = difference.before, difference.after
    return {
        "kind": difference.key[0].value,
        "name": difference.key[1],
        "line_before": before.line if before is not None else None,
        "line_after": after.line if after is not None else None,
        "change": "added" if difference.is_added else "removed" if difference.is_removed else "changed",
        "values": {
            each.name: {"before": shown(each.name, each.before), "after": shown(each.name, each.after)}
            for each in difference.changes
        },
    }


def shown(name: str, value: Any) -> Any:
    """Return a value of a resource for texts and JSON, with a mask in place of a secret."""
    if name in SECRET_FIELDS and value is not None:
        return MASK
    return list(value) if isinstance(value, tuple) else value
