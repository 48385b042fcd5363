"""Check of addresses that are the same queue or topic at one embedded broker: the options of both must be equal."""

from __future__ import annotations

from collections.abc import Iterator

from addressing.pattern import PatternMap
from addressing.topology.model import DeclaredAddress, Topology
from addressing.topology.problem import Path, Problem
from addressing.topology.queue_checks import QUEUE_OPTIONS, TOPIC_OPTIONS

_SAID_OF_IT = ("type", *QUEUE_OPTIONS, *TOPIC_OPTIONS)


def check_shared_names(topology: Topology) -> Iterator[Problem]:
    """Yield a problem for each address whose ``broker_address`` is also another address's name at the same broker.

    Only embedded brokers count, and only addresses whose types or options differ.
    """
    entries = PatternMap({pattern: pattern for pattern in topology.addresses})
    first_of: dict[tuple[str, str], str] = {}
    for pattern, address in topology.addresses.items():
        name = address.broker_address
        for broker in _embedded(topology, address) if name else ():
            other = first_of.setdefault((broker, name), _called(name, broker, topology, entries) or pattern)
            key = _difference(address, topology.addresses[other])
            if key is not None:
                yield _disagree(pattern, name, broker, other, key)
                break


def _called(name: str, broker: str, topology: Topology, entries: PatternMap[str]) -> str | None:
    """Return the declared address or pattern that ``name`` at the embedded ``broker`` falls under.

    None if there is none, if that address is not at the broker, or if it has a ``broker_address``, and so another name
    there.
    """
    found = entries.find(name)
    if found is None or topology.addresses[found].broker_address:
        return None
    return found if broker in _embedded(topology, topology.addresses[found]) else None


def _embedded(topology: Topology, address: DeclaredAddress) -> list[str]:
    brokers = topology.brokers
    return [name for name in topology.brokers_of(address) if name in brokers and brokers[name].is_embedded]


def _difference(one: DeclaredAddress, other: DeclaredAddress) -> str | None:
    return next((key for key in _SAID_OF_IT if getattr(one, key) != getattr(other, key)), None)


def _disagree(pattern: str, name: str, broker: str, other: str, key: str) -> Problem:
    path: Path = ("addresses", pattern)
    message = f"address {pattern!r}: {name!r} at {broker} is also address {other!r}, which has another {key!r}"
    theirs: Path = ("addresses", other)
    relies_on = tuple((*of, part) for of in (path, theirs) for part in (key, "broker", "brokers"))
    return Problem((*path, "broker_address"), "AM415", message, relies_on=(*relies_on, ("default_broker",)))
