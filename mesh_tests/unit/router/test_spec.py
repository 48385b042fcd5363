"""What a circuit's attach says comes out as it went in, with as little written as possible."""

from __future__ import annotations

import pytest

from router.spec import CircuitKind, CircuitSpec
from wire.errors import LinkError

FULL = CircuitSpec(
    CircuitKind.ROUTE, "orders", "r1", 1, ("r1", "r2"), {"r3": {"r4": {}}}, "b1", "client", "link", outlives_link=True
)
UNSUBSCRIBE = CircuitSpec(CircuitKind.ROUTE, "", "r1", path=("r1", "r2"), broker="b1", client="c", link_name="sub")


@pytest.mark.parametrize("spec", [FULL, UNSUBSCRIBE, CircuitSpec(CircuitKind.ANYCAST, "orders", "r1")])
def test_a_spec_comes_out_as_it_went_in(spec: CircuitSpec) -> None:
    assert CircuitSpec.from_text(spec.to_text()) == spec


@pytest.mark.parametrize("text", [None, 7, "", "{", "[]", "{}", '{"kind":"none"}', '{"kind":"anycast","path":3}'])
def test_what_no_router_would_send_is_refused_with_a_sentence(text: object) -> None:
    with pytest.raises(LinkError, match="malformed"):
        CircuitSpec.from_text(text)
