"""A cost that UPDATE sets is set at both routers of the connection, on whichever hosts they are, or at neither."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from addressing.operator_rights import OWNER
from mesh.client.errors import TimedOut
from mesh.watch.management import both_ends
from mesh.watch.management.both_ends import BothEnds
from mesh.watch.management.protocol import ManagementError, Status
from mesh.watch.management.updates import NodeChange
from mesh_tests.unit.mesh.watch.test_host_changes import ThreeHosts, lose_answers

CHANGE = NodeChange("cost", {"neighbor": "r2", "cost": 7}, {"cost": 7}, "r2", {"neighbor": "r1", "cost": 7})


class OwnNodes:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    async def ask(self, node: str, op: str, arguments: Mapping[str, Any]) -> int:
        assert op == "cost"
        self.asked.append((node, arguments["cost"]))
        return 3


def make(hosts: ThreeHosts, own: OwnNodes, user: str | None = None) -> None:
    operator = OWNER if user is None else hosts.other.access.rights.operator(user)
    ends = BothEnds(own.ask, {"r1"}.__contains__, hosts.other.writes.set_cost_elsewhere)
    asyncio.run(ends.make("r1", CHANGE, operator))


@pytest.fixture
def hosts(tmp_path: Path) -> ThreeHosts:
    return ThreeHosts(tmp_path)


def test_a_cost_is_set_at_the_router_of_another_host_too_and_told_there(hosts: ThreeHosts) -> None:
    own = OwnNodes()
    hosts.third.requests.answers["cost"] = 3
    make(hosts, own, "admin")
    assert own.asked == [("r1", 7)]
    assert hosts.third.requests.asked == [("r2", {"op": "cost", "neighbor": "r1", "cost": 7})]
    (told,) = hosts.third.audited()
    assert (told["who"], told["login"], told["target"], told["outcome"]) == ("admin", "management", "r2/r1", "done")


def test_a_cost_is_set_anew_by_each_update(hosts: ThreeHosts) -> None:
    hosts.third.requests.answers["cost"] = 3
    for _ in range(2):
        make(hosts, OwnNodes())
    assert len(hosts.third.requests.asked) == 2


@pytest.mark.parametrize("user", ["viewer", None])
def test_a_cost_that_the_other_host_refuses_is_taken_back_with_a_sentence(hosts: ThreeHosts, user: str | None) -> None:
    own = OwnNodes()
    hosts.third.requests.answers["cost"] = ConnectionRefusedError()
    with pytest.raises(ManagementError, match="r2 did not take the cost, and that at r1 is as before: ") as refused:
        make(hosts, own, user)
    assert refused.value.status is (Status.UNAVAILABLE if user is None else Status.FORBIDDEN)
    assert own.asked == [("r1", 7), ("r1", 3)]


@pytest.mark.parametrize("op", ["offer", "change"])
def test_a_cost_whose_other_host_does_not_answer_is_taken_back_and_said_to_be_unknown(
    hosts: ThreeHosts, op: str
) -> None:
    own = OwnNodes()
    hosts.asked = hosts.other
    lose_answers(hosts, op, TimedOut("no answer"))
    with pytest.raises(ManagementError, match="at r1 is as before") as refused:
        make(hosts, own)
    assert refused.value.status is (Status.TIMEOUT if op == "change" else Status.UNAVAILABLE)
    assert ("unknown whether" in str(refused.value)) == (op == "change")
    assert own.asked == [("r1", 7), ("r1", 3)]


def test_a_cost_at_a_router_of_which_no_observer_tells_is_refused(hosts: ThreeHosts) -> None:
    own = OwnNodes()
    ends = BothEnds(own.ask, lambda node: False, hosts.other.writes.set_cost_elsewhere)
    change = NodeChange("cost", {"neighbor": "r9", "cost": 7}, {}, "r9", {"neighbor": "r1", "cost": 7})
    with pytest.raises(ManagementError, match="no observer of another host has told of it"):
        asyncio.run(ends.make("r1", change, OWNER))
    assert own.asked == [("r1", 7), ("r1", 3)]


def test_another_host_that_takes_too_long_does_not_let_the_requester_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    own = OwnNodes()

    async def never(*arguments: object) -> int:
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(both_ends, "OTHER_END_S", 0.01)
    with pytest.raises(ManagementError, match="unknown whether that at r2") as refused:
        asyncio.run(BothEnds(own.ask, lambda node: False, never).make("r1", CHANGE, OWNER))
    assert refused.value.status is Status.TIMEOUT
    assert own.asked == [("r1", 7), ("r1", 3)]
