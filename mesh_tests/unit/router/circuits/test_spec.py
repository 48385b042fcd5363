"""What a circuit's attach says comes out as it went in, with as little written as possible."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from addressing.address import Address
from router.circuits.spec import CircuitKind, CircuitSpec
from wire.errors import LinkError

ORDERS = Address("", "orders")
FULL = CircuitSpec(
    CircuitKind.ROUTE, ORDERS, "r1", 1, ("r1", "r2"), {"r3": {"r4": {}}}, "b1", "client", "link", outlives_link=True
)
UNSUBSCRIBE = CircuitSpec(
    CircuitKind.ROUTE, Address("", ""), "r1", path=("r1", "r2"), broker="b1", client="c", link_name="sub"
)


ANYCAST = CircuitSpec(CircuitKind.ANYCAST, ORDERS, "r1")
OF_A_SPACE = replace(ANYCAST, address=Address("acme", "orders"))
BULK, URGENT = replace(ANYCAST, priority=0), replace(ANYCAST, priority=9)


@pytest.mark.parametrize("spec", [FULL, UNSUBSCRIBE, ANYCAST, OF_A_SPACE, BULK, URGENT])
def test_a_spec_comes_out_as_it_went_in(spec: CircuitSpec) -> None:
    assert CircuitSpec.from_text(spec.to_text()) == spec


@pytest.mark.parametrize("text", [None, 7, "", "{", "[]", "{}", '{"kind":"none"}', '{"kind":"anycast","path":3}'])
def test_what_no_router_would_send_is_refused_with_a_sentence(text: object) -> None:
    with pytest.raises(LinkError, match="malformed"):
        CircuitSpec.from_text(text)


@pytest.mark.parametrize("priority", [-1, 10, 1 << 40, None, "high", [4]])
def test_a_priority_that_is_none_of_ten_is_refused(priority: object) -> None:
    text = json.dumps({"kind": "anycast", "address": "orders", "ingress": "r1", "priority": priority})
    with pytest.raises(LinkError, match="malformed"):
        CircuitSpec.from_text(text)
