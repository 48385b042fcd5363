"""Which taker gets the next delivery, as far as the records tell, and what do producers wait for?"""

from __future__ import annotations

from typing import Any

import pytest

from addressing.book import SpaceBooks
from addressing.topology.model import Topology
from mesh.operations.explain_live import ExplainedTaker, _choose, _waits

TOPOLOGY = Topology.model_validate(
    {
        "mesh": "m",
        "routers": {"r1": {}},
        "brokers": {"b1": {"data": "b1", "routers": ["r1"]}, "b2": {"data": "b2", "routers": ["r1"]}},
        "addresses": {
            "balanced": "anycast",
            "closest": {"type": "anycast", "distribution": "closest"},
            "spilling": {"type": "anycast", "distribution": "closest", "spill": True},
            "prices": "multicast",
            "orders": {"type": "queue", "broker": "b1"},
            "jobs": {"type": "queue", "brokers": ["b1", "b2"]},
            "gone": "unavailable",
            "rescued": {"type": "anycast", "fallback": "orders"},
        },
    }
)


def notes(address: str, *takers: tuple[int, int | None, int | None]) -> list[str]:
    """Of takers, each with cost, credit and unsettled deliveries."""
    made = [
        ExplainedTaker("r1", {"id": "r1/1", "credit": credit, "unsettled": unsettled}, "to", cost)
        for cost, credit, unsettled in takers
    ]
    _choose(SpaceBooks(TOPOLOGY).of("").resolve(address), made)
    return [taker.note for taker in made]


@pytest.mark.parametrize(
    ("address", "takers", "wanted"),
    [
        ("balanced", [(0, 5, 3), (1, 5, 1)], ["3 against 2", "next"]),
        ("balanced", [(0, None, None), (1, 5, 1)], ["next", "2 against 0"]),
        ("balanced", [(0, 0, 0), (1, 5, 1)], ["no credit", "next"]),
        ("balanced", [(0, 0, 0)], ["no credit"]),
        ("closest", [(0, 5, 90), (3, 5, 0)], ["next", "3 against 0"]),
        ("closest", [(0, 0, 9), (3, 5, 0)], ["no credit; producers wait for it", "3 against 0"]),
        ("spilling", [(0, 0, 9), (3, 5, 0)], ["no credit", "next"]),
        ("prices", [(0, 5, 0), (3, 0, 0)], ["", "no credit"]),
    ],
)
def test_the_next_taker_is_the_one_that_the_distribution_chooses(
    address: str, takers: list[tuple[int, int | None, int | None]], wanted: list[str]
):
    assert notes(address, *takers) == wanted


def test_producers_that_wait_are_counted_by_cause_with_what_to_do():
    def link(number: int, cause: str | None, starved_s: float) -> dict[str, Any]:
        return {"id": f"r1/{number}", "waits_for": cause, "starved_s": starved_s}

    said = list(_waits([link(1, "takers", 2), link(2, "takers", 30), link(3, "no_taker", 1), link(4, None, 9)]))
    assert len(said) == 2
    assert said[0].startswith(
        "2 producers wait for credit, without it for up to 30 s in all: the consumers have no credit"
    )
    assert said[1].startswith("producer r1/3 waits for credit")
    assert "Start a consumer" in said[1]
