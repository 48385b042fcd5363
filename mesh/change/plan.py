"""The plan of a change: a pure function of two topologies and observations, with steps from one to the other."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mesh.change.change_class import ChangeClass, largest
from mesh.change.cost_sentences import CostSentences
from mesh.change.costs import CostEstimate, StepCost, total_of
from mesh.change.effects import class_of, is_own_kind_changed
from mesh.change.groups import declarations_of, groups_of
from mesh.change.losses import losses_of
from mesh.change.observations import NONE_OBSERVED, DriftedValue, Observations
from mesh.change.obstacles import in_circles, partition, port_waits
from mesh.change.resolution import resolve
from mesh.change.resource import Difference, ResolvedTopology, ResourceKind, difference
from mesh.change.source import TopologySource, kept_ports
from mesh.change.step import ChangeStep
from mesh.change.step_conditions import conditions_of
from mesh.change.titles import title_of
from mesh.change.unknowns import Unknowns

_PHASES: Final = {
    ChangeClass.REFUSED: 0,
    ChangeClass.LIVE: 1,
    ChangeClass.REMADE: 2,
    ChangeClass.MOVED: 3,
    ChangeClass.RESTARTED: 4,
    ChangeClass.TOLD: 5,
}
_REMOVAL: Final = 6
"""Phase of nodes that are removed: the last, when nothing leads to them any more."""
_KINDS: Final = list(ResourceKind)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The steps from the topology that a mesh runs to an edited one, in the order in which they are to be done.

    ``before`` and ``after`` are all resources of both, with the addresses that were observed. ``ports``: by node, the
    port after the change, which belongs to the revision. ``kept``: the
    nodes that keep a port which differs from the default of their position in the new file.
    """

    before: ResolvedTopology
    after: ResolvedTopology
    steps: tuple[ChangeStep, ...]
    ports: Mapping[str, int]
    kept: Mapping[str, int]
    drift: tuple[DriftedValue, ...]

    @property
    def is_empty(self) -> bool:
        return not self.steps

    @property
    def refused(self) -> tuple[ChangeStep, ...]:
        """The steps that cannot be made on a running mesh."""
        return tuple(step for step in self.steps if step.change_class is ChangeClass.REFUSED)

    @property
    def loss(self) -> tuple[str, ...]:
        """The names by which an operator allows that messages are lost."""
        return tuple(sorted({name for step in self.steps for name in step.loss}))

    @property
    def cost(self) -> StepCost:
        """The sums over all steps."""
        return total_of(step.cost for step in self.steps)

    def to_map(self) -> dict[str, Any]:
        """Return the plan for JSON, with a mask in place of secrets; equal plans have equal maps."""
        return {
            "steps": [step.to_map() for step in self.steps],
            "cost": self.cost.to_map(),
            "loss": list(self.loss),
            "kept_ports": dict(sorted(self.kept.items())),
            "drift": [
                {"subject": each.subject, "declared": each.declared, "running": each.running, "command": each.command}
                for each in self.drift
            ],
        }


def plan(before: TopologySource, after: TopologySource, observations: Observations = NONE_OBSERVED) -> ChangePlan:
    """Return the steps from ``before``, the topology that runs, to ``after``.

    Nodes of both keep their ports, unless ``after`` names another.
    """
    ports = kept_ports(before, after)
    target = replace(after, ports=ports)
    names = sorted({*before.topology.addresses, *after.topology.addresses, *observations.names})
    old, new = resolve(before, names), resolve(target, names)
    steps = _Steps(old, new, observations).ordered()
    kept = {node: port for node, port in ports.items() if port != after.file_port_of(node)}
    return ChangePlan(old, new, steps, ports, kept, tuple(sorted(observations.drift, key=str)))


