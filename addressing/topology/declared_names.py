"""Names of routers, brokers and addresses that the topology file declares, and the check of references to them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from addressing.topology.model import Topology
from addressing.topology.problem import Path, Problem, hint_for, nearest

UNKNOWN_NAME_CODES = {"router": "AM103", "broker": "AM104"}
"""The error code for a reference to a router or broker that the topology does not declare, by kind of node."""


@dataclass(frozen=True, slots=True)
class DeclaredNames:
    """The names of routers, brokers and addresses that a topology file declares, by section.

    None stands for a section that cannot be read: then no reference to a name of the section is reported as unknown.

    ``doubts`` are the paths of values that are broken and have stand-ins in the topology, as `repair` makes them.
    """

    routers: Collection[str] | None
    brokers: Collection[str] | None
    addresses: Collection[str] | None
    doubts: frozenset[Path] = frozenset()

    @classmethod
    def in_topology(cls, topology: Topology, doubts: frozenset[Path] = frozenset()) -> DeclaredNames:
        routers, brokers, addresses = (
            None if (section,) in doubts else getattr(topology, section)
            for section in ("routers", "brokers", "addresses")
        )
        return cls(routers, brokers, addresses, doubts)

    def is_certain(self, *paths: Path) -> bool:
        """Whether none of the values at ``paths``, and none of the mappings and lists around them, is in doubt."""
        return not any(path[:length] in self.doubts for path in paths for length in range(len(path) + 1))

    def holds(self, problem: Problem) -> bool:
        """Whether to report ``problem``: true if the problem does not rest on any value in doubt."""
        # The problem of a key, such as an unknown name, does not rest on the value below the key.
        place = problem.path[:-1] if problem.at_key else problem.path
        return self.is_certain(place, *problem.relies_on)


def unknown(kind: str, path: Path, name: str, known: Collection[str] | None, subject: str) -> Iterator[Problem]:
    """Yield a problem if ``name`` is not in ``known``, the declared routers or brokers; none if ``known`` is None."""
    if known is None or name in known:
        return
    yield Problem(
        path,
        UNKNOWN_NAME_CODES[kind],
        f"{subject} unknown {kind} {name!r}",
        hint=hint_for(name, known),
        fix=f"add a {kind} named {name}, or correct the name.",
        suggestion=nearest(name, known),
    )
