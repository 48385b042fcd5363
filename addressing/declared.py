"""Which names does the file declare, and is this one of them?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from addressing.problem import Path, Problem, hint_for, nearest


@dataclass(frozen=True, slots=True)
class Declared:
    """The names of the file, also of what is wrong in itself and so not in the topology.

    None where the section itself is unreadable: then nothing can be said about names that refer to it.
    """

    routers: Collection[str] | None
    brokers: Collection[str] | None
    addresses: Collection[str] | None
    is_complete: bool


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
