"""Does a router learn that its addresses are in effect at all routers in reach, whatever is lost on the way?"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from mesh_tests.unit.router.routing.virtual_mesh import VirtualMesh
from router.routing.actions import Action, ConfirmationRequest, SendControl
from router.routing.messages import MAX_HOPS, VersionCheck, VersionConfirmation
from router.routing.mobile import Version


def _line(*names: str) -> VirtualMesh:
    mesh = VirtualMesh()
    for name in names:
        mesh.start(name)
    for one, other in pairwise(names):
        mesh.connect(one, other)
    mesh.run(2)
    return mesh


def _want(mesh: VirtualMesh, router: str) -> Version:
    version, actions = mesh.routers[router].want_confirmed(mesh.now)
    mesh._do(router, actions)
    return version


def _answer(mesh: VirtualMesh, *routers: str) -> None:
    """Have ``routers`` answer what they were asked as far as they can, and leave the rest for later."""
    left: list[tuple[str, Action]] = []
    for router, action in mesh.actions:
        if isinstance(action, ConfirmationRequest) and router in routers:
            if mesh.routers[router].has_seen(action.router, action.version):
                mesh._do(router, mesh.routers[router].confirm(action.router, action.version))
            else:
                left.append((router, action))
        elif isinstance(action, ConfirmationRequest):
            left.append((router, action))
    mesh.actions = left


def test_addresses_are_confirmed_once_the_last_router_has_answered() -> None:
    mesh = _line("r1", "r2", "r3")
    mesh.advertise("r1", ["X0a"])
    version = _want(mesh, "r1")
    mesh.run(0.1)
    _answer(mesh, "r2")
    mesh.run(0.1)
    assert not mesh.routers["r1"].is_confirmed(version)
    _answer(mesh, "r3")
    mesh.run(0.1)
    assert mesh.routers["r1"].is_confirmed(version)
    assert mesh.routers["r3"].routers_with("X0a") == {"r1"}


def test_a_version_that_waits_to_be_sent_is_asked_about_when_it_is_sent() -> None:
    mesh = _line("r1", "r2")
    mesh.advertise("r1", ["X0a"])
    mesh.advertise("r1", ["X0b"])
    version = _want(mesh, "r1")
    assert mesh.routers["r1"].snapshot().routers["r1"].mobile_seq == version[1] - 1
    mesh.run(0.2)
    _answer(mesh, "r2")
    mesh.run(0.2)
    assert mesh.routers["r1"].is_confirmed(version)
    assert mesh.routers["r2"].routers_with("X0b") == {"r1"}


def test_a_change_that_is_undone_before_it_was_sent_waits_for_nothing_more() -> None:
    mesh = _line("r1", "r2")
    mesh.advertise("r1", ["X0a"])
    mesh.advertise("r1", ["X0b"])
    version = _want(mesh, "r1")
    mesh.advertise("r1", [], ["X0b"])
    mesh.run(0.05)
    _answer(mesh, "r2")
    mesh.run(0.05)
    assert mesh.routers["r1"].is_confirmed(version)


def test_a_question_is_asked_once_for_many_waits_and_again_after_a_while() -> None:
    mesh = _line("r1", "r2")
    mesh.advertise("r1", ["X0a"])
    for _ in range(10):
        version = _want(mesh, "r1")
    assert mesh.sent["CHECK"] == 1
    for number in range(10):
        mesh.advertise("r1", [f"X0{number}"])
    mesh.run(0.2)
    asked = mesh.sent["CHECK"]
    assert asked <= 2
    mesh.run(1)
    assert asked + 3 <= mesh.sent["CHECK"] <= asked + 5
    _answer(mesh, "r2")
    mesh.run(0.1)
    assert mesh.routers["r1"].is_confirmed(version)


def test_a_router_alone_waits_for_nobody() -> None:
    mesh = _line("r1")
    mesh.advertise("r1", ["X0a"])
    assert mesh.routers["r1"].is_confirmed(_want(mesh, "r1"))


def test_nothing_is_asked_before_and_after_a_wait() -> None:
    mesh = _line("r1", "r2", "r3")
    mesh.advertise("r1", ["X0a"])
    mesh.run(2)
    assert not mesh.sent["CHECK"]
    version = _want(mesh, "r1")
    mesh.run(0.1)
    _answer(mesh, "r2", "r3")
    mesh.run(1)
    assert mesh.routers["r1"].is_confirmed(version)
    sent = mesh.sent["CHECK"], mesh.sent["SEEN"]
    mesh.advertise("r1", ["X0b"])
    mesh.run(5)
    assert (mesh.sent["CHECK"], mesh.sent["SEEN"]) == sent


def test_a_restarted_router_confirms_anew_and_a_lost_one_is_not_waited_for() -> None:
    mesh = _line("r1", "r2")
    mesh.advertise("r1", ["X0a"])
    version = _want(mesh, "r1")
    mesh.run(0.1)
    _answer(mesh, "r2")
    mesh.run(0.1)
    mesh.crash("r2")
    mesh.run(5)
    assert mesh.routers["r1"].is_confirmed(version)
    mesh.start("r2", instance=2)
    mesh.run_until(lambda: mesh.routers["r1"].snapshot().routers["r2"].instance == 2, 10)
    assert not mesh.routers["r1"].is_confirmed(version)
    _want(mesh, "r1")
    mesh.run(1)
    _answer(mesh, "r2")
    mesh.run(0.1)
    assert mesh.routers["r1"].is_confirmed(version)


@pytest.mark.parametrize("seed", range(6))
def test_a_question_or_answer_that_is_lost_with_a_connection_comes_again(seed: int) -> None:
    chance = random.Random(seed)
    mesh = VirtualMesh()
    names = ["r1", "r2", "r3", "r4", "r5"]
    for name in names:
        mesh.start(name)
    for number, name in enumerate(names):
        mesh.connect(name, names[number - 1], delay_s=chance.choice([0.001, 0.03]))
    mesh.run(2)
    for number in range(20):
        mesh.advertise("r1", [f"X0{number}"])
        version = _want(mesh, "r1")
        cable = chance.choice(mesh.cables)
        mesh.run(chance.choice([0.0, 0.001, 0.01]))
        mesh.cut(cable)
        for _ in range(200):
            mesh.run(0.02)
            _answer(mesh, *names)
            if mesh.routers["r1"].is_confirmed(version):
                break
        assert mesh.routers["r1"].is_confirmed(version)
        reached = [name for name in names[1:] if mesh.routers["r1"].path(name) is not None]
        assert all("r1" in mesh.routers[name]._mobile.holders(f"X0{number}") for name in reached)
        mesh.mend(cable)
        mesh.run(1)


def test_a_question_goes_over_a_limited_number_of_connections() -> None:
    mesh = _line("r1", "r2", "r3")
    check, seen = VersionCheck("r1", 1, 1, ("r3",), hops=0), VersionConfirmation("r1", 1, "r3", 1, 1, hops=0)
    assert mesh.routers["r2"]._on_check(check) == mesh.routers["r2"]._on_seen(seen) == []
    (passed,) = mesh.routers["r2"]._on_check(VersionCheck("r1", 1, 1, ("r3",)))
    assert isinstance(passed, SendControl)
    assert passed.body["hops"] == MAX_HOPS - 1
