"""Which pattern allows a user what? The verdicts are the judges' own, for any patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from addressing.operator_rights import OperatorRights
from addressing.permissions import Permissions
from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from mesh.operations.explain_access import explain_access
from mesh.terminal.failure import CommandFailed

FILE = """\
mesh: m
routers: {r1: }
brokers: {b1: {data: ./b1, routers: [r1]}}
addresses:
  orders.#: queue
  rpc: anycast
users:
  alice:
    send: [rpc, "orders.*"]
    receive: "replies.${user}.#"
    view: "#"
    manage:
      - jobs.#
      - orders.eu
  bob: {}
"""
TOKENS = ("a", "b", "#", "*")
patterns = strategies.lists(
    strategies.lists(strategies.sampled_from(TOKENS), min_size=1, max_size=3).map(".".join), max_size=3
)
addresses = strategies.lists(strategies.sampled_from((*TOKENS, "${x}")), min_size=1, max_size=3).map(".".join)


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    file = tmp_path / "amqpmesh.yml"
    file.write_text(FILE)
    return load_topology(file)


def told(topology: Topology, user: str, address: str) -> dict[str, tuple[bool, str | None, str | None]]:
    return {each.right: (each.is_allowed, each.pattern, each.place) for each in explain_access(topology, user, address)}


def why(topology: Topology, user: str, address: str) -> dict[str, str]:
    return {each.right: each.why for each in explain_access(topology, user, address)}


def test_the_pattern_that_allows_and_its_line_are_named(topology: Topology):
    assert told(topology, "alice", "orders.eu") == {
        "send": (True, "orders.*", "amqpmesh.yml:9"),
        "receive": (False, None, "amqpmesh.yml:10"),
        "view": (True, "#", "amqpmesh.yml:11"),
        "browse": (False, None, "amqpmesh.yml:8"),
        "manage": (True, "orders.eu", "amqpmesh.yml:14"),
    }
    assert told(topology, "alice", "replies.alice.7")["receive"] == (True, "replies.${user}.#", "amqpmesh.yml:10")


def test_what_is_not_allowed_says_why(topology: Topology):
    found = why(topology, "alice", "orders.eu")
    assert found["receive"] == "no pattern of `receive` covers orders.eu: replies.${user}.#"
    assert found["browse"] == "user alice has no `browse`"
    assert why(topology, "bob", "rpc")["view"] == "user bob has no `view` and `browse` and `manage`"
    assert "no user anonymous" in why(topology, "anonymous", "rpc")["send"]
    assert "internal address" in why(topology, "alice", "_amqpmesh/control")["send"]
    with pytest.raises(CommandFailed, match="unknown user 'carol' in mesh m: expected one of alice, bob, or anonymous"):
        explain_access(topology, "carol", "rpc")


def test_without_users_everybody_may_all_but_manage():
    topology = Topology.model_validate({"mesh": "m", "routers": {"r1": {}}, "addresses": {"rpc": "anycast"}})
    found = told(topology, "anybody", "rpc")
    assert [found[right][0] for right in ("send", "receive", "view", "browse", "manage")] == [True] * 4 + [False]
    assert "only the owner" in why(topology, "anybody", "rpc")["manage"]


@given(patterns, patterns, patterns, patterns, addresses)
def test_the_verdicts_are_those_of_the_judges_and_a_pattern_is_named_for_each_right(
    send: list[str], view: list[str], browse: list[str], manage: list[str], address: str
):
    user: dict[str, Any] = {"send": send, "receive": view, "view": view, "browse": browse, "manage": manage}
    topology = Topology.model_validate({"mesh": "m", "routers": {"r1": {}}, "users": {"u": user}})
    found = told(topology, "u", address)
    permissions, rights = Permissions(topology), OperatorRights(topology)
    assert found["send"][0] == permissions.may_send("u", address)
    assert found["receive"][0] == permissions.may_receive("u", address)
    assert found["view"][0] == rights.may_view("u", address)
    assert found["browse"][0] == rights.may_browse("u", address)
    assert found["manage"][0] == rights.may_manage("u", address)
    for is_allowed, pattern, _ in found.values():
        assert is_allowed == (pattern is not None)
