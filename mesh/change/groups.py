"""Groups differences into steps: what belongs to a node that comes or goes, and the addresses of one pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mesh.change.resource import Difference, Key, ResourceKind

_OF_NODES = (ResourceKind.ROUTER, ResourceKind.BROKER)
_WAYS = ("host", "port", "url", "is_embedded")
"""Values of a node that move the connections which lead to the node."""


def groups_of(differences: Sequence[Difference]) -> list[tuple[Difference, ...]]:
    """Return the differences in groups, each of which is a step; the first of a group gives the step its subject."""
    nodes = {each.key: each for each in differences if each.key[0] in _OF_NODES}
    found: dict[tuple[object, ...], list[Difference]] = {}
    for each in differences:
        found.setdefault(_group_key(each, nodes), []).append(each)
    return [tuple(_main_first(group)) for group in found.values()]


def _group_key(each: Difference, nodes: Mapping[Key, Difference]) -> tuple[object, ...]:
    kind = each.key[0]
    if kind is ResourceKind.ADDRESS:
        return (kind, *declarations_of(each))
    owner = _owner(each, nodes)
    return owner.key if owner is not None else each.key


def declarations_of(each: Difference) -> tuple[str | None, str | None]:
    """Return the declared address or pattern that gives an address its values, before and after the change."""
    before, after = each.before, each.after
    return (
        before.values["declared_by"] if before is not None else None,
        after.values["declared_by"] if after is not None else None,
    )


def _owner(each: Difference, nodes: Mapping[Key, Difference]) -> Difference | None:
    """Return the difference of a node that has ``each`` as its consequence; None if there is none."""
    resource = each.resource
    if resource.kind not in (ResourceKind.LISTENER, ResourceKind.CONNECTION, ResourceKind.ATTACHMENT):
        return None
    ends = [nodes[kind, name] for name in resource.nodes for kind in _OF_NODES if (kind, name) in nodes]
    for end in ends:
        if (each.is_added and end.is_added) or (each.is_removed and end.is_removed):
            return end
    if each.is_added or each.is_removed or resource.kind is ResourceKind.LISTENER:
        return None
    # A connection that is dialed elsewhere, since the node at its other end is there now.
    if not {change.name for change in each.changes} <= {"host", "port"}:
        return None
    return next((end for end in ends if any(end.change_of(name) for name in _WAYS)), None)


def _main_first(group: Iterable[Difference]) -> list[Difference]:
    """Return a group with the resource first that the step is about: a node, or a declared address or pattern."""
    return sorted(group, key=lambda each: (each.key[0] not in _OF_NODES, each.key[1] not in declarations_of_any(each)))


def declarations_of_any(each: Difference) -> tuple[str | None, ...]:
    """Return `declarations_of` of an address, and the name of any other resource."""
    return declarations_of(each) if each.key[0] is ResourceKind.ADDRESS else (each.key[1],)
