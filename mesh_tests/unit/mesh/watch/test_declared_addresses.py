"""What the topology declares about an address of each type, and who decides where its deliveries go."""

from __future__ import annotations

import pytest

from addressing.book import SpaceBooks
from addressing.topology.loader import parse_topology
from mesh.watch.declared_addresses import decided_sentences, declared_sentences

TOPOLOGY = parse_topology(
    """
mesh: work
routers: {r1: }
brokers:
  b1: {data: ./b1, routers: [r1]}
  b2: {data: ./b2, routers: [r1]}
  old: {url: "amqp://127.0.0.1:5699", routers: [r1], address_prefix: "queue://"}
default_broker: b1
addresses:
  closest: {type: anycast, distribution: closest}
  spilling: {type: anycast, distribution: closest, spill: true}
  rpc: anycast
  work.#: anycast
  rescued: {type: anycast, fallback: orders}
  prices: multicast
  ticks.#: multicast
  orders: queue
  jobs.#: queue
  sharded: {type: queue, brokers: [b1, b2]}
  news.#: topic
  theirs: {type: queue, broker: old, broker_address: ITS.NAME}
  gone: unavailable
"""
)


def declared(address: str) -> list[str]:
    return list(declared_sentences(TOPOLOGY, address, SpaceBooks(TOPOLOGY).of("").resolve(address)))


def decided(address: str) -> list[str]:
    policy = SpaceBooks(TOPOLOGY).of("").resolve(address)
    assert policy is not None
    return list(decided_sentences(TOPOLOGY, address, policy))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("orders", "each client's link is tied to a link of its own at broker b1"),
        ("sharded", "a queue over the brokers b1, b2: each message goes to one that has credit"),
        ("closest", "each message goes to the taker with the least path cost"),
        ("spilling", "each message goes to the taker with the least path cost among those with credit"),
        ("rpc", "each message goes to the taker with the least sum of outstanding deliveries and path cost"),
        ("prices", "each consumer gets a copy of each message"),
        ("gone", "the topology says that the address is unavailable: links to it are refused"),
        ("rescued", "without a consumer, messages go to the queue orders"),
        ("_topo/0/r1/temp.1", "_topo/0/r1/temp.1: an address of the mesh itself, or a dynamic one"),
        ("nothing", "nothing: the topology declares no such address, so links to it are refused with amqp:not-found"),
    ],
)
def test_what_the_topology_declares_is_said(address: str, sentence: str) -> None:
    assert sentence in declared(address)


CHOICE = "each router chooses, for each message, one of its consumers or a circuit to another router"
COPIES = "routers choose nobody: a decision lists the takers that got a copy, or that a message waits for"
NO_ADDRESS = "only messages of links without an address are passed on by choice, and have decisions"


def led(address: str, place: str) -> str:
    return (
        f"no router chooses for deliveries of a link to {address}: a producer's link leads to {place}, and a "
        "consumer's link comes from there"
    )


def shared(address: str, pattern: str) -> str:
    return (
        f"{address} may share its circuits with other addresses of {pattern}: decisions about messages of links "
        "without an address are those of all of them"
    )


def by_address(pattern: str) -> str:
    return f"{pattern} is a pattern, and decisions are recorded by address: name one address that it covers"


OF_PATTERN = "; for the pattern itself, they are those about messages of links without an address"


@pytest.mark.parametrize(
    ("address", "sentences"),
    [
        ("rpc", [CHOICE]),
        ("closest", [CHOICE]),
        ("rescued", [CHOICE]),
        ("work.eu", [CHOICE, shared("work.eu", "work.#")]),
        ("work.#", [by_address("work.#") + OF_PATTERN]),
        ("prices", [COPIES]),
        ("ticks.eu", [COPIES]),
        ("ticks.#", [by_address("ticks.#")]),
        ("ticks.*", [by_address("ticks.*")]),
        ("orders", [led("orders", "queue orders of broker b1"), NO_ADDRESS]),
        (
            "jobs.eu",
            [led("jobs.eu", "queue jobs.eu of broker b1"), NO_ADDRESS, shared("jobs.eu", "jobs.#")],
        ),
        ("jobs.#", [by_address("jobs.#") + OF_PATTERN]),
        (
            "news.eu",
            [
                led("news.eu", "topic news.eu of broker b1, which keeps a copy for each subscription"),
                NO_ADDRESS,
                shared("news.eu", "news.#"),
            ],
        ),
        ("theirs", [led("theirs", "queue queue://ITS.NAME of the existing broker old"), NO_ADDRESS]),
        ("sharded", ["routers choose a broker for each message of a producer, and a consumer for each message of a "
                     "broker"]),
    ],
)  # fmt: skip
def test_it_is_said_who_decides_about_deliveries_and_what_a_recording_shows(address: str, sentences: list[str]) -> None:
    assert decided(address) == sentences
