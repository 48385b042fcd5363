"""Messages to thousands of addresses of a topic, over links without an address, to subscribers with wildcards: each
copy arrives once, in order, and with its address, through three routers, also if one of them or the broker is killed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from mesh_tests.live.memory import anonymous_bytes
from mesh_tests.live.published_addresses import (
    LINKS_A_CONNECTION,
    Book,
    Crowd,
    Scale,
    Senders,
    Subscribers,
    work_of,
    work_until,
)
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.seeds import seeds

TOPOLOGY = """
mesh: published
node_tls: false
routers:
  r1: {connect: [r2]}
  r2: {connect: [r3]}
  r3:
brokers:
  b1: {routers: [r3]}
addresses:
  dev.#: topic
"""
ROUTERS = ("r1", "r2", "r3")
IS_WHOLE = "PUBLISHED_WHOLE" in os.environ
SCALE = Scale(100, 100_000, 10, 100) if IS_WHOLE else Scale(20, 5_000, 2, 20)
BROKEN = Scale(100, 20_000, 5, 100) if IS_WHOLE else Scale(20, 5_000, 4, 20)
"""For the tests that kill a node."""
WAIT_S = 1500.0 if IS_WHOLE else 100.0
pytestmark = pytest.mark.timeout(WAIT_S + 60.0)
BYTES_AN_ADDRESS = 2_000
BYTES_FIXED = 16 << 20
"""Buffers of links and connections, and Python's own."""


@pytest.fixture(scope="module")
def mesh(start_module_mesh: Callable[[str], RunningMesh]) -> RunningMesh:
    return start_module_mesh(TOPOLOGY)


def attach(mesh: RunningMesh, stack: ExitStack, book: Book, chance: random.Random) -> tuple[list[Senders], list[Crowd]]:
    """The senders at the far end of the line; the subscribers there and at the router of the broker, half and half."""
    scale = book.scale
    crowds: list[Crowd] = []
    for begin in range(0, scale.subscribers, LINKS_A_CONNECTION // 2):
        router = ("r1", "r3")[begin // (LINKS_A_CONNECTION // 2) % 2]
        numbers = range(begin, min(begin + LINKS_A_CONNECTION // 2, scale.subscribers))
        crowds.append(stack.enter_context(Subscribers(mesh.port(router), book, numbers)))
    work = work_of(scale, chance)
    senders = []
    for begin in range(0, scale.senders, LINKS_A_CONNECTION):
        share = {number: work[number] for number in range(begin, min(begin + LINKS_A_CONNECTION, scale.senders))}
        senders.append(stack.enter_context(Senders(mesh.port("r1"), book, share)))
    return senders, [*crowds, *senders]


def told(book: Book) -> str:
    return f"{sum(book.accepted)} accepted and {book.arrived} arrived of {book.scale.messages}; {dict(book.outcomes)}"


def publish(mesh: RunningMesh, book: Book, seed: int, at_third: Callable[[], None] | None = None) -> None:
    """Publish all, and let all arrive; ``at_third`` is called once when a third was accepted."""
    with ExitStack() as stack:
        senders, crowds = attach(mesh, stack, book, random.Random(seed))
        if at_third is not None:
            work_until(crowds, lambda: 3 * book.outcomes["accepted"] >= book.scale.messages, WAIT_S, lambda: told(book))
            at_third()
        work_until(
            crowds,
            lambda: (all(each.is_done for each in senders) and book.arrived == book.scale.messages) or bool(book.wrong),
            WAIT_S,
            lambda: told(book),
        )
    assert book.wrong == []
    assert book.lost() == []
    assert all(book.accepted)


@pytest.mark.parametrize("seed", seeds(1))
def test_each_copy_arrives_once_in_order_with_its_address(
    mesh: RunningMesh, seed: int, record_property: Callable[[str, object], None]
) -> None:
    book = Book(SCALE)
    before = {router: anonymous_bytes(mesh.pid(router)) for router in ROUTERS}
    began = time.monotonic()
    publish(mesh, book, seed)
    record_property("published", SCALE.messages)
    record_property("seconds", round(time.monotonic() - began))
    growth = {router: anonymous_bytes(mesh.pid(router)) - before[router] for router in ROUTERS}
    for router, size_bytes in growth.items():
        record_property(f"bytes at {router}", size_bytes)
    assert set(book.copies) == {1}
    assert set(book.outcomes) == {"accepted"}
    assert {
        router: size for router, size in growth.items() if size > BYTES_FIXED + BYTES_AN_ADDRESS * SCALE.addresses
    } == {}


@pytest.mark.parametrize("victim", ["r2", "b1"], ids=["a router", "the broker"])
@pytest.mark.parametrize("seed", seeds(1))
def test_what_was_accepted_is_not_lost_when_a_node_is_killed(
    mesh: RunningMesh, seed: int, victim: str, record_property: Callable[[str, object], None]
) -> None:
    book = Book(BROKEN)

    def kill() -> None:
        mesh.kill(victim)
        book.on_killed()

    mesh.wait_linked()
    publish(mesh, book, seed, kill)
    record_property("published", BROKEN.messages)
    assert len(book.doubtful) < BROKEN.messages // 2
    record_property("sent again", len(book.again))
    record_property("came again", sum(copies > 1 for copies in book.copies))
