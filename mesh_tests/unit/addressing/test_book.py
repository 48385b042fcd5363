"""What the address book says about addresses: declared, by pattern, and internal."""

from math import inf

import pytest

from addressing.address import Address, normalize
from addressing.book import AddressBook, AddressPolicy
from addressing.kinds import AddressKind, Distribution
from addressing.topology.loader import parse_topology

TOPOLOGY = parse_topology("""
mesh: m
routers: {r1: }
brokers:
  b1: {data: b1}
  b2: {data: b2}
  rabbit: {url: "amqp://localhost", address_prefix: /queue/}
default_broker: b1
addresses:
  orders: queue
  sharded: {type: queue, brokers: [b1, b2]}
  mixed: {type: queue, brokers: [b2, rabbit], broker_address: elsewhere}
  legacy.#: {type: queue, broker: rabbit}
  news.#: topic
  alerts.#: {type: topic, subscription_expiry_s: 3600, fill_to: true}
  news.local: {type: anycast, distribution: closest}
  rpc: anycast
  again: {type: anycast, retransmit: true}
  jobs: {type: anycast, fallback: legacy.jobs, priority: 7}
  prices: multicast
  secret.#: unavailable
""")
BOOK = AddressBook(TOPOLOGY)


def policy(address: str) -> AddressPolicy:
    found = BOOK.resolve(address)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("address", "kind", "brokers"),
    [
        ("orders", AddressKind.QUEUE, ("b1",)),
        ("sharded", AddressKind.QUEUE, ("b1", "b2")),
        ("legacy.x", AddressKind.QUEUE, ("rabbit",)),
        ("news.eu.paris", AddressKind.TOPIC, ("b1",)),
        ("news.local", AddressKind.ANYCAST, ()),
        ("prices", AddressKind.MULTICAST, ()),
        ("secret.plans", AddressKind.UNAVAILABLE, ()),
    ],
)
def test_an_address_is_what_its_best_pattern_declares(
    address: str, kind: AddressKind, brokers: tuple[str, ...]
) -> None:
    assert (policy(address).kind, policy(address).brokers) == (kind, brokers)
    assert policy(address).address == ("", address)


@pytest.mark.parametrize("address", ["nothing", "", "amqp://host", "orders.eu", "x" * 5000])
def test_an_address_that_nobody_declared_is_unknown(address: str) -> None:
    assert BOOK.resolve(address) is None


def test_every_form_of_an_address_has_the_same_policy() -> None:
    assert BOOK.resolve("amqp://host/orders") == BOOK.resolve("amqp:/orders") == BOOK.resolve("orders")


def test_only_a_queue_on_several_brokers_is_sharded() -> None:
    assert policy("sharded").is_sharded
    assert not policy("orders").is_sharded


def test_each_broker_knows_an_address_by_its_own_prefix() -> None:
    assert policy("orders").at_broker("b1") == "orders"
    assert policy("legacy.x").at_broker("rabbit") == "/queue/legacy.x"
    assert policy("mixed").at_broker("b2") == "elsewhere"
    assert policy("mixed").at_broker("rabbit") == "/queue/elsewhere"


@pytest.mark.parametrize(
    ("broker", "name", "address"),
    [
        ("b1", "orders", "orders"),
        ("b2", "elsewhere", "mixed"),
        ("rabbit", "/queue/elsewhere", "mixed"),
        ("rabbit", "/queue/legacy.x", "legacy.x"),
        ("b1", "elsewhere", "elsewhere"),
    ],
)
def test_what_a_broker_calls_an_address_leads_back_to_it(broker: str, name: str, address: str) -> None:
    assert BOOK.name_in_mesh(broker, name) == address


def test_an_anycast_may_have_a_fallback_which_is_a_queue() -> None:
    fallback = policy("jobs").fallback
    assert fallback == ("", "legacy.jobs")
    assert policy(fallback.name).kind is AddressKind.QUEUE
    assert policy("rpc").fallback is None
    assert BOOK.with_fallback() == (policy("jobs"),)


def test_what_is_in_doubt_is_sent_again_only_where_it_is_declared() -> None:
    assert policy("again").retransmit
    assert not policy("rpc").retransmit


@pytest.mark.parametrize(("address", "expiry_s"), [("alerts.fire", 3600), ("alerts.#", 3600), ("news.x", inf)])
def test_subscriptions_of_a_topic_expire_when_it_says_so(address: str, expiry_s: float) -> None:
    assert policy(address).subscription_expiry_s == expiry_s


@pytest.mark.parametrize(("address", "fills_to"), [("alerts.fire", True), ("news.x", False), ("orders", False)])
def test_a_topic_fills_in_to_when_it_says_so(address: str, fills_to: bool) -> None:
    assert policy(address).fills_to is fills_to


