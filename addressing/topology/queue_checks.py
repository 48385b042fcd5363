"""Checks of options of queues and topics: options must fit each other, and queues for dead letters must exist.

So must queues for expired messages; either target must be on all brokers of the address, and close no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from addressing.pattern import PatternMap, is_pattern
from addressing.queue_policy import WhenFull
from addressing.topology.declared_names import DeclaredNames
from addressing.topology.document import as_key
from addressing.topology.model import DeclaredAddress, Topology
from addressing.topology.problem import Path, Problem, hint_for, nearest

QUEUE_OPTIONS = ("dead_letter", "max_delivery_attempts", "expiry", "max_messages", "max_bytes", "when_full")
PATTERN_OPTIONS = ("max_queues", "max_queues_per_user", "queue_expiry_s")
TOPIC_OPTIONS = ("subscription_expiry_s", "fill_to")
_WAYS = ("dead_letter", "expiry")
_OF_TOPICS = (WhenFull.DROP_OLDEST, WhenFull.DEAD_LETTER)


def check_queues(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    entries = PatternMap({pattern: pattern for pattern in topology.addresses})
    for pattern, address in topology.addresses.items():
        if address.type.is_stored:
            path: Path = ("addresses", pattern)
            yield from _check_needs(path, pattern, address)
            yield from _check_pattern_options(path, pattern, address)
            yield from _check_brokers(path, pattern, address, topology)
            for way in _WAYS:
                yield from _check_way(path, way, address, topology, entries, declared)
    yield from _check_rounds(topology, entries)


def _check_needs(path: Path, pattern: str, address: DeclaredAddress) -> Iterator[Problem]:
    def lacks(key: str, message: str, *others: str) -> Problem:
        relies_on = tuple((*path, other) for other in ("type", key, *others))
        return Problem((*path, key), "AM412", f"address {pattern!r}: {message}", at_key=True, relies_on=relies_on)

    if address.max_delivery_attempts is not None and address.dead_letter is None:
        yield lacks("max_delivery_attempts", "'max_delivery_attempts' without 'dead_letter'", "dead_letter")
    if address.when_full is None:
        return
    if address.max_messages is None and address.max_bytes is None:
        what = f"'when_full: {address.when_full}' without 'max_messages' or 'max_bytes'"
        yield lacks("when_full", what, "max_messages", "max_bytes")
    if address.when_full is WhenFull.DEAD_LETTER and address.dead_letter is None:
        yield lacks("when_full", "'when_full: dead-letter' without 'dead_letter'", "dead_letter")
    if address.type.has_subscriptions and address.when_full not in _OF_TOPICS:
        yield lacks("when_full", f"a topic with 'when_full: {address.when_full}', expected drop-oldest or dead-letter")


def _check_pattern_options(path: Path, pattern: str, address: DeclaredAddress) -> Iterator[Problem]:
    for key in PATTERN_OPTIONS:
        if key in address.model_fields_set and address.type.has_queues and not is_pattern(pattern):
            message = f"address {pattern!r}: {key!r} is valid only for a pattern, and this address is a single queue"
            yield Problem((*path, key), "AM416", message, at_key=True, relies_on=((*path, "type"),))


def _check_brokers(path: Path, pattern: str, address: DeclaredAddress, topology: Topology) -> Iterator[Problem]:
    # A broker with both or none of data and url is AM301, and of neither kind.
    existing = [
        name
        for name in _brokers_of(address, topology)
        if topology.brokers[name].url is not None and topology.brokers[name].data is None
    ]
    for key in (*QUEUE_OPTIONS, *PATTERN_OPTIONS, *TOPIC_OPTIONS) if existing else ():
        if key in address.model_fields_set:
            message = (
                f"address {pattern!r}: {key!r} is not valid for a queue or topic at the existing broker {existing[0]!r}"
            )
            relies_on: tuple[Path, ...] = ((*path, "broker"), (*path, "brokers"), ("default_broker",), ("brokers",))
            yield Problem((*path, key), "AM413", message, at_key=True, relies_on=relies_on)


def _brokers_of(address: DeclaredAddress, topology: Topology) -> list[str]:
    return [name for name in topology.brokers_of(address) if name in topology.brokers]


def _check_way(
    path: Path,
    way: str,
    address: DeclaredAddress,
    topology: Topology,
    entries: PatternMap[str],
    declared: DeclaredNames,
) -> Iterator[Problem]:
    name: str | None = getattr(address, way)
    if name is None:
        return
    here, subject = (*path, way), f"address {path[1]!r}: '{way}: {name}'"
    wanted = _brokers_of(address, topology)

    def cannot(what: str, fix: str, *relies_on: Path, known: Sequence[str] = ()) -> Problem:
        hint = hint_for(name, known, title="queues") if known else ""
        return Problem(
            here, "AM410", f"{subject} {what}", hint, fix, suggestion=nearest(name, known), relies_on=relies_on
        )

    if is_pattern(name):
        yield Problem(here, "AM410", f"{subject} is a pattern, expected one queue")
        return
    target = entries.find(name)
    if target is None:
        if declared.addresses is not None:
            queues = [queue for queue in _plain_queues(topology) if queue != path[1]]
            fix = f"declare it, '{_declared(name, wanted, topology)}', or name another queue."
            yield cannot("is not an address of this mesh", fix, known=queues)
        return
    other, place = topology.addresses[target], ("addresses", target)
    if not other.type.has_queues:
        new = name if target != name else _new_queue(f"{name}.kept", topology)
        fix = f"declare a queue, '{_declared(new, wanted, topology)}'{', and name that' if new != name else ''}."
        yield cannot(f"is of type {other.type}, expected a queue", fix, (*place, "type"))
        return
    has = _brokers_of(other, topology)
    missing = [broker for broker in wanted if broker not in has]
    # A queue without any broker is not reported here: `address_checks` reports it.
    if has and missing:
        what = f"is on {_names(has)}, but not on {_names(missing)}, where the address is"
        fix = (
            f"put {target!r} on all of them, 'brokers: [{', '.join([*has, *missing])}]', or name a queue that is there."
        )
        relies_on = tuple((*part, key) for part in (path, place) for key in ("broker", "brokers"))
        yield cannot(what, fix, *relies_on, ("default_broker",), ("brokers",))


def _declared(name: str, brokers: Sequence[str], topology: Topology) -> str:
    """Return a line of a topology file that declares a queue ``name`` on ``brokers``, to suggest in an error's fix."""
    if list(brokers) in ([], [topology.fallback_broker]):
        return f"{as_key(name)}: queue"
    where = f"broker: {brokers[0]}" if len(brokers) == 1 else f"brokers: [{', '.join(brokers)}]"
    return f"{as_key(name)}: {{type: queue, {where}}}"


