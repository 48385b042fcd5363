"""What the error for an option of one address on a pattern tells to write is right when it is written."""

import re

import pytest

from addressing.book import AddressBook
from addressing.errors import TopologyErrors
from addressing.topology.loader import parse_topology

HEAD = "mesh: m\nrouters: {r1: }\nbrokers: {b1: {data: ./b1}}\naddresses:\n"
PATTERNS = ["telemetry/#", "telemetry/*", "a.*.b", "#", "*.x", "*", "a/#/b", "a.b.#"]


def advice(addresses: str) -> list[str]:
    """The lines that the only error of these addresses tells to write."""
    with pytest.raises(TopologyErrors) as failed:
        parse_topology(HEAD + addresses)
    (error,) = failed.value.errors
    assert error.code == "AM406"
    return re.findall(r"'([^']*: [^']*)'", error.fix)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_advice_for_a_fallback_on_a_pattern_works_in_both_ways(pattern: str) -> None:
    one, waiting, whole = advice(f"  q: queue\n  '{pattern}': {{type: anycast, fallback: q}}\n")
    book = AddressBook(parse_topology(f"{HEAD}  '{pattern}': anycast\n  {one}\n  {waiting}\n"))
    (policy,) = book.with_fallback()
    assert book.resolve(policy.fallback.name).kind == "queue"
    assert parse_topology(f"{HEAD}  {whole}\n").addresses[pattern].type == "queue"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_advice_for_a_broker_address_on_a_pattern_works(pattern: str) -> None:
    (line,) = advice(f"  '{pattern}': {{type: queue, broker_address: q}}\n")
    topology = parse_topology(f"{HEAD}  '{pattern}': queue\n  {line.replace('NAME', 'q')}\n")
    assert [address.broker_address for address in topology.addresses.values()] == ["", "q"]
