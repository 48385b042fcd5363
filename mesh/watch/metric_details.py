"""The answer of `/metrics/detailed`: metrics of single addresses, queues, links or users, as asked for. Sans-IO.

    family=address&match=orders.#&top=100&by=in_rate

``family`` is needed. ``match``: a pattern of addresses, or of names of users. ``top``: the most entities, those with
the largest ``by``, a number of the entity.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from addressing.filter_tree import AmqpTree
from addressing.pattern import MAX_ADDRESS_CHARS, PatternError, check_pattern, is_pattern
from mesh.watch.metric_table import DETAIL_GROUPS, LEFT_OUT, MetricGroup
from mesh.watch.metrics import head_of, rows_of, write_group
from mesh.watch.states import GETTERS
from recording.entities import Entity, EntityFieldType

DEFAULT_TOP: Final = 1000
MAX_TOP: Final = 10_000
DETAIL_PARAMETERS: Final = ("family", "match", "top", "by")
_GROUPS: Final = {group.name: group for group in DETAIL_GROUPS}
_DEFAULT_BY: Final = {"address": "in_rate", "queue": "depth", "link": "rate", "user": "in_rate"}
_MATCHED: Final = {"address": "address", "queue": "address", "link": "address", "user": "user"}
"""The field that the parameter `match` is compared with."""
_SHOWN_CHARS: Final = 80


class EntityStates(Protocol):
    """A host, or what somebody may see of a host."""

    def states(self, entity: Entity) -> Collection[Any]: ...


class DetailQueryError(ValueError):
    """The fault of a request: ``place`` is the parameter, ``allowed`` what may stand there."""

    def __init__(self, place: str, message: str, allowed: Iterable[str] = ()) -> None:
        self.place, self.allowed = place, tuple(allowed)
        names = f", expected one of {', '.join(self.allowed)}" if self.allowed else ""
        super().__init__(f"{place}: {message}{names}")


@dataclass(frozen=True, slots=True)
class DetailQuery:
    """``match``: None for all entities. ``by``: a field of the group's entity that is a number."""

    group: MetricGroup
    match: str | None
    top: int
    by: str


def parse_detail_query(parameters: Sequence[tuple[str, str]]) -> DetailQuery:
    """Return the query of the names and values of a query string. Raises DetailQueryError."""
    given: dict[str, str] = {}
    for name, value in parameters:
        if name not in DETAIL_PARAMETERS:
            raise DetailQueryError(_shown(name), "unknown parameter", DETAIL_PARAMETERS)
        if name in given:
            raise DetailQueryError(name, "the parameter is given twice, expected once")
        given[name] = value
    if "family" not in given:
        raise DetailQueryError("family", "the parameter is missing", _GROUPS)
    group = _GROUPS.get(given["family"])
    if group is None:
        raise DetailQueryError("family", f"unknown family {_shown(given['family'])}", _GROUPS)
    assert group.entity is not None
    by = given.get("by", _DEFAULT_BY[group.name])
    numbers = _numbers_of(group.entity)
    if by not in numbers:
        raise DetailQueryError("by", f"{_shown(by)} is not a number of {group.entity.plural}", numbers)
    return DetailQuery(group, _match(given.get("match")), _top(given.get("top")), by)


def detailed_exposition(host: EntityStates, query: DetailQuery) -> Iterator[str]:
    """Yield the text of the answer, in parts of a family each."""
    group = query.group
    assert group.entity is not None
    states = host.states(group.entity)
    getters = GETTERS[group.entity]
    if query.match is not None:
        value_of, matches = getters[_MATCHED[group.name]], _matching(query.match)
        states = [state for state in states if (text := value_of(state)) is not None and matches(text)]
    by = getters[query.by]

    def rank(state: Any) -> tuple[bool, float]:
        value = by(state)
        return value is not None, value or 0

    shown = heapq.nlargest(query.top, states, key=rank) if len(states) > query.top else states
    rows = rows_of(group, shown)
    yield from write_group(group, lambda _: rows)
    yield f'{head_of(LEFT_OUT)}{LEFT_OUT.name}{{family="{group.name}"}} {len(states) - len(rows)}\n'


def _matching(pattern: str) -> Callable[[str], bool]:
    if not is_pattern(pattern):
        return pattern.__eq__
    tree: AmqpTree[int] = AmqpTree()
    tree.add(pattern, 0)
    return lambda text: len(text) <= MAX_ADDRESS_CHARS and bool(tree.matching(text))


def _numbers_of(entity: Entity) -> tuple[str, ...]:
    return tuple(field.name for field in entity.fields if field.type is EntityFieldType.NUMBER)


def _match(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return check_pattern(text)
    except PatternError as error:
        raise DetailQueryError("match", str(error)) from None


def _top(text: str | None) -> int:
    if text is None:
        return DEFAULT_TOP
    if not (text.isascii() and text.isdecimal()) or len(text) > 9 or not 1 <= int(text) <= MAX_TOP:
        raise DetailQueryError("top", f"expected a whole number from 1 to {MAX_TOP}, got {_shown(text)}")
    return int(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")
