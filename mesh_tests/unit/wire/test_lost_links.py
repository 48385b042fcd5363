"""Are the owners of the links of lost connections told in turns, each once, and is the endpoint freed at the end?"""

from __future__ import annotations

import pytest

from mesh_tests.unit.wire.pipes import Pipe
from wire.link import Link
from wire.lost_links import LINKS_AT_ONCE, LostLinks


class Node:
    """Takes a turn when asked, and notes which links it heard of."""

    def __init__(self) -> None:
        self.wanted = 0
        self.told: list[Link] = []
        self.is_done = False
        self.lost = LostLinks(self._want)

    def _want(self) -> None:
        self.wanted += 1

    def done(self) -> None:
        self.is_done = True

    def take_turn(self) -> None:
        self.wanted -= 1
        self.lost.take_turn()


def links(count: int) -> tuple[Pipe, list[Link]]:
    pipe = Pipe()
    session = pipe.a.begin()
    made: list[Link] = [session.sender(f"l{number}") for number in range(count)]
    return pipe, made


def test_few_links_are_told_at_once_and_the_driver_frees_the_endpoint() -> None:
    node, (pipe, expected) = Node(), links(LINKS_AT_ONCE)
    node.lost.on_lost(pipe.a, node.told.append, node.done)
    assert node.told == expected
    assert node.is_done
    assert not node.wanted
    assert not pipe.a.is_kept


def test_many_links_are_told_in_turns_in_order_and_the_endpoint_is_freed_last() -> None:
    node, (pipe, expected) = Node(), links(3 * LINKS_AT_ONCE + 1)
    node.lost.on_lost(pipe.a, node.told.append, node.done)
    for turn in range(1, 4):
        assert node.told == expected[: turn * LINKS_AT_ONCE]
        assert pipe.a.is_kept
        assert not pipe.a.has_room
        assert not pipe.a.is_freed
        assert not node.is_done
        assert node.wanted == 1
        node.take_turn()
    assert node.told == expected
    assert node.is_done
    assert pipe.a.is_freed
    assert not node.wanted


def test_no_link_has_credit_before_its_owner_is_told() -> None:
    node, (pipe, expected) = Node(), links(2 * LINKS_AT_ONCE)
    for link in expected:
        link.open()
    pipe.run()
    for link in pipe.b.links:
        link.open()
        link.set_credit(7)
    pipe.run()
    assert {link.credit for link in expected} == {7}
    node.lost.on_lost(pipe.a, lambda told: None)
    assert {link.credit for link in expected} == {0}


def test_two_connections_share_the_turns() -> None:
    node, (one, _), (other, _) = Node(), links(2 * LINKS_AT_ONCE), links(2 * LINKS_AT_ONCE)
    for pipe in (one, other):
        node.lost.on_lost(pipe.a, node.told.append)
    assert node.wanted == 1
    for _ in range(2):
        before = len(node.told)
        node.take_turn()
        assert len(node.told) - before == LINKS_AT_ONCE
    assert len(set(node.told)) == len(node.told) == 4 * LINKS_AT_ONCE
    assert one.a.is_freed
    assert other.a.is_freed


def test_a_closed_connection_that_is_lost_meanwhile_is_freed_after_its_last_link() -> None:
    node, (pipe, expected) = Node(), links(3 * LINKS_AT_ONCE)
    node.lost.on_closed(pipe.a, node.told.append)
    assert not pipe.a.is_kept
    node.lost.on_lost(pipe.a, node.told.append, node.done)
    assert node.wanted == 1
    while node.wanted:
        node.take_turn()
    assert set(node.told) == set(expected)
    assert pipe.a.is_freed
    assert node.is_done


def test_a_closed_connection_stays_for_the_driver() -> None:
    node, (pipe, expected) = Node(), links(2 * LINKS_AT_ONCE)
    node.lost.on_closed(pipe.a, node.told.append)
    node.take_turn()
    assert node.told == expected
    assert not pipe.a.is_freed
    node.lost.on_lost(pipe.a, lambda link: None, node.done)
    node.take_turn()
    assert pipe.a.is_freed


def test_an_error_at_one_link_does_not_keep_the_others_waiting() -> None:
    node, (pipe, expected) = Node(), links(2 * LINKS_AT_ONCE + 1)

    def tell(link: Link) -> None:
        node.told.append(link)
        if link is expected[LINKS_AT_ONCE]:
            raise ValueError("a bug")

    node.lost.on_lost(pipe.a, tell, node.done)
    with pytest.raises(ValueError, match="a bug"):
        node.take_turn()
    while node.wanted:
        node.take_turn()
    assert node.told == expected
    assert pipe.a.is_freed
