"""The title of a step: what the step does, in the words of the file.

A value that only follows from another one, such as the name of an address at a broker from the broker, is not told
beside it. A value that differs although the file does not write it, such as `authentication` since the file has users,
is told as a default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from addressing.names import ANONYMOUS
from addressing.topology.broker_url import parse_broker_url
from mesh.change.resolution import USER_RIGHTS
from mesh.change.resource import Difference, FieldChange, ResourceKind
from mesh.change.step import shown

_CHANGES_SHOWN: Final = 6
_PARTS_SHOWN: Final = 4
_ITEMS_SHOWN: Final = 4

_WORDS: Final[Mapping[tuple[ResourceKind, str], str]] = {
    (ResourceKind.SETTINGS, "subscription_broker"): "default_broker",
    (ResourceKind.SETTINGS, "records"): "recording",
    (ResourceKind.SETTINGS, "redact_key"): "redact.key",
    (ResourceKind.SETTINGS, "redact_columns"): "redact.columns",
    (ResourceKind.BROKER, "is_embedded"): "embedded",
    **{(ResourceKind.BROKER, f"tls_{key}"): f"tls.{key}" for key in ("ca", "cert", "key", "verify_hostname")},
    **{(ResourceKind.LISTENER, key): f"tls.{key}" for key in ("ca", "cert", "key")},
    (ResourceKind.CONNECTION, "dialer"): "dialed by",
    (ResourceKind.ADDRESS, "names_at_brokers"): "name at the broker",
    (ResourceKind.ADDRESS, "prefixes"): "prefix at the broker",
    (ResourceKind.ADDRESS, "shares_links"): "shares links",
    (ResourceKind.ADDRESS, "declared_by"): "declared by",
}
"""What the title calls a value that has another name in the file, or none."""

_FOLLOWS: Final[Mapping[tuple[ResourceKind, str], frozenset[str]]] = {
    (ResourceKind.SETTINGS, "records"): frozenset({"level"}),
    (ResourceKind.SETTINGS, "hello_max_age_s"): frozenset({"hello_interval_s"}),
    (ResourceKind.SETTINGS, "redact_columns"): frozenset({"redact_key"}),
    (ResourceKind.BROKER, "is_embedded"): frozenset({"data", "url"}),
    (ResourceKind.ADDRESS, "names_at_brokers"): frozenset({"brokers"}),
    (ResourceKind.ADDRESS, "prefixes"): frozenset({"brokers", "names_at_brokers"}),
    (ResourceKind.ADDRESS, "max_delivery_attempts"): frozenset({"dead_letter"}),
    (ResourceKind.ADDRESS, "shares_links"): frozenset(
        {"brokers", "declared_by", "distribution", "retransmit", "fallback", "priority", "link_log", "spill"}
    ),
    **{
        (ResourceKind.ADDRESS, name): frozenset({"declared_by"})
        for name in ("max_queues", "max_queues_per_user", "queue_expiry_s")
    },
}
"""By kind and value: the values whose change explains the value's change, where the file does not write the value."""
_EXPLAIN_ALL: Final = {ResourceKind.ADDRESS: "type", ResourceKind.BROKER: "is_embedded"}
"""The value of a kind whose change explains all others that the file does not write."""


def title_of(main: Difference, differences: Sequence[Difference], subject: str) -> str:
    """Return what a step does: verb, subject, and the values of the main resource that differ."""
    if main.key == (ResourceKind.USER, ANONYMOUS) and main.resource.written == frozenset():
        return _title_of_everybody(main)
    if main.is_added or main.is_removed:
        return f"{'add' if main.is_added else 'remove'} {subject}{_beside(main, differences)}{_kind_of(main)}"
    changes = [_text(main, change) for change in told_changes(main)]
    more = f", and {len(changes) - _CHANGES_SHOWN} more" if len(changes) > _CHANGES_SHOWN else ""
    return f"change {subject}: {', '.join(changes[:_CHANGES_SHOWN])}{more}"


def told_changes(main: Difference) -> tuple[FieldChange, ...]:
    """Return the changes of a resource that the title of its step names.

    These are the changed keys of the topology file, and the derived values whose changes no changed key explains.

    At least one change is told of a resource that differs.
    """
    changes = main.changes
    names = {change.name for change in changes}
    found = tuple(
        change for change in changes if _is_written(main, change.name) or not _is_explained(main, change, names)
    )
    return found or changes[:1]


