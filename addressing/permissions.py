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
from addressing.names import ANONYMOUS
from addressing.pattern import PatternSet, for_user

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

    def _allows(self, patterns: dict[str, PatternSet], user: str | None, address: str) -> bool:
        if is_internal(address):
            return False
        if self._is_open:
            return True
        allowed = patterns.get(ANONYMOUS if user is None else user)
        return allowed is not None and address in allowed


def _patterns(user: str, patterns: Iterable[str]) -> PatternSet:
    return PatternSet(for_user(pattern, user) for pattern in patterns)
