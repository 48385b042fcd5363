"""Permissions of users: sending to an address, receiving from an address, and the number of connections.

In a mesh without users, every client may use every address that is not internal. Once there is a user, any use that no
pattern of the user allows is denied; a client without authentication is the user ``anonymous``. Nodes and operators,
known by a certificate of the mesh, may do everything. No other client may use internal addresses, but for dynamic
addresses: every client may send to these, and receive from those that were made for a sender.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from addressing.address import is_dynamic, is_internal, is_open, normalize
from addressing.coverage import covers
from addressing.names import ANONYMOUS
from addressing.pattern import PatternSet, for_user, is_pattern

if TYPE_CHECKING:
    from addressing.topology.model import Topology


class Permissions:
    """Decides what each user of a topology may do. ``user`` None stands for a connection that did not authenticate."""

    def __init__(self, topology: Topology) -> None:
        self._is_open = not topology.users
        self._send = {name: _patterns(name, user.send) for name, user in topology.users.items()}
        self._receive = {name: _patterns(name, user.receive) for name, user in topology.users.items()}
        self._receivers = {name for name, user in topology.users.items() if user.receive}
        self._most = {name: user.max_connections or 0 for name, user in topology.users.items()}

    def may_send(self, user: str | None, address: str, *, is_mesh: bool = False) -> bool:
        """Say whether ``user`` may send to ``address``; True with ``is_mesh``, which is set for a node or operator.

        Every user may send to a dynamic address, since its name is as good as a secret.
        """
        if is_mesh or is_dynamic(address):
            return True
        return self._allows(self._send, user, normalize(address))

    def may_receive(self, user: str | None, address: str, *, is_mesh: bool = False) -> bool:
        """Say whether ``user`` may attach a receiver to ``address``; True with ``is_mesh``, set for a node or operator.

        For a filter, an address with wildcards, one pattern of the user has to cover all addresses of the filter.

        No client may attach to a dynamic address that was made for a receiver: the router attaches the receiver that
        asked for the address without a call of this method, and a second receiver could read the replies. Every client
        may attach to a dynamic address that was made for a sender, since its name is as good as a secret.
        """
        return is_mesh or is_open(address) or self._allows(self._receive, user, normalize(address))

    def may_receive_any(self, user: str | None, *, is_mesh: bool = False) -> bool:
        """Say whether ``user`` may attach a receiver without an address, as to a subscription known by its name.

        True for each user who may receive from any address at all, for everyone in a mesh without users, and with
        ``is_mesh``, set for nodes and operators.
        """
        return is_mesh or self._is_open or (ANONYMOUS if user is None else user) in self._receivers

    def max_connections(self, user: str | None) -> int:
        """Return how many connections ``user`` may have to one router at a time; 0 for any number."""
        return self._most.get(ANONYMOUS if user is None else user, 0)

    def _allows(self, patterns: dict[str, _AllowedPatterns], user: str | None, address: str) -> bool:
        if is_internal(address):
            return False
        if self._is_open:
            return True
        allowed = patterns.get(ANONYMOUS if user is None else user)
        return allowed is not None and allowed.covers(address)


class _AllowedPatterns:
    """The patterns of addresses that a user may send to, or receive from."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._set = PatternSet(self._patterns)

    def covers(self, address: str) -> bool:
        """Say whether a pattern matches ``address``; for a filter, whether one covers all addresses of the filter."""
        if is_pattern(address):
            return any(covers(pattern, address) for pattern in self._patterns)
        return address in self._set


def _patterns(user: str, patterns: Iterable[str]) -> _AllowedPatterns:
    return _AllowedPatterns(for_user(pattern, user) for pattern in patterns)
