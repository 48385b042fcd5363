"""The class of a difference: the least class of the keys that differ, raised by the effect on clients and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from addressing.coverage import covers
from addressing.kinds import AddressKind
from addressing.topology.broker_url import parse_broker_url
from mesh.change.change_class import ChangeClass, largest
from mesh.change.key_classes import KEY_CLASSES
from mesh.change.resolution import field_key
from mesh.change.resource import Difference, FieldChange, ResourceKind

_LIVE, _TOLD, _MOVED = ChangeClass.LIVE, ChangeClass.TOLD, ChangeClass.MOVED
LOWERED_LIMITS: Final = frozenset(
    {"max_connections", "max_links", "max_frame_bytes", "max_message_bytes", "max_messages", "max_bytes"}
)
"""Limits: what is beyond a limit that is lowered ends. None, and 0 of max_message_bytes, stand for no limit."""
_KINDS: Final = {kind.value: kind for kind in AddressKind}
_LOGIN_RANKS: Final = {"none": 0, "optional": 1, "required": 2}


def class_of(difference: Difference) -> ChangeClass:
    """Return the class of a difference of one resource."""
    if difference.is_added:
        return _LIVE
    if difference.is_removed:
        return _REMOVED[difference.key[0]](difference)
    kind, name = difference.key
    least = [
        KEY_CLASSES[field_key(kind, name, change.name)].change_class
        for change in difference.changes
        if not _follows_type(difference, change)
    ]
    raised = [_raised(difference, change) for change in difference.changes]
    return largest(_LIVE, *least, *raised)


def is_lowered(change: FieldChange) -> bool:
    """Tell whether the change of a limit lowers it."""
    before, after = change.before, change.after
    return bool(after) and (not before or after < before)


def is_narrowed(change: FieldChange) -> bool:
    """Tell whether a list of patterns loses addresses: some pattern before is not covered by any pattern after."""
    return not all(any(covers(each, old) for each in change.after or ()) for old in change.before or ())


def is_tightened(change: FieldChange) -> bool:
    """Tell whether a listener asks more clients for a login than before, and so ends connections without one."""
    return _LOGIN_RANKS[change.after] == _LOGIN_RANKS["required"] and change.before != change.after


def is_stored(address_type: str | None) -> bool:
    """Tell whether a broker keeps the messages of addresses of a type; None stands for no type."""
    return address_type is not None and _KINDS[address_type].is_stored


def loses_store(difference: Difference) -> bool:
    """Tell whether the stored messages of an address have nowhere to go: it is removed, or is stored in no such way."""
    before, after = (each.values["type"] if each else None for each in (difference.before, difference.after))
    return is_stored(before) and before != after


def names_other_server(change: FieldChange) -> bool:
    """Tell whether the URL of an existing broker names another host or port."""
    if change.before is None or change.after is None:
        return False
    one, other = parse_broker_url(change.before), parse_broker_url(change.after)
    return (one.host, one.port) != (other.host, other.port)


def is_own_kind_changed(difference: Difference) -> bool:
    """Tell whether a broker changes between embedded and existing."""
    if difference.is_added or difference.is_removed:
        return False
    return difference.key[0] is ResourceKind.BROKER and difference.change_of("is_embedded") is not None


def _raised(difference: Difference, change: FieldChange) -> ChangeClass:
    """Return the class that the direction of a change takes, beyond the class of its key."""
    kind, name = difference.key[0], change.name
    if kind is ResourceKind.ADDRESS:
        return _of_address(difference, change)
    if kind is ResourceKind.SETTINGS and name == "records":
        return ChangeClass.RESTARTED
    if kind is ResourceKind.BROKER and name == "is_embedded":
        return ChangeClass.REFUSED
    if kind is ResourceKind.ATTACHMENT or (kind is ResourceKind.CONNECTION and name == "dialer"):
        return ChangeClass.REMADE
    if kind is ResourceKind.USER and name in ("send", "receive") and is_narrowed(change):
        return _TOLD
    if kind is ResourceKind.LISTENER and name == "authentication" and is_tightened(change):
        return _TOLD
    return _TOLD if name in LOWERED_LIMITS and is_lowered(change) else _LIVE


def _of_address(difference: Difference, change: FieldChange) -> ChangeClass:
    name = change.name
    if name == "type":
        return _of_type(change)
    if _follows_type(difference, change):
        return _LIVE
    if name == "shares_links":
        return ChangeClass.REMADE
    return _TOLD if name in LOWERED_LIMITS and is_lowered(change) else _LIVE


def _follows_type(difference: Difference, change: FieldChange) -> bool:
    """Tell whether a value of an address differs only since its type does, so that the type alone has a class."""
    return (
        difference.key[0] is ResourceKind.ADDRESS and change.name != "type" and difference.change_of("type") is not None
    )


def _of_type(change: FieldChange) -> ChangeClass:
    before, after = _KINDS[change.before], _KINDS[change.after]
    if before.is_stored:
        return _MOVED
    if before.is_refused:
        return _LIVE
    return _TOLD if after.is_refused else ChangeClass.REMADE


def _removed_address(difference: Difference) -> ChangeClass:
    return _MOVED if loses_store(difference) else _TOLD


def _removed_broker(difference: Difference) -> ChangeClass:
    assert difference.before is not None
    return _MOVED if difference.before.values["is_embedded"] else ChangeClass.REMADE


def _always(change_class: ChangeClass) -> Callable[[Any], ChangeClass]:
    return lambda _: change_class


_REMOVED: Final[dict[ResourceKind, Callable[[Difference], ChangeClass]]] = {
    ResourceKind.SETTINGS: _always(_LIVE),
    ResourceKind.ROUTER: _always(_TOLD),
    ResourceKind.BROKER: _removed_broker,
    ResourceKind.CONNECTION: _always(ChangeClass.REMADE),
    ResourceKind.ATTACHMENT: _always(ChangeClass.REMADE),
    ResourceKind.LISTENER: _always(_TOLD),
    ResourceKind.ADDRESS: _removed_address,
    ResourceKind.USER: _always(_TOLD),
}
