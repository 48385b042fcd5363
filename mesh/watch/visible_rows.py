"""What an operator may see of the entities of a host: all of them, or those of his addresses and his own clients.

Nodes, neighbors and paths are seen by everybody with any right. Addresses, patterns and queues need the right to view
the address; so do links, but for those of the operator's own clients. Connections and users are the operator's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from addressing.book import SpaceBooks
from recording.entities import ADDRESS, CONNECTION, LINK, PATTERN, QUEUE, USER, Entity

if TYPE_CHECKING:
    from addressing.operator_rights import Operator
    from addressing.topology.model import Topology
    from mesh.watch.host_model import HostModel
    from mesh.watch.states import ObservedAddress, ObservedLink, ObservedQueue

MAX_JUDGED: Final = 150_000
"""The most addresses for which it is known whether an operator may see them."""
MAX_OPERATORS: Final = 4
"""The most operators with limited rights for whom this is known."""


class VisibleRows:
    """The entities of ``host`` that ``operator`` may see.

    ``mesh_name`` returns the address in the mesh, for a broker and a name there.
    """

    def __init__(self, host: HostModel, operator: Operator, mesh_name: Callable[[str, str], str]) -> None:
        self._host, self.operator, self._mesh_name = host, operator, mesh_name
        self.is_all = operator.views_all
        # A table of 100,000 addresses is judged each second while a page shows it.
        self.may_view: Callable[[str], bool] = lru_cache(MAX_JUDGED)(operator.may_view)

    def states(self, entity: Entity) -> Collection[Any]:
        """Return the state of each ``entity`` that the operator may see, in no order."""
        states = self._host.states(entity)
        return states if self.is_all else [each for each in states if self.has(entity, each)]

    def has(self, entity: Entity, state: Any) -> bool:
        if self.is_all:
            return True
        match entity.plural:
            case ADDRESS.plural:
                return self._sees_address(state)
            case PATTERN.plural:
                return self.may_view(state.pattern)
            case QUEUE.plural:
                return self._sees_end(state)
            case LINK.plural:
                return self.is_own(state.user_name) or (state.address_text is not None and self._sees_end(state))
            case CONNECTION.plural:
                return self.is_own(state.user_name)
            case USER.plural:
                return self.is_own(state.name)
        return self.operator.sees_mesh

    def _sees_end(self, state: ObservedQueue | ObservedLink) -> bool:
        """Tell whether the operator may view the address of a queue or link."""
        name = self.address_of(state)
        # The model knows the address by the name at the broker, so by another pattern if the broker has another name.
        if state.address is not None and name == state.address_text:
            return self._sees_address(state.address)
        return self.may_view(name)

    def _sees_address(self, address: ObservedAddress) -> bool:
        # Of 100,000 addresses of a pattern that the operator may view, none is looked at.
        pattern = address.pattern
        return (pattern is not None and self.may_view(pattern.pattern)) or self.may_view(address.address)

    def address_of(self, state: ObservedQueue | ObservedLink) -> str:
        """Return the mesh's name of the address of a queue or link, which a broker may know by another name."""
        text = state.address_text or ""
        return self._mesh_name(state.node.name, text) if state.node.is_broker else text

    def is_own(self, user: str | None) -> bool:
        """Say whether ``user`` is the operator himself."""
        return user is not None and user == self.operator.name


class RowsByOperator:
    """Gives each operator's view of ``host``."""

    def __init__(self, host: HostModel, topology: Topology) -> None:
        books = SpaceBooks(topology)

        @lru_cache(MAX_JUDGED)
        def mesh_name(broker: str, name: str) -> str:
            return books.name_in_space(broker, name)

        self._host, self.mesh_name = host, mesh_name
        self._made: dict[str, VisibleRows] = {}

    def of(self, operator: Operator) -> VisibleRows:
        if operator.views_all:
            return VisibleRows(self._host, operator, self.mesh_name)
        rows = self._made.pop(operator.name, None) or VisibleRows(self._host, operator, self.mesh_name)
        self._made[operator.name] = rows
        if len(self._made) > MAX_OPERATORS:
            del self._made[next(iter(self._made))]
        return rows
