"""Why a number of a plan is unknown: the nodes that were not observed, and what no node counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from mesh.change.observations import Absence, Observations
from mesh.change.resource import Difference, ResolvedTopology, ResourceKind

_NAMES_SHOWN: Final = 4
_NOT_COUNTED: Final = "no node counts that beforehand"


class Unknowns:
    """Tells why numbers of the topology ``before`` are unknown by some observations."""

    def __init__(self, before: ResolvedTopology, observations: Observations) -> None:
        self._before, self._seen = before, observations

    def of_clients(self, differences: Sequence[Difference]) -> str:
        """Return why the number of connections or links that a step ends is unknown."""
        main = differences[0]
        routers = [each.name for each in self._before.of_kind(ResourceKind.ROUTER)]
        here = [name for name in main.resource.nodes if name in routers]
        return self._because(here or routers)

    def of_messages(self, differences: Sequence[Difference]) -> str:
        """Return why the number of messages that a step moves or loses is unknown."""
        brokers: set[str] = set()
        for each in differences:
            if each.key[0] is ResourceKind.BROKER:
                brokers.add(each.key[1])
            elif each.key[0] is ResourceKind.ADDRESS and each.before is not None:
                brokers.update(each.before.values["brokers"])
        existing = {name for name in brokers if self._before.value(ResourceKind.BROKER, name, "is_embedded") is False}
        if existing:
            return f"as amqpmesh does not count messages at {_names(existing)}"
        return self._because(brokers)

    def _because(self, nodes: Iterable[str]) -> str:
        missing = [node for node in nodes if node not in self._seen.nodes]
        if not missing:
            return _NOT_COUNTED
        told = []
        for absence in Absence:
            names = [node for node in missing if self._seen.absent.get(node) is absence]
            if names:
                told.append(f"{_names(names)} {absence.plural if len(names) > 1 else absence.value}")
        return " and ".join(told) or self._seen.unknown_because


def _names(names: Iterable[str]) -> str:
    known = sorted(names)
    more = f" and {len(known) - _NAMES_SHOWN:,} more" if len(known) > _NAMES_SHOWN else ""
    return f"{', '.join(known[:_NAMES_SHOWN])}{more}"
