"""Does a process take a revision as a whole or not at all, once, and only on top of the one that it has?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from addressing.topology.loader import parse_topology
from mesh.deploy.control import MAX_REQUEST_BYTES
from mesh.deploy.revision_requests import NAMES_PER_PART, cut, node_handlers, parts_of_addresses, requests_of

OLD, NEW = (1, "a" * 64), (2, "b" * 64)


class FakeNode:
    def __init__(self) -> None:
        self.added: list[dict[str, Any]] = []
        self.refusal = ""

    def check_added(self, added: Mapping[str, Any]) -> None:
        if self.refusal:
            raise ValueError(self.refusal)

    def add_addresses(self, added: Mapping[str, Any]) -> None:
        self.added.append(dict(added))


def declared(count: int, length: int = 8) -> dict[str, Any]:
    names = ", ".join(f"q{n}.{'x' * length}: queue" for n in range(count))
    return dict(
        parse_topology(f"mesh: m\nrouters: {{r1: }}\nbrokers: {{b1: {{data: d}}}}\naddresses: {{{names}}}").addresses
    )


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


def test_a_node_has_all_parts_at_once_and_only_when_it_commits(node: FakeNode) -> None:
    events: list[Any] = []
    handlers = node_handlers(OLD, node, events.append)
    addresses = declared(3 * NAMES_PER_PART - 1)
    requests = requests_of(parts_of_addresses(addresses), NEW, OLD[1])
    assert len(requests) == 3
    assert [handlers["prepare_revision"](each)["is_complete"] for each in requests] == [False, False, True]
    assert (node.added, handlers["revision"]({})["number"]) == ([], 1)
    commit = {"number": 2, "hash": NEW[1]}
    assert handlers["commit_revision"](commit) == handlers["commit_revision"](commit) == commit
    assert [list(added) for added in node.added] == [list(addresses)]
    assert node.added[0]["q0.xxxxxxxx"].type == addresses["q0.xxxxxxxx"].type
    assert handlers["revision"]({}) == commit
    assert [(event.number, event.hash) for event in events] == [NEW]
    assert handlers["prepare_revision"](requests[0]) == {"has": 2, "is_complete": True}


def test_a_prepared_revision_may_be_prepared_again_from_its_first_part(node: FakeNode) -> None:
    handlers = node_handlers(OLD, node, lambda event: None)
    requests = requests_of(parts_of_addresses(declared(NAMES_PER_PART + 1)), NEW, OLD[1])
    for request in (requests[0], *requests, *requests):
        handlers["prepare_revision"](request)
    handlers["commit_revision"]({"number": 2, "hash": NEW[1]})
    assert [len(added) for added in node.added] == [NAMES_PER_PART + 1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"base": "c" * 64}, "runs revision 1, and revision 2 comes from another one"),
        ({"number": 3}, "runs revision 1, and revision 3 comes from another one"),
        ({"number": "2"}, "expected the number and the hash"),
        ({"part": 1}, "does not follow the one before"),
        ({"part": None}, "does not follow the one before"),
        ({"parts": None}, "does not follow the one before"),
        ({"data": None}, "expected a text in base64"),
        ({"data": "%"}, "base64"),
    ],
)
def test_a_part_that_does_not_fit_is_refused_and_nothing_can_be_committed(
    node: FakeNode, change: dict[str, Any], words: str
) -> None:
    handlers = node_handlers(OLD, node, lambda event: None)
    [request] = requests_of(parts_of_addresses(declared(1)), NEW, OLD[1])
    with pytest.raises(ValueError, match=words):
        handlers["prepare_revision"]({**request, **change})
    with pytest.raises(ValueError, match="revision 2 is not prepared here"):
        handlers["commit_revision"]({"number": 2, "hash": NEW[1]})
    assert node.added == []


def test_what_the_node_refuses_is_told_and_cannot_be_committed(node: FakeNode) -> None:
    handlers = node_handlers(OLD, node, lambda event: None)
    node.refusal = "consumers use the filter #"
    [request] = requests_of(parts_of_addresses(declared(1)), NEW, OLD[1])
    with pytest.raises(ValueError, match="consumers use the filter #"):
        handlers["prepare_revision"](request)
    with pytest.raises(ValueError, match="not prepared"):
        handlers["commit_revision"]({"number": 2, "hash": NEW[1]})


def test_what_others_have_already_is_taken_unchecked(node: FakeNode) -> None:
    handlers = node_handlers(OLD, node, lambda event: None)
    node.refusal = "consumers use the filter #"
    [request] = requests_of(parts_of_addresses(declared(1)), NEW, OLD[1])
    assert handlers["prepare_revision"]({**request, "is_decided": True})["is_complete"]
    handlers["commit_revision"]({"number": 2, "hash": NEW[1]})
    assert [len(added) for added in node.added] == [1]


@pytest.mark.parametrize(("count", "length"), [(0, 1), (1, 1000), (90, 8), (85, 1000)])
def test_every_request_fits_into_a_line(count: int, length: int) -> None:
    addresses = declared(count, length)
    for parts in (parts_of_addresses(addresses), cut(b"x" * 100_000), cut(b"")):
        lines = [json.dumps({"op": "prepare_revision", **each}) for each in requests_of(parts, NEW, OLD[1])]
        assert lines
        assert max(map(len, lines)) < MAX_REQUEST_BYTES
    assert b"".join(cut(b"abc" * 50_000)) == b"abc" * 50_000
