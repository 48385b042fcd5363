"""How the decisions of routers name the links that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.operations.explain_delivery import ExplainedDeliveries

LINKS: dict[str, dict[str, Any]] = {
    "1": {"role": "producer", "container": "till"},
    "2": {"role": "circuit", "ingress": "r1", "egress": "r3", "path": "r1>r2>r3", "container": "r2"},
    "3": {"role": "circuit", "ingress": "r0", "egress": "r1", "path": "r0>r1", "container": "r0"},
    "4": {"role": "circuit", "container": "r2"},
    "5": {"role": "circuit"},
    "6": {"role": "consumer"},
}


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "r1/1 producer till"),
        (2, "r1/2 circuit to r3 over r1>r2>r3"),
        (3, "r1/3 circuit from r0 over r0>r1"),
        (4, "r1/4 circuit over r2"),
        (5, "r1/5 circuit over ?"),
        (6, "r1/6 consumer ?"),
        (7, "r1/7"),
        (None, ""),
    ],
)
def test_a_link_is_named_by_its_number_role_and_other_end(number: int | None, name: str) -> None:
    assert ExplainedDeliveries("work.a", links={"r1": LINKS}).end("r1", number) == name
