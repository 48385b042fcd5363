"""What a running mesh cannot go through: a mesh in two parts on the way, and ports that change hands in a circle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mesh.change.resolution import endpoint
from mesh.change.resource import Difference, ResolvedTopology, Resource, ResourceKind

_WILDCARDS: Final = ("0.0.0.0", "[::]")


def partition(before: ResolvedTopology, after: ResolvedTopology) -> tuple[str, str] | None:
    """Return a sentence about routers that the change would cut off from others, and what to do; None if it cuts none.

    Steps add first and remove last: on the way the mesh has the routers and connections of both topologies. A mesh that
    is in parts before the change may stay so.
    """
    old, new = _parts([before]), _parts([after])
    both = _parts([before, after])
    allowed = max(1, len(old))
    if len(both) > allowed:
        one, other = both[0], both[1]
        return (
            f"no connection leads from {', '.join(other)} to {', '.join(one)} while old and new routers run",
            f"first add the new routers with a connection to a router that runs already, such as {one[0]}; "
            f"remove the old ones in a second change.",
        )
    if len(new) > allowed:
        one, other = new[0], new[1]
        return (
            f"the change cuts {', '.join(other)} off from {', '.join(one)}",
            f"keep a connection between the parts, such as {other[0]} - {one[0]}.",
        )
    return None


def _parts(topologies: Sequence[ResolvedTopology]) -> list[list[str]]:
    """Return the interior routers of all ``topologies`` in groups that reach each other, largest group first."""
    routers = {
        router.name
        for topology in topologies
        for router in topology.of_kind(ResourceKind.ROUTER)
        if router.values["mode"] == "interior"
    }
    around: dict[str, set[str]] = {name: set() for name in routers}
    for topology in topologies:
        for connection in topology.of_kind(ResourceKind.CONNECTION):
            one, other = connection.nodes
            if one in routers and other in routers:
                around[one].add(other)
                around[other].add(one)
    parts, left = [], set(routers)
    while left:
        part, waiting = set(), [min(left)]
        while waiting:
            name = waiting.pop()
            if name not in part:
                part.add(name)
                waiting += around[name]
        parts.append(sorted(part))
        left -= part
    return sorted(parts, key=lambda part: (-len(part), part))


def port_waits(groups: Mapping[str, Iterable[Difference]]) -> dict[str, set[str]]:
    """Return by id of a step the ids of the steps that have to free a port first. ``groups``: differences by id."""
    freed: dict[int, list[tuple[str, str]]] = {}
    for id_, differences in groups.items():
        for each in differences:
            if (place := _endpoint(each.before)) is not None and place != _endpoint(each.after):
                freed.setdefault(place[1], []).append((place[0], id_))
    waits: dict[str, set[str]] = {}
    for id_, differences in groups.items():
        for each in differences:
            if (place := _endpoint(each.after)) is None or place == _endpoint(each.before):
                continue
            for host, other in freed.get(place[1], ()):
                is_same = host == place[0] or host in _WILDCARDS or place[0] in _WILDCARDS
                if other != id_ and is_same:
                    waits.setdefault(id_, set()).add(other)
    return waits


def _endpoint(resource: Resource | None) -> tuple[str, int] | None:
    """Return host and port that a resource listens on; None for a resource that does not listen."""
    if resource is None:
        return None
    if resource.kind is ResourceKind.LISTENER:
        host, _, port = resource.name.split(" ", 1)[1].rpartition(":")
        return host, int(port)
    is_node = resource.kind is ResourceKind.ROUTER or resource.values.get("is_embedded")
    if not is_node:
        return None
    host, _, port = endpoint(resource.values["host"], resource.values["port"]).rpartition(":")
    return host, int(port)


def in_circles(waits: Mapping[str, set[str]]) -> set[str]:
    """Return the ids of steps that wait for each other in a circle, or for steps that do."""
    left = {id_: set(others) for id_, others in waits.items()}
    while True:
        done = [id_ for id_, others in left.items() if not any(other in left for other in others)]
        if not done:
            return set(left)
        for id_ in done:
            del left[id_]
