"""Is a fallback's order kept, and nothing accepted lost, whoever keeps its queue and whatever becomes of him?"""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh.simulation.sim_mesh import SimMesh
from mesh_tests.sim.test_fallback import (
    PATH_WAIT_S,
    is_falling_back,
    kept,
    mesh_of,
    numbered,
    send,
    texts,
    wait_for_brokers,
)
from wire.delivery import ACCEPTED

RING = {
    "r1": {"connect": ["r2", "r4"]},
    "r2": {"connect": ["r3"]},
    "r3": {"connect": ["r4"]},
    "r4": {},
}


def ring_of(folder: Path, keepers: list[str]) -> SimMesh:
    return mesh_of(folder, keepers, routers=RING)


def revive(mesh: SimMesh, router: str) -> None:
    mesh.start(router)
    for edge in mesh.topology.edges():
        if router in (edge.dialer, edge.to):
            mesh.link(edge.dialer, edge.to)


def test_an_ingress_knows_that_the_queue_holds_something_before_it_sees_it_accepted(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r3"])
    receiver = mesh.client("r2", "c").receiver("rpc")
    mesh.run(1.0)
    sender = mesh.client("r1").sender("rpc")
    mesh.run_until(lambda: sender.link.credit > 0 and not is_falling_back(mesh, "r1"))
    # Other news of the keeper's a moment ago: what is not urgent would wait for its turn.
    mesh.client("r3", "x").receiver("elsewhere")
    receiver.link.close()
    mesh.flush()
    mesh.run_until(lambda: is_falling_back(mesh, "r1"))
    sender.send(b"x")
    while not sender.outcomes:
        mesh.run(0.0005)
    mesh.client("r1", "d").receiver("rpc")
    mesh.run(0.0005)
    assert is_falling_back(mesh, "r1")


@pytest.mark.parametrize("first", ["backlog", "nothing"])
def test_a_keeper_that_restarts_finds_what_the_queue_holds(tmp_path: Path, first: str):
    mesh = mesh_of(tmp_path, ["r3"])
    sender = mesh.client("r1").sender("rpc")
    names = numbered("m", 10 if first == "backlog" else 0)
    send(mesh, sender, *names)
    mesh.run_until(lambda: len(sender.outcomes) == len(names))
    mesh.trunks.pop(frozenset({"r2", "r3"}))
    mesh.kill("r3")
    receiver = mesh.client("r1", "c").receiver("rpc")
    mesh.run(0.5)
    revive(mesh, "r3")
    send(mesh, sender, *numbered("n", 10))
    mesh.run_until(lambda: len(receiver.messages) == len(names) + 10, 10.0)
    assert texts(receiver) == [*names, *numbered("n", 10)]
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"), 2.0)


def test_a_keeper_that_is_gone_for_long_does_not_stop_the_address(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r3"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 5))
    mesh.run_until(lambda: len(sender.outcomes) == 5)
    mesh.cut_trunk("r2", "r3")
    receiver = mesh.client("r2", "c").receiver("rpc", credit=20)
    mesh.run(PATH_WAIT_S + 0.5)
    send(mesh, sender, "n1")
    mesh.run_until(lambda: texts(receiver) == ["n1"], 1.0)
    mesh.link("r2", "r3")
    mesh.run_until(lambda: texts(receiver)[1:] == numbered("m", 5), 3.0)


def test_another_router_keeps_the_queue_when_its_keeper_dies(tmp_path: Path):
    mesh = ring_of(tmp_path, ["r2", "r4"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 10))
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    client = mesh.client("r3", "c")
    receiver = client.receiver("rpc", credit=3)
    receiver.accepts = False
    mesh.run_until(lambda: len(receiver.held) == 3)
    mesh.trunks = {pair: pipe for pair, pipe in mesh.trunks.items() if "r2" not in pair}
    mesh.kill("r2")
    receiver.held.clear()
    receiver.accepts = True
    receiver.link.grant(20)
    client.endpoint.mark_dirty()
    send(mesh, sender, *numbered("n", 5))
    mesh.run_until(lambda: len(texts(receiver)) == 18, 5.0)
    assert texts(receiver)[3:] == [*numbered("m", 10), *numbered("n", 5)]


def test_of_two_routers_at_the_broker_one_feeds(tmp_path: Path):
    mesh = ring_of(tmp_path, ["r2", "r4"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 40))
    mesh.run_until(lambda: len(sender.outcomes) == 40)
    receiver = mesh.client("r3", "c").receiver("rpc", credit=2)
    mesh.run_until(lambda: len(receiver.messages) == 40)
    assert texts(receiver) == numbered("m", 40)
    assert kept(mesh).consumer_count == 1


def test_a_router_that_comes_to_the_broker_later_may_take_over(tmp_path: Path):
    mesh = ring_of(tmp_path, ["r2", "r4"])
    mesh.trunks = {pair: pipe for pair, pipe in mesh.trunks.items() if "r2" not in pair}
    mesh.kill("r2")
    mesh.run(1.0)
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 40))
    mesh.run_until(lambda: len(sender.outcomes) == 40)
    receiver = mesh.client("r3", "c").receiver("rpc", credit=2)
    mesh.run_until(lambda: len(receiver.messages) >= 3)
    revive(mesh, "r2")
    for name in numbered("n", 100):
        send(mesh, sender, name)
        mesh.run(0.005)
    wait_for_brokers(mesh)
    mesh.run_until(lambda: len(receiver.messages) == 140, 10.0)
    assert texts(receiver) == [*numbered("m", 40), *numbered("n", 100)]
    mesh.run_until(lambda: kept(mesh).consumer_count == 1, 5.0)


