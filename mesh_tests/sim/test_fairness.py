"""Do ten producers and ten consumers of very different speeds each get their part of one address?"""

from __future__ import annotations

import pytest

from mesh_tests.sim.line import line
from mesh_tests.sim.pace import PacedConsumer, busy_sender

SPEEDS_PER_S = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
CREDIT = 10
SETTLE_S, MEASURE_S = 1.0, 2.0
EVERYWHERE = ("r1", "r2", "r3")


@pytest.mark.parametrize("ingresses", [("r1",), EVERYWHERE], ids=["all at one router", "all over the line"])
def test_consumers_get_what_each_can_take_and_no_producer_starves(egress: str, ingresses: tuple[str, ...]):
    taken, sent = shares((egress,), ingresses)
    check_consumers(taken)
    assert min(sent) >= 0.5 * sum(sent) / len(sent), sent


def test_consumers_and_producers_all_over_the_line_get_their_parts():
    taken, sent = shares(EVERYWHERE, EVERYWHERE)
    check_consumers(taken)
    assert min(sent) >= 0.5 * sum(sent) / len(sent), sent


def check_consumers(taken: list[int]) -> None:
    assert sum(taken) >= 0.9 * MEASURE_S * sum(SPEEDS_PER_S), taken
    for count, speed in zip(taken, SPEEDS_PER_S, strict=True):
        assert abs(count - MEASURE_S * speed) <= 1 + 0.1 * MEASURE_S * speed, taken


def shares(egresses: tuple[str, ...], ingresses: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """How many deliveries each consumer took, slowest first, and how many of each producer were accepted."""
    mesh = line()
    consumers = [
        PacedConsumer(mesh, egresses[number % len(egresses)], "rpc", speed, CREDIT)
        for number, speed in enumerate(SPEEDS_PER_S)
    ]
    senders = [busy_sender(mesh, ingresses[number % len(ingresses)], "rpc") for number in range(10)]
    mesh.run(SETTLE_S)
    before = [each.count for each in consumers], [len(each.outcomes) for each in senders]
    mesh.run(MEASURE_S)
    return (
        [each.count - count for each, count in zip(consumers, before[0], strict=True)],
        [len(each.outcomes) - count for each, count in zip(senders, before[1], strict=True)],
    )