def _is_written(main: Difference, name: str) -> bool:
    return any(each is not None and each.is_written(name) for each in (main.before, main.after))


def _is_explained(main: Difference, change: FieldChange, names: set[str]) -> bool:
    kind = main.key[0]
    causes = _FOLLOWS.get((kind, change.name), frozenset())
    if change.name != _EXPLAIN_ALL.get(kind):
        causes = causes.union([_EXPLAIN_ALL.get(kind, "")])
    return not causes.isdisjoint(names)


def _title_of_everybody(main: Difference) -> str:
    """Return what the first user of a mesh, or the removal of the last one, does to everybody else."""
    if main.is_removed:
        return "require a right for everything, as the file has users now"
    return "allow every client to use every address, as the file has no users any more"


def _kind_of(main: Difference) -> str:
    """Return what an address or a user is that comes or goes; an empty text for other resources."""
    values = main.resource.values
    if main.key[0] is ResourceKind.ADDRESS:
        at = f" at {', '.join(values['brokers'])}" if values["brokers"] else ""
        return f": {values['type']}{at}"
    if main.key[0] is ResourceKind.USER and main.is_added:
        rights = [f"{right} {_some(values[right])}" for right in USER_RIGHTS if values[right]]
        return f": {', '.join(rights) or 'no rights'}"
    return ""


def _beside(main: Difference, differences: Sequence[Difference]) -> str:
    """Return what else a step adds or removes beside a node: by name, or in numbers if that is a lot."""
    others = [each for each in differences if each is not main]
    if not others or main.key[0] is ResourceKind.ADDRESS:
        return ""
    if len(others) <= _PARTS_SHOWN:
        return f", with {', '.join(f'{each.key[0]} {each.key[1]}' for each in others)}"
    counts = Counter(each.key[0].value for each in others)
    told = (f"{count:,} {kind}{'s' if count != 1 else ''}" for kind, count in counts.items())
    return f", with {', '.join(told)}"


def _text(main: Difference, change: FieldChange) -> str:
    kind, name = main.key[0], change.name
    before, after = change.before, change.after
    if name == "password":
        return "another password" if before and after else f"password {'set' if after else 'removed'}"
    if name == "url":
        one, other = (_value(name, each and str(parse_broker_url(each))) for each in (before, after))
        return f"url {one} -> {other}" if one != other else "another password in url"
    word = _WORDS.get((kind, name), name)
    if kind is ResourceKind.ADDRESS and name == "brokers" and all(len(each) <= 1 for each in (before, after)):
        word = "broker"
    is_default = main.after is not None and after not in (None, ()) and not main.after.is_written(name)
    default = " (default)" if is_default else ""
    if isinstance(before, tuple) and isinstance(after, tuple):
        return f"{word} {_lists(before, after)}{default}"
    return f"{word} {_value(word, before)} -> {_value(word, after)}{default}"


def _lists(before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    """Return two lists; of long ones only what is added and removed."""
    if max(len(before), len(after)) <= 1:
        return f"{before[0] if before else 'none'} -> {after[0] if after else 'none'}"
    if max(len(before), len(after)) <= _ITEMS_SHOWN:
        return f"{_value('', before)} -> {_value('', after)}"
    added, removed = ([each for each in one if each not in other] for one, other in ((after, before), (before, after)))
    parts = [f"{verb} {_some(items)}" for verb, items in (("gets", added), ("loses", removed)) if items]
    return " and ".join(parts) or "in another order"


def _some(items: Sequence[Any]) -> str:
    more = f" and {len(items) - _ITEMS_SHOWN:,} more" if len(items) > _ITEMS_SHOWN else ""
    return f"{', '.join(map(str, items[:_ITEMS_SHOWN]))}{more}"


def _value(word: str, value: Any) -> str:
    found = shown(word, value) if word != "url" else value
    if isinstance(found, list):
        return f"[{', '.join(map(str, found))}]"
    if isinstance(found, bool):
        return "true" if found else "false"
    return "none" if found is None else str(found)
