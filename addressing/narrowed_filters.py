"""Filters of filter sets, as routers tell each other of them: which of the filters match an address?

A set narrows a source, an address with wildcards. So each filter of a set comes with its source and kind, and matches
an address only if the source matches, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from addressing.address import Address
from addressing.filter_kinds import FilterKind
from addressing.filter_tree import AmqpTree, FilterTree, FilterTrees, MqttTree
from addressing.routing_keys import Key, KeyForm

_K = TypeVar("_K", bound=Hashable)
# No address and no filter contains white space.
_DELIMITER = " "
_KINDS = {kind.value: kind for kind in FilterKind}


class NarrowedFilter(NamedTuple):
    """A filter of a set, with the address of the source that the set narrows, and the kind of the set's filters."""

    source: Address
    kind: FilterKind
    text: str

    @property
    def key(self) -> str:
        """The routing key by which a router advertises that it has a consumer with this filter."""
        return Key(KeyForm.SET_TAKERS, _DELIMITER.join((self.source.text, self.kind.value, self.text))).text

    @classmethod
    def of_key(cls, key: Key) -> NarrowedFilter | None:
        """Return the filter that ``key``, of the form `KeyForm.SET_TAKERS`, names.

        None if the name has not three parts, or the kind is none that this router knows.
        """
        parts = key.name.split(_DELIMITER)
        if len(parts) != 3 or not all(parts) or parts[1] not in _KINDS:
            return None
        return cls(Address.parse(parts[0]), _KINDS[parts[1]], parts[2])

    @property
    def only_match(self) -> Address | None:
        """The one address that the filter may match; None for a filter that may match several."""
        if "#" in self.text or self.kind.one_level in self.text:
            return None
        return Address(self.source.space, self.text)


class _SourceTrees(Generic[_K]):
    """The trees of the filters that narrow one source: a tree for each kind, and the number of filters in all."""

    __slots__ = ("count", "trees")

    def __init__(self) -> None:
        self.trees: dict[FilterKind, FilterTree[_K]] = {FilterKind.AMQP: AmqpTree(), FilterKind.MQTT: MqttTree()}
        self.count = 0


class NarrowedTrees(Generic[_K]):
    """Narrowed filters in trees: a look-up costs the length of an address and the number of sources that match it.

    Always: each source has a filter
    """

    def __init__(self, items: Iterable[tuple[NarrowedFilter, _K]] = ()) -> None:
        self._sources: FilterTrees[Address] = FilterTrees()
        self._trees: dict[Address, _SourceTrees[_K]] = {}
        for filter_, key in items:
            self.add(filter_, key)

    def __bool__(self) -> bool:
        return bool(self._trees)

    def add(self, filter_: NarrowedFilter, key: _K) -> None:
        """Add a filter that was not added with ``key`` yet."""
        trees = self._trees.get(filter_.source)
        if trees is None:
            trees = self._trees[filter_.source] = _SourceTrees()
            self._sources.add(filter_.source, filter_.source)
        trees.trees[filter_.kind].add(filter_.text, key)
        trees.count += 1

    def remove(self, filter_: NarrowedFilter, key: _K) -> None:
        """Remove the filter that was added with this key; raise KeyError if there is none."""
        trees = self._trees[filter_.source]
        trees.trees[filter_.kind].remove(filter_.text, key)
        trees.count -= 1
        if not trees.count:
            del self._trees[filter_.source]
            self._sources.remove(filter_.source, filter_.source)

    def matching(self, address: Address) -> list[_K]:
        """Return the keys of all filters that match ``address``, each key once."""
        if not self._trees:
            return []
        found: dict[_K, None] = {}
        for source in self._sources.matching(address):
            for tree in self._trees[source].trees.values():
                found.update(dict.fromkeys(tree.matching(address.name)))
        return list(found)