@pytest.mark.parametrize(("address", "has_wildcards"), [("news.#", True), ("news.*.x", True), ("news.x", False)])
def test_an_address_has_wildcards_if_it_is_a_pattern_itself(address: str, has_wildcards: bool) -> None:
    assert policy(address).has_wildcards is has_wildcards


def test_the_priority_of_an_address_is_4_unless_declared() -> None:
    assert policy("jobs").priority == 7
    assert policy("rpc").priority == policy("_topo/0/r1/temp.x").priority == 4


def test_distribution_is_balanced_unless_declared() -> None:
    assert policy("rpc").distribution is Distribution.BALANCED
    assert policy("news.local").distribution is Distribution.CLOSEST


def test_a_policy_names_the_pattern_it_comes_from() -> None:
    assert policy("news.eu").pattern == "news.#"


def test_dynamic_and_probe_addresses_are_internal_anycast() -> None:
    for address in (
        "amqp:/_topo/0/r1/temp.x",
        "_topo/0/r9/temp.x",
        "_amqpmesh/probe/7",
        "_amqpmesh/observe/h1",
        "_amqpmesh/management/r1",
    ):
        assert policy(address).kind is AddressKind.ANYCAST
        assert policy(address).is_internal
    assert policy("amqp:/_topo/0/r1/temp.x").address == ("", "_topo/0/r1/temp.x")


def test_the_observers_of_all_hosts_have_an_internal_multicast_address() -> None:
    assert (policy("_amqpmesh/observe").kind, policy("_amqpmesh/observe").is_internal) == (AddressKind.MULTICAST, True)


def test_a_probe_queue_lives_on_the_embedded_broker_it_names() -> None:
    probe = policy("_amqpmesh/broker/b2/probe.1")
    assert (probe.kind, probe.brokers, probe.is_internal) == (AddressKind.QUEUE, ("b2",), True)
    assert probe.at_broker("b2") == "_amqpmesh/broker/b2/probe.1"


@pytest.mark.parametrize(
    "address",
    ["_amqpmesh/broker/rabbit/x", "_amqpmesh/broker/b9/x", "_amqpmesh/broker/b1/", "_amqpmesh/broker/b1", "_amqpmesh/x",
     "_amqpmesh/probe/", "_amqpmesh/observe/", "_amqpmesh/management/", "_amqpmesh/management",
     "_topo/0/r1/other", "_topo"],
)  # fmt: skip
def test_other_internal_addresses_are_unknown_even_under_a_catch_all(address: str) -> None:
    catch_all = AddressBook(TOPOLOGY.model_copy(update={"addresses": {"#": TOPOLOGY.addresses["rpc"]}}))
    assert BOOK.resolve(address) is None
    assert catch_all.resolve(address) is None


def test_topics_of_embedded_brokers_and_multicasts_with_wildcards_have_filter_sets() -> None:
    topology = parse_topology("""
mesh: m
routers: {r1: }
brokers: {b1: {data: b1}, rabbit: {url: "amqp://localhost"}}
default_broker: b1
addresses:
  news.#: topic
  legacy.#: {type: topic, broker: rabbit}
  orders: queue
  rpc: anycast
  prices: multicast
  ticks.#: multicast
""")
    book = AddressBook(topology)
    names = ("news.#", "news.a", "legacy.#", "orders", "rpc", "prices", "ticks.#", "ticks.a")
    policies = {name: book.resolve(name) for name in names}
    found = {name: policy is not None and book.has_filter_sets(policy) for name, policy in policies.items()}
    assert [name for name, has in found.items() if has] == ["news.#", "news.a", "ticks.#"]


_NAMES = [
    "news.eu",
    "news.local",
    "news",
    "news.#",
    "news.*",
    "alerts.x",
    "orders",
    "legacy.x",
    "prices",
    "secret.plans",
]
_OTHERS = ["unknown", "", "_amqpmesh/probe/x", "_topo/0/r1/temp.x", "news." + 1100 * "x", "alerts.#", "#"]


@pytest.mark.parametrize("form", ["{}", "amqp:{}", "amqp:/{}", "amqps://host/{}"])
@pytest.mark.parametrize("name", _NAMES + _OTHERS)
def test_the_pattern_whose_links_an_address_shares_is_that_of_its_policy(name: str, form: str) -> None:
    address = form.format(name)
    found = BOOK.resolve(address)
    assert BOOK.shared_pattern(normalize(address)) == (None if found is None or found.has_wildcards else found.shared)


def test_addresses_of_a_topics_pattern_share_links() -> None:
    assert BOOK.shared_pattern("news.eu") == Address("", "news.#")
