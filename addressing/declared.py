"""Which names does the file declare, and is this one of them?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from addressing.problem import Path, Problem, hint_for, nearest
from addressing.topology import Topology


@dataclass(frozen=True, slots=True)
class Declared:
    """The names of the file. None where the section itself is unreadable: then nothing can be said about its names.

    ``doubts`` are the paths of values that were wrong in themselves, and have stand-ins in the topology.
    """

    routers: Collection[str] | None
    brokers: Collection[str] | None
    addresses: Collection[str] | None
    doubts: frozenset[Path] = frozenset()

    @classmethod
    def in_topology(cls, topology: Topology, doubts: frozenset[Path] = frozenset()) -> Declared:
        routers, brokers, addresses = (
            None if (section,) in doubts else getattr(topology, section)
            for section in ("routers", "brokers", "addresses")
        )
        return cls(routers, brokers, addresses, doubts)

    def is_certain(self, *paths: Path) -> bool:
        """Whether no value at or around one of ``paths`` is in doubt."""
        return not any(path[:length] in self.doubts for path in paths for length in range(len(path) + 1))

    def holds(self, problem: Problem) -> bool:
        """Whether ``problem`` is one also when what is in doubt turns out otherwise."""
        # That a key stands where it must not holds whatever is after it.
        place = problem.path[:-1] if problem.at_key else problem.path
        return self.is_certain(place, *problem.relies_on)


def unknown(kind: str, path: Path, name: str, known: Collection[str] | None, subject: str) -> Iterator[Problem]:
    """Yield a problem if ``name`` is not among the ``known`` routers or brokers."""
    if known is None or name in known:
        return
    yield Problem(
        path,
        {"router": "AM103", "broker": "AM104"}[kind],
        f"{subject} unknown {kind} {name!r}",
        hint=hint_for(name, known),
        fix=f"add a {kind} named {name}, or correct the name.",
        suggestion=nearest(name, known),
    )
