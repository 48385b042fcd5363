"""Rights of users to see and to change a mesh: `view`, `browse` and `manage`, each a list of patterns of addresses.

`view` shows counts, links and the headers of messages; `browse` shows bodies, too; `manage` lets a user purge and move
messages. Whoever may browse or manage an address may view it. What belongs to no address, such as a connection between
routers, needs a right for every address: the pattern `#`. The interfaces for operators, REST, $management and the
console, ask here and nowhere else, as clients' links ask `addressing.permissions`.

In a mesh without users everybody may see everything, and only the mesh's owner may change anything: whoever has the
observer's token, or a certificate for operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from addressing.address import is_internal, normalize
from addressing.coverage import covers
from addressing.names import ANONYMOUS
from addressing.pattern import for_user

if TYPE_CHECKING:
    from addressing.topology.model import Topology, User

EVERY_ADDRESS: Final = "#"


class Right(StrEnum):
    """What a user of a mesh may be allowed to do with an address, apart from sending and receiving."""

    VIEW = "view"
    BROWSE = "browse"
    MANAGE = "manage"


_GIVEN_BY: Final = {
    Right.VIEW: (Right.VIEW, Right.BROWSE, Right.MANAGE),
    Right.BROWSE: (Right.BROWSE,),
    Right.MANAGE: (Right.MANAGE,),
}
"""By right, the lists of a user's patterns that give the right."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody who asks to see or to change a mesh, with his rights. ``name`` is that of the user, or says who owns.

    ``patterns`` has patterns of addresses by right; ``is_owner``: everything is allowed, whatever the patterns.
    """

    name: str
    patterns: Mapping[Right, tuple[str, ...]]
    is_owner: bool = False

    def may_view(self, address: str) -> bool:
        """Say whether the operator may see the counts, links and message headers of ``address``.

        For a filter, an address with wildcards, one pattern has to cover all addresses of the filter.
        """
        return self._may(Right.VIEW, address)

    def may_browse(self, address: str) -> bool:
        """Say whether the operator may see the bodies of the messages of ``address``."""
        return self._may(Right.BROWSE, address)

    def may_manage(self, address: str) -> bool:
        """Say whether the operator may purge, move, delete and publish messages of ``address``."""
        return self._may(Right.MANAGE, address)

    @property
    def sees_mesh(self) -> bool:
        """Whether the operator has any right, and so sees nodes, neighbors, paths, and his own connections."""
        return self.is_owner or any(self.patterns.values())

    @property
    def views_all(self) -> bool:
        """Whether the operator sees what belongs to other users or to no address: links, users, events, the audit."""
        return self._may(Right.VIEW, EVERY_ADDRESS)

    @property
    def manages_mesh(self) -> bool:
        """Whether the operator may close connections and links, and set costs, log levels and traces."""
        return self._may(Right.MANAGE, EVERY_ADDRESS)

    def _may(self, right: Right, address: str) -> bool:
        if self.is_owner:
            return True
        name = normalize(address)
        # `#` covers every client's address; an internal address is the mesh's own.
        wanted = EVERY_ADDRESS if is_internal(name) else name
        return any(covers(pattern, wanted) for given in _GIVEN_BY[right] for pattern in self.patterns.get(given, ()))


OWNER: Final = Operator("the owner of the mesh", {}, is_owner=True)
"""Whoever has the observer's token or a certificate for operators."""
_EVERYBODY: Final[Mapping[Right, tuple[str, ...]]] = {Right.VIEW: (EVERY_ADDRESS,), Right.BROWSE: (EVERY_ADDRESS,)}
"""The rights of everybody in a mesh without users, where everybody may receive every message, too."""


class OperatorRights:
    """Gives the rights of each user of ``topology`` to see and to change the mesh."""

    def __init__(self, topology: Topology) -> None:
        self._by_user = {name: Operator(name, _patterns(name, user)) for name, user in topology.users.items()}
        self._others: Mapping[Right, tuple[str, ...]] = {} if topology.users else _EVERYBODY

    def operator(self, user: str | None) -> Operator:
        """Return ``user`` with his rights; None stands for a client without a login, the user `anonymous`.

        A user that the topology does not name has no rights, except in a mesh without users.
        """
        name = ANONYMOUS if user is None else user
        return self._by_user.get(name) or Operator(name, self._others)

    def may_view(self, user: str | None, address: str) -> bool:
        """As `Operator.may_view`."""
        return self.operator(user).may_view(address)

    def may_browse(self, user: str | None, address: str) -> bool:
        """As `Operator.may_browse`."""
        return self.operator(user).may_browse(address)

    def may_manage(self, user: str | None, address: str) -> bool:
        """As `Operator.may_manage`."""
        return self.operator(user).may_manage(address)

    def sees_mesh(self, user: str | None) -> bool:
        """As `Operator.sees_mesh`."""
        return self.operator(user).sees_mesh

    def views_all(self, user: str | None) -> bool:
        """As `Operator.views_all`."""
        return self.operator(user).views_all

    def manages_mesh(self, user: str | None) -> bool:
        """As `Operator.manages_mesh`."""
        return self.operator(user).manages_mesh


def _patterns(name: str, user: User) -> Mapping[Right, tuple[str, ...]]:
    given = {Right.VIEW: user.view, Right.BROWSE: user.browse, Right.MANAGE: user.manage}
    return {right: tuple(for_user(pattern, name) for pattern in patterns) for right, patterns in given.items()}
