"""Resources: the parts of a mesh that its topology resolves to, each with all its values, and their differences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class ResourceKind(StrEnum):
    """The kinds of resources, in the order in which a plan lists them."""

    SETTINGS = "settings"
    """A section of settings of the whole mesh: `mesh`, `link_logs`, `metrics`, `watch` or `logs`."""
    ROUTER = "router"
    BROKER = "broker"
    CONNECTION = "connection"
    """A connection between two routers, named by both, in the order of the alphabet."""
    ATTACHMENT = "attachment"
    """The connections of one router to one broker."""
    LISTENER = "listener"
    """A port of a router for clients, named by router, host and port."""
    ADDRESS = "address"
    """A declared address or pattern, or a concrete address that is in use or stored."""
    USER = "user"
    """A user; `anonymous` in a mesh without users stands for every client."""


Key = tuple[ResourceKind, str]
"""Kind and name of a resource: unique in a mesh."""
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resource:
    """A part of a mesh with all its values.

    ``values``: by field; texts, numbers, booleans, None, or tuples of texts. ``nodes``: the nodes that have the
    resource; empty for all nodes. ``line``: the line of the file that declares the resource, from 1; None if none
    does. ``written``: the values that the file writes, where others are defaults; None if that is not known.
    """

    kind: ResourceKind
    name: str
    values: Mapping[str, Any]
    nodes: tuple[str, ...] = ()
    line: int | None = field(default=None, compare=False)
    written: frozenset[str] | None = field(default=None, compare=False)

    @property
    def key(self) -> Key:
        return self.kind, self.name

    def is_written(self, value: str) -> bool:
        """Tell whether the file writes ``value``; where that is not known, it counts as written."""
        return self.written is None or value in self.written


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A value of a resource that differs between two topologies; None stands for a resource that is not there."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """A resource as it is before and after a change; None on the side that does not have the resource."""

    before: Resource | None
    after: Resource | None

    @property
    def resource(self) -> Resource:
        """The resource, as it is after the change if it is there then."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def key(self) -> Key:
        return self.resource.key

    @property
    def is_added(self) -> bool:
        return self.before is None

    @property
    def is_removed(self) -> bool:
        return self.after is None

    @property
    def changes(self) -> tuple[FieldChange, ...]:
        """The values that differ, in the order of the fields; for a resource that is added or removed, all values."""
        before = self.before.values if self.before is not None else NOTHING
        after = self.after.values if self.after is not None else NOTHING
        names = dict.fromkeys((*before, *after))
        return tuple(
            FieldChange(name, before.get(name), after.get(name))
            for name in names
            if self.before is None or self.after is None or before.get(name) != after.get(name)
        )

    def change_of(self, name: str) -> FieldChange | None:
        """Return the change of the value ``name``; None if the value does not differ."""
        return next((change for change in self.changes if change.name == name), None)


@dataclass(frozen=True, slots=True)
class ResolvedTopology:
    """All resources of a topology, by kind and name."""

    resources: Mapping[Key, Resource]

    def of_kind(self, kind: ResourceKind) -> Iterator[Resource]:
        """Yield the resources of ``kind``."""
        return (resource for resource in self.resources.values() if resource.kind is kind)

    def value(self, kind: ResourceKind, name: str, value: str) -> Any:
        """Return a value of a resource; None if the topology does not have the resource."""
        resource = self.resources.get((kind, name))
        return resource.values.get(value) if resource is not None else None

    def changed(self, differences: Iterable[Difference]) -> ResolvedTopology:
        """Return the topology after ``differences``.

        Raises ValueError if a resource is not as a difference says it is before the change.
        """
        resources = dict(self.resources)
        for each in differences:
            if resources.get(each.key) != each.before:
                raise ValueError(f"{each.key[0]} {each.key[1]!r} is not as the plan expects it before the step")
            if each.after is None:
                del resources[each.key]
            else:
                resources[each.key] = each.after
        return ResolvedTopology(resources)

    def digest(self) -> str:
        """Return the SHA-256 of all resources, in hexadecimal digits; order and lines of the file do not count."""
        rows = sorted((kind.value, name, _plain(each)) for (kind, name), each in self.resources.items())
        return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()


def _plain(resource: Resource) -> dict[str, Any]:
    return {"values": dict(resource.values), "nodes": resource.nodes}


def difference(before: ResolvedTopology, after: ResolvedTopology) -> tuple[Difference, ...]:
    """Return the resources that differ, in the order of their kinds and names."""
    order = list(ResourceKind)
    keys = sorted({*before.resources, *after.resources}, key=lambda key: (order.index(key[0]), key[1]))
    found = (Difference(before.resources.get(key), after.resources.get(key)) for key in keys)
    return tuple(each for each in found if each.before != each.after)
