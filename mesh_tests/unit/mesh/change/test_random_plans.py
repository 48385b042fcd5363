"""Plans between random topologies: complete, deterministic, and right about where they lead."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from mesh.change.change_class import ChangeClass
from mesh.change.effects import class_of
from mesh.change.observations import CountedConnection, CountedLink, CountedQueue, Observations
from mesh.change.plan import ChangePlan, plan
from mesh.change.resource import ResourceKind, difference
from mesh.change.source import TopologySource
from mesh_tests.unit.mesh.change.topologies import NAMES, edited, random_data, source_of_data

SEEDS = range(60)
USERS = ("alice", "bob", "anonymous")


@cache
def pair(seed: int) -> tuple[TopologySource, TopologySource]:
    random = Random(seed)
    before = random_data(random)
    # Mostly an edit, else another mesh altogether.
    after = edited(random, before) if random.random() < 0.8 else random_data(random)
    one, other = source_of_data(before), source_of_data(after)
    assert one is not None
    assert other is not None
    return one, other


def observations(seed: int, source: TopologySource) -> Observations:
    random = Random(-seed)
    nodes = [name for name in source.topology.node_names if random.random() < 0.8]
    concrete = ("orders", "q.a", "q.a.b", "q.b.c", "rpc", "rpc.x", "news.y", "prices.x", "nobody")
    return Observations(
        frozenset(nodes),
        tuple(CountedConnection(node, str(i), random.choice(USERS)) for i, node in enumerate(nodes)),
        tuple(
            CountedLink(node, str(i), random.choice(USERS), i % 2 == 0, random.choice(concrete))
            for i, node in enumerate(nodes)
        ),
        tuple(CountedQueue(node, random.choice((*concrete, *NAMES)), random.randint(0, 9), 90) for node in nodes),
    )


@cache
def planned(seed: int) -> ChangePlan:
    before, after = pair(seed)
    return plan(before, after, observations(seed, before))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_leads_from_one_topology_to_the_other(seed: int) -> None:
    found = planned(seed)
    steps = [each for step in found.steps for each in step.differences]
    assert sorted(map(repr, steps)) == sorted(map(repr, difference(found.before, found.after)))
    assert found.before.changed(steps) == found.after
    assert found.is_empty == (found.before == found.after)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_the_same_each_time(seed: int) -> None:
    before, after = pair(seed)
    assert planned(seed).to_map() == plan(before, after, observations(seed, before)).to_map()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_topology_has_no_way_to_itself(seed: int) -> None:
    before, _ = pair(seed)
    found = plan(before, before, observations(seed, before))
    assert (found.steps, found.kept, found.loss) == ((), {}, ())


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_has_a_class_conditions_and_an_order(seed: int) -> None:
    found = planned(seed)
    ids = [step.id for step in found.steps]
    assert len(set(ids)) == len(ids)
    refused = {step.id for step in found.refused}
    for step in found.steps:
        assert step.change_class.rank >= max(
            [class_of(each).rank for each in step.differences if is_own(each.key[0])] or [0]
        )
        assert (step.change_class is ChangeClass.REFUSED) == bool(step.fix)
        if step.fix:
            assert step.fix.endswith(".")
            continue
        assert all((step.title, step.precondition, step.postcondition, step.costs))
        assert all(ids.index(other) < ids.index(step.id) for other in step.after if other not in refused)


def is_own(kind: ResourceKind) -> bool:
    """Whether a difference of this kind may be a part of the step of a node, whose class covers it."""
    return kind not in (ResourceKind.CONNECTION, ResourceKind.ATTACHMENT, ResourceKind.LISTENER)


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_that_stay_keep_their_ports_and_no_port_is_given_twice(seed: int) -> None:
    before, after = pair(seed)
    found = plan(before, after)
    assert set(found.ports) == set(after.topology.node_names)
    here = set(before.topology.node_names)
    listening = [each.port for router in after.topology.routers.values() for each in router.listeners]
    for node, port in found.ports.items():
        if after.declares_port(node):
            assert port == after.port_of(node)
        elif node in here and before.port_of(node) not in {
            *listening,
            *(found.ports[other] for other in found.ports if other != node),
            after.topology.watch.port,
        }:
            assert port == before.port_of(node)


def test_the_random_pairs_have_all_classes() -> None:
    seen = {step.change_class for seed in SEEDS for step in planned(seed).steps}
    assert seen == set(ChangeClass)
