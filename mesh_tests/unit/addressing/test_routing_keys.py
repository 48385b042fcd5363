"""Do routing keys stand for one thing each, and is a key ignored that no router of this version sends?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from addressing.address import Address
from addressing.routing_keys import Key, KeyForm, broker_key, edge_key, fallback_keys, names_broker, producer_key

FORMS = st.sampled_from(list(KeyForm))
NAMES = st.text(min_size=1)
HEAD = re.compile(r"""["'](?:[BE]:|[MX](?:\d|\{)|P0|S0|F[01])""")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (Key(KeyForm.TAKERS, "orders"), "M0orders"),
        (Key(KeyForm.TAKERS, "orders", 1), "M1orders"),
        (Key(KeyForm.COPY_TAKERS, "prices"), "X0prices"),
        (Key(KeyForm.SET_TAKERS, "prices.# amqp *.tea"), "S0prices.# amqp *.tea"),
        (Key(KeyForm.PRODUCERS, "prices"), "P0prices"),
        (Key(KeyForm.FALLBACK_HOLDS, "orders"), "F0orders"),
        (Key(KeyForm.FALLBACK_LOW, "orders"), "F1orders"),
        (Key(KeyForm.BROKER, "b1"), "B:b1"),
        (Key(KeyForm.EDGE, "e1"), "E:e1"),
    ],
)
def test_routers_exchange_a_key_as_this_text(key: Key, text: str) -> None:
    assert key.text == text
    assert Key.parse(text) == key


def test_functions_for_one_form_give_the_text_of_that_form() -> None:
    assert (producer_key(Address("", "prices")), fallback_keys(Address("", "orders"))) == (
        "P0prices",
        ("F0orders", "F1orders"),
    )
    assert (broker_key("b1"), edge_key("e1")) == ("B:b1", "E:e1")
    assert [names_broker(text) for text in ("B:b1", "E:e1", "M0B:", "B")] == [True, False, False, False]


@pytest.mark.parametrize(
    "text",
    ["", "M", "M0", "B:", "B", "Morders", "Zrpc", "m0orders", "M٣orders", "P1prices", "F2x", "B0b1", "M-1x", "M(12)x"],
)
def test_a_malformed_key_of_a_peer_is_no_key(text: str) -> None:
    assert Key.parse(text) is None


@given(st.text())
def test_any_text_of_a_peer_is_no_key_or_comes_back_unchanged(text: str) -> None:
    key = Key.parse(text)
    assert key is None or key.text == text


@given(FORMS, NAMES, st.integers(0, 9))
def test_a_key_comes_back_from_its_text(form: KeyForm, name: str, phase: int) -> None:
    key = Key(form, name, phase if form.has_phase else 0)
    assert Key.parse(key.text) == key


@given(NAMES, st.integers(), NAMES, st.integers())
def test_keys_of_two_groups_have_two_texts(one: str, phase: int, other: str, other_phase: int) -> None:
    first, second = Key(KeyForm.TAKERS, one, phase), Key(KeyForm.TAKERS, other, other_phase)
    assert (first.text == second.text) == (first == second)


def test_a_phase_of_two_digits_makes_no_key_of_another_address() -> None:
    assert Key(KeyForm.TAKERS, "2x", 1).text == "M12x"
    assert Key(KeyForm.TAKERS, "x", 12).text != "M12x"
    assert Key.parse(Key(KeyForm.TAKERS, "x", 12).text) is None


def test_no_other_module_formats_or_takes_apart_a_key() -> None:
    root = Path(__file__).parents[3]
    files = [path for package in ("addressing", "router", "mesh/simulation") for path in (root / package).rglob("*.py")]
    sources = {path.name: path.read_text() for path in files if path.name != "routing_keys.py"}
    assert "reach.py" in sources
    assert [name for name, source in sources.items() if HEAD.search(source)] == []