def test_a_broker_that_restarts_has_all_that_was_accepted(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r2"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 10))
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    mesh.kill_broker("b1")
    mesh.run(0.5)
    mesh.start_broker("b1")
    receiver = mesh.client("r3", "c").receiver("rpc", credit=3)
    send(mesh, sender, *numbered("n", 10))
    mesh.run_until(lambda: len(receiver.messages) == 20)
    assert texts(receiver) == [*numbered("m", 10), *numbered("n", 10)]


def test_a_broker_that_restarts_while_it_feeds_keeps_the_order(tmp_path: Path):
    mesh = mesh_of(tmp_path, ["r2"])
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 50))
    mesh.run_until(lambda: len(sender.outcomes) == 50)
    receiver = mesh.client("r3", "c").receiver("rpc", credit=1)
    mesh.run_until(lambda: len(receiver.messages) >= 5)
    mesh.kill_broker("b1")
    mesh.run(0.3)
    mesh.start_broker("b1")
    send(mesh, sender, *numbered("n", 10))
    mesh.run_until(lambda: texts(receiver)[-1] == "n10")
    first_sights = list(dict.fromkeys(texts(receiver)))
    assert first_sights == [*numbered("m", 50), *numbered("n", 10)]


def test_two_brokers_are_used_one_after_the_other(tmp_path: Path):
    mesh = mesh_of(
        tmp_path,
        ["r2"],
        brokers={"b1": {"data": "b1", "routers": ["r2"]}, "b2": {"data": "b2", "routers": ["r3"]}},
        addresses={
            "rpc": {"type": "anycast", "fallback": "rpc.kept"},
            "rpc.kept": {"type": "queue", "brokers": ["b1", "b2"]},
        },
    )
    sender = mesh.client("r1").sender("rpc")
    send(mesh, sender, *numbered("m", 10))
    mesh.run_until(lambda: len(sender.outcomes) == 10)
    assert kept(mesh).available_count == 10
    mesh.kill_broker("b1")
    mesh.run(0.1)
    send(mesh, sender, *numbered("n", 10))
    mesh.run_until(lambda: sum(outcome == ACCEPTED for outcome in sender.outcomes.values()) == 20)
    mesh.start_broker("b1")
    wait_for_brokers(mesh)
    receiver = mesh.client("r1", "c").receiver("rpc", credit=3)
    mesh.run_until(lambda: len(receiver.messages) == 20)
    for prefix in "mn":
        assert [text for text in texts(receiver) if text.startswith(prefix)] == numbered(prefix, 10)
    mesh.run_until(lambda: not is_falling_back(mesh, "r1"), 3.0)
