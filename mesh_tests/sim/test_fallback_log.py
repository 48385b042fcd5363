"""What does a router's log say of a fallback: when it began, and when it was over, once each?"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import mesh_of, numbered, send
from router.events import FallbackBegan, FallbackEnded

BEGAN, ENDED = FallbackBegan("rpc", "rpc.kept"), FallbackEnded("rpc", "rpc.kept")


def told(mesh: SimMesh, router: str) -> list[object]:
    return [event for _, name, event in mesh.log if name == router and isinstance(event, FallbackBegan | FallbackEnded)]


def send_as_another_client(mesh: SimMesh, number: int) -> None:
    client = mesh.client("r1", f"p{number}")
    sender = client.sender("rpc")
    send(mesh, sender, f"m{number}")
    mesh.run_until(lambda: len(sender.outcomes) == 1)
    mesh.cut(client.pipe)
    mesh.run(1.0)


@pytest.mark.parametrize("keeper", ["r1", "r2"])
def test_producers_that_come_and_go_are_one_fallback(tmp_path: Path, keeper: str) -> None:
    mesh = mesh_of(tmp_path, [keeper])
    for number in range(1, 4):
        send_as_another_client(mesh, number)
        # Longer than anything is kept of an address that nobody uses.
        mesh.run(15.0)
    assert told(mesh, "r1") == [BEGAN]


def test_the_end_is_told_once_and_so_is_the_next_beginning(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path, ["r2"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 3))
    mesh.run(5.0)
    assert told(mesh, "r1") == [BEGAN]
    consumer = mesh.client("r3", "c")
    receiver = consumer.receiver("rpc", credit=10)
    mesh.run_until(lambda: len(receiver.messages) == 3 and told(mesh, "r1") == [BEGAN, ENDED])
    mesh.cut(consumer.pipe)
    mesh.run(5.0)
    assert told(mesh, "r1") == [BEGAN, ENDED, BEGAN]


def test_a_router_tells_nothing_of_a_fallback_that_its_producers_do_not_use(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path, ["r2"])
    receiver = mesh.client("r3", "c").receiver("rpc", credit=10)
    mesh.run(1.0)
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, "m1")
    mesh.run_until(lambda: len(receiver.messages) == 1)
    assert [told(mesh, router) for router in mesh.routers] == [[], [], []]


def test_a_fallback_that_cannot_be_reached_has_not_begun(tmp_path: Path) -> None:
    mesh = mesh_of(tmp_path, ["r2"])
    mesh.kill_broker("b1")
    mesh.run(5.0)
    mesh.client("r1").sender("rpc")
    mesh.run(5.0)
    assert told(mesh, "r1") == []
