"""Do the addresses of a topology make sense: brokers that exist, options that fit, fallbacks that are queues?"""

from __future__ import annotations

from collections.abc import Iterator

from addressing.book import AddressKind
from addressing.declared import Declared, unknown
from addressing.pattern import PatternMap, PatternSet, is_pattern
from addressing.problem import Path, Problem, hint_for, nearest
from addressing.topology import Address, Topology


def check_addresses(topology: Topology, declared: Declared) -> Iterator[Problem]:
    """Yield what is wrong with addresses that are right in themselves: brokers, options, fallbacks."""
    for pattern, address in topology.addresses.items():
        path: Path = ("addresses", pattern)
        subject = f"address {pattern!r}:"
        for key, broker in _named_brokers(address):
            yield from unknown("broker", (*path, *key), broker, declared.brokers, subject)
        yield from _check_options(path, subject, pattern, address)
        if address.type.is_stored:
            yield from _check_home(path, subject, address, topology, declared)
    yield from _check_fallbacks(topology, declared)


def _named_brokers(address: Address) -> Iterator[tuple[Path, str]]:
    if address.broker is not None:
        yield ("broker",), address.broker
    for i, broker in enumerate(address.brokers):
        yield ("brokers", i), broker


def _check_options(path: Path, subject: str, pattern: str, address: Address) -> Iterator[Problem]:
    kind = address.type
    refused = () if kind.is_stored else ("broker", "brokers", "broker_address")
    if kind is not AddressKind.ANYCAST:
        refused = (*refused, "distribution", "fallback")
    if kind is AddressKind.UNAVAILABLE:
        refused = (*refused, "priority")
    for key in refused:
        if key in address.model_fields_set:
            yield Problem((*path, key), "AM405", f"{subject} {key!r} has no meaning for type {kind}", at_key=True)
    if address.broker is not None and address.brokers:
        yield Problem((*path, "broker"), "AM406", f"{subject} both 'broker' and 'brokers'", at_key=True)
    for key in ("broker_address", "fallback"):
        if getattr(address, key) and is_pattern(pattern):
            message = f"{subject} {key!r} would fold every address of the pattern into one"
            yield Problem((*path, key), "AM406", message, at_key=True)
    for i, broker in enumerate(address.brokers):
        if broker in address.brokers[:i]:
            yield Problem((*path, "brokers", i), "AM406", f"{subject} broker {broker!r} is listed twice")


def _check_home(
    path: Path, subject: str, address: Address, topology: Topology, declared: Declared
) -> Iterator[Problem]:
    if address.type is AddressKind.TOPIC and len(address.brokers) > 1:
        yield Problem((*path, "brokers"), "AM404", f"{subject} a topic on {len(address.brokers)} brokers, expected one")
    known = declared.brokers
    if known is None or address.broker or address.brokers or topology.default_broker or len(known) == 1:
        return
    if known:
        message = f"{subject} a {address.type} needs a broker, and there are {len(known)} to choose from"
        fix = f"name the broker: {{type: {address.type}, broker: NAME}}, or set default_broker."
        yield Problem(path, "AM403", message, hint=hint_for("", known), fix=fix, at_key=True)
    else:
        fix = "add a broker: 'brokers: {b1: {data: ./data/b1}}'."
        yield Problem(
            path, "AM403", f"{subject} a {address.type} needs a broker, and there is none", fix=fix, at_key=True
        )


def _check_fallbacks(topology: Topology, declared: Declared) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    entries = PatternMap(topology.addresses)
    for pattern, address in topology.addresses.items():
        name = address.fallback
        if name is None or address.type is not AddressKind.ANYCAST:
            continue
        path, subject = ("addresses", pattern, "fallback"), f"address {pattern!r}:"
        target = entries.find(name)
        if is_pattern(name) or (target and target.type is not AddressKind.QUEUE):
            found = "a pattern" if is_pattern(name) else f"of type {target.type}" if target else ""
            yield Problem(path, "AM408", f"{subject} the fallback {name!r} is {found}, expected one queue")
        elif target is None:
            yield from _unknown_fallback(path, subject, name, topology, declared)
        elif owners.setdefault(name, pattern) != pattern:
            message = f"{subject} the queue {name!r} is the fallback of address {owners[name]!r} already"
            yield Problem(path, "AM409", message)


def _unknown_fallback(path: Path, subject: str, name: str, topology: Topology, declared: Declared) -> Iterator[Problem]:
    if declared.addresses is None or name in PatternSet(declared.addresses):
        return
    queues = [pattern for pattern, address in topology.addresses.items() if address.type is AddressKind.QUEUE]
    yield Problem(
        path,
        "AM407",
        f"{subject} the fallback {name!r} is no address of this mesh",
        hint=hint_for(name, queues, title="queues"),
        fix=f"add the queue, '{name}: queue', or correct the name.",
        suggestion=nearest(name, queues),
    )