class _Steps:
    """Makes the steps of one plan."""

    def __init__(self, before: ResolvedTopology, after: ResolvedTopology, observations: Observations) -> None:
        self._before, self._after, self._seen = before, after, observations
        self._estimate = CostEstimate(before, after, observations)
        self._sentences = CostSentences(self._estimate, Unknowns(before, observations))

    def ordered(self) -> tuple[ChangeStep, ...]:
        """Return all steps, each behind the steps that it waits for."""
        groups = {_id_of(group): group for group in groups_of(difference(self._before, self._after))}
        waits = port_waits(groups)
        circle = in_circles(waits)
        steps = [
            self._step(id_, group, tuple(sorted(waits.get(id_, ()))), is_in_circle=id_ in circle)
            for id_, group in groups.items()
        ]
        obstacle = partition(self._before, self._after)
        if obstacle is not None:
            steps.append(_refusal(*obstacle))
        return _sorted(steps)

    def _step(
        self, id_: str, group: tuple[Difference, ...], after: tuple[str, ...], *, is_in_circle: bool
    ) -> ChangeStep:
        main = group[0]
        subject, where = _subject(group), _where(main)
        change_class = largest(*(class_of(each) for each in group)) if main.key[0] in _INDEPENDENT else class_of(main)
        fix = _fix(main, is_in_circle=is_in_circle)
        change_class = ChangeClass.REFUSED if fix else change_class
        cost = self._estimate.of(group) if not fix else StepCost()
        says = self._sentences.of(cost, change_class, group, where) if not fix else ()
        pre, post = conditions_of(main, change_class, subject) if not fix else ("", "")
        loss = losses_of(group, cost, self._before, self._after, self._seen) if not fix else ()
        nodes = () if main.key[0] in _EVERYWHERE else main.resource.nodes
        title = title_of(main, group, subject)
        return ChangeStep(id_, change_class, title, nodes, group, pre, post, cost, says, loss, after, fix)


_EVERYWHERE: Final = (ResourceKind.SETTINGS, ResourceKind.ADDRESS, ResourceKind.USER)
_INDEPENDENT: Final = (*_EVERYWHERE, ResourceKind.CONNECTION, ResourceKind.ATTACHMENT, ResourceKind.LISTENER)
"""Kinds whose step has the largest class of its differences; a node's own class covers what the node has."""


def _id_of(group: Sequence[Difference]) -> str:
    main = group[0]
    if main.key[0] is not ResourceKind.ADDRESS:
        return f"{main.key[0]} {main.key[1]}"
    before, after = declarations_of(main)
    way = after if before == after or before is None else f"{before} to {after}" if after is not None else before
    return f"address {way}"


def _subject(group: Sequence[Difference]) -> str:
    kind, name = group[0].key
    if kind is not ResourceKind.ADDRESS:
        return f"{name} settings" if kind is ResourceKind.SETTINGS else f"{kind} {name}"
    before, after = declarations_of(group[0])
    declared = after or before
    others = len([each for each in group if each.key[1] != declared])
    if name != declared:
        return f"address {name}" if others == 1 else f"{others:,} addresses of {declared}"
    return f"address {name}" + (f" and {others:,} address{'es' if others != 1 else ''} under it" if others else "")


def _where(main: Difference) -> str:
    return ", ".join(main.resource.nodes) if main.key[0] not in _EVERYWHERE else "all routers"


def _fix(main: Difference, *, is_in_circle: bool) -> str:
    """Return what to do in place of a change that cannot be made on a running mesh; an empty text if it can."""
    kind, name = main.key
    mesh = main.change_of("mesh") if (kind, name) == (ResourceKind.SETTINGS, "mesh") else None
    if mesh is not None:
        return f"keep the name {mesh.before}; a mesh with another name is another mesh, so start that one beside it."
    if is_own_kind_changed(main):
        return f"keep broker {name} as it is, add the other broker under a new name, and move addresses to it first."
    if is_in_circle:
        return "let one of them use a port that nobody has in a first change, and give it the other's in a second one."
    return ""


def _refusal(sentence: str, fix: str) -> ChangeStep:
    return ChangeStep("partition", ChangeClass.REFUSED, sentence, (), (), "", "", StepCost(), (), fix=fix)


def _sorted(steps: Sequence[ChangeStep]) -> tuple[ChangeStep, ...]:
    """Return the steps by phase, kind and id, but each behind those that it waits for; circles have been refused."""
    by_id = {step.id: step for step in steps}
    refused = {step.id for step in steps if step.change_class is ChangeClass.REFUSED}
    waits = {step.id: set(step.after) - refused if step.id not in refused else set() for step in steps}
    ready = [(_rank(by_id[id_]), id_) for id_, others in waits.items() if not others]
    heapq.heapify(ready)
    found = []
    while ready:
        _, done = heapq.heappop(ready)
        found.append(by_id[done])
        for id_, others in waits.items():
            if done in others:
                others.discard(done)
                if not others:
                    heapq.heappush(ready, (_rank(by_id[id_]), id_))
    return tuple(found)


def _rank(step: ChangeStep) -> tuple[int, int, str]:
    is_node = step.kind in (ResourceKind.ROUTER, ResourceKind.BROKER)
    is_removal = bool(step.differences) and step.differences[0].is_removed
    is_refused = step.change_class is ChangeClass.REFUSED
    phase = _REMOVAL if is_node and is_removal and not is_refused else _PHASES[step.change_class]
    return phase, _KINDS.index(step.kind), step.id
