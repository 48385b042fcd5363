"""Explains what a user may do with an address: which pattern of the topology allows it, or why none does.

The verdicts are those of `addressing.permissions` and `addressing.operator_rights`; here, the pattern is found as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from addressing.address import is_dynamic, is_internal, is_open, normalize
from addressing.coverage import covers
from addressing.names import ANONYMOUS
from addressing.operator_rights import OperatorRights
from addressing.pattern import PatternSet, for_user, is_pattern
from addressing.permissions import Permissions
from addressing.topology.model import Topology, User
from addressing.topology.places import TopologyPlaces
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed

_GIVEN_BY = {"send": ("send",), "receive": ("receive",), "view": ("view", "browse", "manage"), "browse": ("browse",),
             "manage": ("manage",)}  # fmt: skip
"""By right, the lists of a user's patterns that give the right."""


@dataclass(frozen=True, slots=True)
class ExplainedRight:
    """Whether a user has a right, with the ``pattern`` and its ``place`` in the file if one gives it, and ``why``."""

    right: str
    is_allowed: bool
    pattern: str | None
    place: str | None
    why: str


def explain_access(topology: Topology, user: str, address: str) -> list[ExplainedRight]:
    """Return the rights of ``user`` at ``address``, in the order send, receive, view, browse, manage.

    Raises CommandFailed for a user whom the topology does not name; `anonymous` is a client without a login.
    """
    if topology.users and user not in topology.users and user != ANONYMOUS:
        known = ", ".join(name for name in topology.users if name != ANONYMOUS)
        raise CommandFailed(
            f"unknown user {user!r} in mesh {topology.mesh}: expected one of {known}, or {ANONYMOUS} for a client "
            "without a login",
            exit_code=ExitCode.USAGE,
        )
    places, permissions, rights = TopologyPlaces(topology), Permissions(topology), OperatorRights(topology)
    who = None if user == ANONYMOUS else user
    allowed = {
        "send": permissions.may_send(who, address),
        "receive": permissions.may_receive(who, address),
        "view": rights.may_view(who, address),
        "browse": rights.may_browse(who, address),
        "manage": rights.may_manage(who, address),
    }
    name = normalize(address)
    return [
        _explained(topology, places, user, name, right, is_allowed=is_allowed) for right, is_allowed in allowed.items()
    ]


def _explained(
    topology: Topology, places: TopologyPlaces, user: str, name: str, right: str, *, is_allowed: bool
) -> ExplainedRight:
    if (rule := _rule(topology, name, right, is_allowed=is_allowed)) is not None:
        return ExplainedRight(right, is_allowed, None, None, rule)
    declared = topology.users.get(user)
    if declared is None:
        why = f"the topology has no user {ANONYMOUS}: a client without a login may do nothing"
        return ExplainedRight(right, is_allowed, None, None, why)
    lists = _GIVEN_BY[right]
    for key in lists:
        for index, pattern in enumerate(_patterns(declared, key)):
            if _covers(for_user(pattern, user), name):
                place = places.place("users", user, key, index) or places.place("users", user, key)
                why = f"`{key}` of user {user}" + (f" gives `{right}`, too" if key != right else "")
                return ExplainedRight(right, is_allowed, pattern, place, why)
    place = places.place("users", user, right) or places.place("users", user)
    return ExplainedRight(right, is_allowed, None, place, _why_not(declared, user, name, lists))


def _rule(topology: Topology, name: str, right: str, *, is_allowed: bool) -> str | None:
    """Return the rule that decides about the right whatever the user's patterns; None if the patterns decide."""
    is_of_client = right in ("send", "receive")
    if right == "send" and is_dynamic(name):
        return "every client may send to a dynamic address: its name is as good as a secret"
    if right == "receive" and is_open(name):
        return "every client may receive from a dynamic address that was made for a sender"
    if is_of_client and is_internal(name):
        return "an internal address of the mesh: only nodes and operators use it"
    if not topology.users:
        if is_of_client or is_allowed:
            return "the mesh has no users: everybody may send, receive and look"
        return "the mesh has no users: only the owner of the mesh may change anything"
    return None


def _why_not(user: User, name: str, given_name: str, lists: Sequence[str]) -> str:
    patterns = [pattern for key in lists for pattern in _patterns(user, key)]
    words = " and ".join(f"`{key}`" for key in lists)
    if not patterns:
        return f"user {name} has no {words}"
    return f"no pattern of {words} covers {given_name}: {', '.join(patterns)}"


def _patterns(user: User, key: str) -> Sequence[str]:
    found: Sequence[str] = getattr(user, key)
    return found


def _covers(pattern: str, name: str) -> bool:
    # What belongs to no client's address needs the pattern of all addresses (`addressing.operator_rights`).
    if is_internal(name):
        return covers(pattern, "#")
    return covers(pattern, name) if is_pattern(name) else name in PatternSet((pattern,))


def to_maps(rights: Sequence[ExplainedRight]) -> Iterator[dict[str, object]]:
    for each in rights:
        yield {
            "right": each.right,
            "is_allowed": each.is_allowed,
            "pattern": each.pattern,
            "place": each.place,
            "why": each.why,
        }
