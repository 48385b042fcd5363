"""Checks of a topology file's addresses: brokers must exist, options must fit the type, fallbacks must be queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from addressing.kinds import Distribution
from addressing.pattern import PatternMap, is_pattern
from addressing.topology.declared_names import DeclaredNames, unknown
from addressing.topology.document import as_key
from addressing.topology.model import DeclaredAddress, Topology
from addressing.topology.problem import Path, Problem, hint_for, nearest
from addressing.topology.queue_checks import PATTERN_OPTIONS, QUEUE_OPTIONS, TOPIC_OPTIONS, check_queues
from addressing.topology.shared_names import check_shared_names


def check_addresses(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    """Yield all problems of the topology's addresses beyond invalid values, from the checks of queues, too.

    Such problems are unknown or missing brokers, options that do not fit the type or each other, and wrong fallbacks.
    """
    for pattern, address in topology.addresses.items():
        path: Path = ("addresses", pattern)
        subject = f"address {pattern!r}:"
        for key, broker in _named_brokers(address):
            yield from unknown("broker", (*path, *key), broker, declared.brokers, subject)
        yield from _check_options(path, subject, pattern, address)
        if address.type.is_stored:
            yield from _check_home(path, subject, address, topology, declared)
    yield from check_queues(topology, declared)
    yield from check_shared_names(topology)
    yield from _check_fallbacks(topology, declared)


def _named_brokers(address: DeclaredAddress) -> Iterator[tuple[Path, str]]:
    if address.broker is not None:
        yield ("broker",), address.broker
    for i, broker in enumerate(address.brokers):
        yield ("brokers", i), broker


def _check_options(path: Path, subject: str, pattern: str, address: DeclaredAddress) -> Iterator[Problem]:
    kind = address.type
    refused: tuple[str, ...] = () if kind.is_stored else ("broker", "brokers", "broker_address", *QUEUE_OPTIONS)
    if not kind.is_distributed:
        refused = (*refused, "distribution", "fallback", "retransmit", "spill")
    if not kind.has_queues:
        refused = (*refused, *PATTERN_OPTIONS)
    if not kind.has_subscriptions:
        refused = (*refused, *(key for key in TOPIC_OPTIONS if key != "fill_to" or not kind.has_filters))
    if kind.is_refused:
        refused = (*refused, "priority")
    for key in refused:
        if key in address.model_fields_set:
            message = f"{subject} {key!r} is not valid for type {kind}"
            yield Problem((*path, key), "AM405", message, at_key=True, relies_on=((*path, "type"),))
    if address.spill and kind.is_distributed and address.distribution is not Distribution.CLOSEST:
        message = f"{subject} 'spill' is valid only with 'distribution: closest'"
        fix = "add 'distribution: closest', or remove 'spill': balanced addresses always use all consumers with credit."
        yield Problem((*path, "spill"), "AM405", message, fix=fix, at_key=True, relies_on=((*path, "type"),))
    yield from _check_brokers(path, subject, address)
    if is_pattern(pattern):
        yield from _check_pattern(path, subject, pattern, address)


def _check_pattern(path: Path, subject: str, pattern: str, address: DeclaredAddress) -> Iterator[Problem]:
    """Yield a problem for ``broker_address`` or ``fallback`` of a pattern: all its addresses would share the queue."""
    example = pattern.replace("*", "x").replace("#", "x")
    fixes = {
        "broker_address": f"remove it, or declare one address with it: '{as_key(example)}: "
        f"{{type: {address.type}, broker_address: NAME}}'.",
        "fallback": f"declare each address that needs a fallback by its name, with a queue of its own, beside the "
        f"pattern: '{as_key(example)}: {{type: anycast, fallback: {example}.waiting}}' and "
        f"'{as_key(example + '.waiting')}: queue'; or make the whole pattern a queue: "
        f"'{as_key(pattern)}: queue'.",
    }
    is_fitting = {"broker_address": address.type.is_stored, "fallback": address.type.is_distributed}
    for key, fix in fixes.items():
        if getattr(address, key) and is_fitting[key]:
            message = f"{subject} {key!r} would lead every address of the pattern to one queue"
            yield Problem((*path, key), "AM406", message, fix=fix, at_key=True, relies_on=((*path, "type"),))


def _check_brokers(path: Path, subject: str, address: DeclaredAddress) -> Iterator[Problem]:
    if address.broker is not None and address.brokers:
        # The text of the fix does not repeat the brokers of the file: a name may be wrong, and the list long.
        fix = "keep 'brokers: [NAME, NAME]' for a queue on several brokers, 'broker: NAME' for one; remove the other."
        yield Problem(
            (*path, "broker"),
            "AM406",
            f"{subject} expected one of 'broker' and 'brokers', got both",
            fix=fix,
            at_key=True,
        )
    for i, broker in enumerate(address.brokers):
        if broker in address.brokers[:i]:
            fix = f"write 'brokers: [{', '.join(dict.fromkeys(address.brokers))}]'."
            message = f"{subject} broker {broker!r} is listed twice"
            yield Problem((*path, "brokers", i), "AM406", message, fix=fix, relies_on=((*path, "brokers"),))


def _check_home(
    path: Path, subject: str, address: DeclaredAddress, topology: Topology, declared: DeclaredNames
) -> Iterator[Problem]:
    if address.type.has_subscriptions and len(address.brokers) > 1:
        message = f"{subject} a topic on {len(address.brokers)} brokers, expected one"
        yield Problem((*path, "brokers"), "AM404", message, relies_on=((*path, "type"),))
    known = declared.brokers
    relies_on: tuple[Path, ...] = ((*path, "type"), (*path, "broker"), (*path, "brokers"), ("default_broker",))
    if known is None or address.broker or address.brokers or topology.default_broker or len(known) == 1:
        return
    if known:
        message = f"{subject} a {address.type} needs a broker, and there are {len(known)} to choose from"
        fix = f"name the broker: {{type: {address.type}, broker: NAME}}, or set default_broker."
        yield Problem(path, "AM403", message, hint=hint_for("", known), fix=fix, at_key=True, relies_on=relies_on)
    else:
        fix = "add a broker: 'brokers: {b1: {data: ./data/b1}}'."
        message = f"{subject} a {address.type} needs a broker, and there is none"
        yield Problem(path, "AM403", message, fix=fix, at_key=True, relies_on=relies_on)


def _check_fallbacks(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    entries = PatternMap({pattern: pattern for pattern in topology.addresses})
    for pattern, address in topology.addresses.items():
        name = address.fallback
        if name is None or not address.type.is_distributed:
            continue
        path: Path = ("addresses", pattern, "fallback")
        subject, target = f"address {pattern!r}:", entries.find(name)
        if is_pattern(name):
            yield _no_queue(path, subject, name, "a pattern", topology)
        elif target is None:
            yield from _unknown_fallback(path, subject, name, topology, declared)
        elif not topology.addresses[target].type.has_queues:
            problem = _no_queue(path, subject, name, f"of type {topology.addresses[target].type}", topology)
            yield replace(problem, relies_on=(("addresses", target, "type"),))
        elif owners.setdefault(name, pattern) != pattern:
            message = f"{subject} the queue {name!r} is the fallback of address {owners[name]!r} already"
            fix = f"declare a queue for it alone, '{as_key(_new_queue(pattern, topology))}: queue', and name that."
            yield Problem(path, "AM409", message, fix=fix)


def _no_queue(path: Path, subject: str, name: str, what: str, topology: Topology) -> Problem:
    queues = _plain_queues(topology)
    new = _new_queue(str(path[1]), topology)
    which = f"name a queue, such as 'fallback: {queues[0]}', or" if queues else "the topology has no free queue:"
    fix = f"{which} declare one, '{as_key(new)}: queue', and write 'fallback: {new}'."
    return Problem(path, "AM408", f"{subject} the fallback {name!r} is {what}, expected one queue", fix=fix)


def _plain_queues(topology: Topology) -> list[str]:
    """Return the queues that an address may have as its fallback: declared by name, and no address's fallback yet."""
    taken = {address.fallback for address in topology.addresses.values()}
    queues = [pattern for pattern, address in topology.addresses.items() if address.type.has_queues]
    return [queue for queue in queues if queue not in taken and not is_pattern(queue)]


def _new_queue(pattern: str, topology: Topology) -> str:
    """Return a name that is not declared yet, to suggest for a new queue: the fallback of the address ``pattern``."""
    base = f"{pattern.replace('*', 'x').replace('#', 'x')}.waiting"
    names = (base if i == 1 else f"{base}{i}" for i in count(1))
    return next(name for name in names if name not in topology.addresses)


def _unknown_fallback(
    path: Path, subject: str, name: str, topology: Topology, declared: DeclaredNames
) -> Iterator[Problem]:
    if declared.addresses is None:
        return
    queues = _plain_queues(topology)
    yield Problem(
        path,
        "AM407",
        f"{subject} the fallback {name!r} is not an address of this mesh",
        hint=hint_for(name, queues, title="queues"),
        fix=f"add the queue, '{as_key(name)}: queue', or correct the name.",
        suggestion=nearest(name, queues),
    )
