"""Does a kind of address answer what it does, and does other code ask only that?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from addressing.address import Address
from addressing.book import AddressPolicy
from addressing.kinds import AddressKind, AddressTraits, Distribution, Trait
from addressing.queue_policy import WhenFull
from addressing.routing_keys import KeyForm

ROOT = Path(__file__).parents[3]
QUESTIONS = (
    "is_copied",
    "is_stored",
    "is_refused",
    "is_copied_by_routers",
    "is_distributed",
    "has_queues",
    "has_subscriptions",
)
NAMED = re.compile(r"\bAddressKind(?:\.[A-Z]|\()")


class LaterKind(AddressTraits):
    """Kinds that no topology file has yet."""

    BROADCAST = "broadcast", Trait.COPIED
    MAILBOX = "mailbox", Trait.STORED
    FEED = "feed", Trait.STORED | Trait.COPIED


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        (AddressKind.ANYCAST, {"is_distributed"}),
        (AddressKind.MULTICAST, {"is_copied", "is_copied_by_routers"}),
        (AddressKind.QUEUE, {"is_stored", "has_queues"}),
        (AddressKind.TOPIC, {"is_copied", "is_stored", "has_subscriptions"}),
        (AddressKind.UNAVAILABLE, {"is_refused"}),
    ],
)
def test_each_kind_says_yes_to_these_questions_and_no_to_the_others(kind: AddressKind, answers: set[str]) -> None:
    assert {question for question in QUESTIONS if getattr(kind, question)} == answers


@pytest.mark.parametrize(
    ("kind", "form", "capabilities", "when_full"),
    [
        (AddressKind.ANYCAST, KeyForm.TAKERS, (), WhenFull.BLOCK),
        (AddressKind.MULTICAST, KeyForm.COPY_TAKERS, (), WhenFull.BLOCK),
        (AddressKind.QUEUE, KeyForm.TAKERS, ("queue",), WhenFull.BLOCK),
        (AddressKind.TOPIC, KeyForm.TAKERS, ("topic",), WhenFull.DROP_OLDEST),
    ],
)
def test_each_kind_has_its_key_its_capabilities_and_its_action_when_full(
    kind: AddressKind, form: KeyForm, capabilities: tuple[str, ...], when_full: WhenFull
) -> None:
    assert (kind.takers_form, kind.capabilities, kind.when_full) == (form, capabilities, when_full)


def test_a_kind_is_shown_by_its_name_and_is_its_word_in_the_file() -> None:
    assert repr(AddressKind.QUEUE) == "<AddressKind.QUEUE: 'queue'>"
    assert (str(AddressKind.QUEUE), AddressKind("queue")) == ("queue", AddressKind.QUEUE)
    with pytest.raises(ValueError, match="'queues' is not a valid AddressKind"):
        AddressKind("queues")


def policy(kind: AddressTraits, *brokers: str, distribution: Distribution = Distribution.BALANCED) -> AddressPolicy:
    address, prefixes = Address("", "orders"), ("",) * len(brokers)
    return AddressPolicy(address, kind, distribution, brokers, address_prefixes=prefixes)  # type: ignore[arg-type]


def test_links_of_clients_are_tied_to_one_broker_and_meet_at_several() -> None:
    one, several, none = (
        policy(AddressKind.QUEUE, "b1"),
        policy(AddressKind.QUEUE, "b1", "b2"),
        policy(AddressKind.ANYCAST),
    )
    assert [each.is_link_routed for each in (one, several, none)] == [True, False, False]
    assert [each.consumer_phase for each in (one, several, none)] == [0, 1, 0]
    assert [[each.ends_at_brokers(phase) for phase in (0, 1)] for each in (several, none)] == [
        [True, False],
        [False, False],
    ]
    assert several.key(several.consumer_phase).text == "M1orders"


def test_a_link_log_names_the_distribution_where_there_is_one_and_else_the_kind() -> None:
    closest = policy(AddressKind.ANYCAST, distribution=Distribution.CLOSEST)
    assert [each.treatment for each in (closest, policy(AddressKind.TOPIC, "b1"))] == ["closest", "topic"]


@pytest.mark.parametrize(
    ("kind", "like"),
    [
        (LaterKind.BROADCAST, AddressKind.MULTICAST),
        (LaterKind.MAILBOX, AddressKind.QUEUE),
        (LaterKind.FEED, AddressKind.TOPIC),
    ],
)
def test_a_later_kind_answers_by_its_traits_alone(kind: LaterKind, like: AddressKind) -> None:
    assert [getattr(kind, question) for question in QUESTIONS] == [getattr(like, question) for question in QUESTIONS]
    assert (kind.takers_form, kind.capabilities, kind.when_full) == (
        like.takers_form,
        like.capabilities,
        like.when_full,
    )
    assert policy(kind, "b1").treatment == kind.value


@pytest.mark.parametrize("package", ["router", "broker", "wire", "recording", "addressing/topology"])
def test_no_code_of_a_node_and_no_check_of_the_file_names_a_kind(package: str) -> None:
    files = [path for path in (ROOT / package).rglob("*") if path.suffix in (".py", ".pyx", ".pxd")]
    assert files
    assert [path.name for path in files if NAMED.search(path.read_text())] == []