def _new_queue(name: str, topology: Topology) -> str:
    names = (name if i == 1 else f"{name}{i}" for i in count(1))
    return next(each for each in names if each not in topology.addresses)


def _names(brokers: Sequence[str]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {' and '.join(map(repr, brokers))}"


def _plain_queues(topology: Topology) -> list[str]:
    addresses = topology.addresses.items()
    return [pattern for pattern, entry in addresses if entry.type.has_queues and not is_pattern(pattern)]


def _check_rounds(topology: Topology, entries: PatternMap[str]) -> Iterator[Problem]:
    """Yield a problem for each ``dead_letter`` or ``expiry`` that closes a cycle of queues, once for each cycle."""
    ways = {
        pattern: {way: entries.find(name) for way in _WAYS if (name := getattr(address, way)) and not is_pattern(name)}
        for pattern, address in topology.addresses.items()
    }
    done: set[str] = set()
    for start in ways:
        yield from _walk(start, [], ways, done)


def _walk(pattern: str, trail: list[str], ways: dict[str, dict[str, str | None]], done: set[str]) -> Iterator[Problem]:
    if pattern in done:
        return
    trail.append(pattern)
    for way, target in ways[pattern].items():
        if target in trail:
            legs = " -> ".join([*trail[trail.index(target) :], target])
            message = f"address {pattern!r}: {way!r} closes a cycle of queues, {legs}"
            relies_on: tuple[Path, ...] = tuple(("addresses", each) for each in trail)
            yield Problem(("addresses", pattern, way), "AM411", message, relies_on=relies_on)
        elif target is not None:
            yield from _walk(target, trail, ways, done)
    trail.pop()
    done.add(pattern)
