"""Makes the plan of a drill: the steps of its method, checked against a topology, with all random choices made."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from addressing.book import AddressBook
from addressing.kinds import AddressKind
from addressing.topology.declared_names import UNKNOWN_NAME_CODES
from addressing.topology.model import Topology
from addressing.topology.problem import Path, Problem, hint_for, listing, nearest
from mesh.deploy.node_kinds import NODE_KINDS
from mesh.drills.drill_file import DrillFile
from mesh.drills.model import ANY, FAULTS, Command, ExpireCertificate, Fault, Heal, LinkFault, Load, Random

EXISTING = (
    "expected an embedded broker, got an existing one: a drill on a copy breaks none; use `--against` for the "
    "running mesh"
)


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """A planned fault: begins ``at_s`` after the baseline, or ``after_s`` after the previous fault was healed."""

    id: str
    fault: Fault
    at_s: float
    after_s: float | None
    lasts_s: float

    @property
    def label(self) -> str:
        return self.fault.label


@dataclass(frozen=True, slots=True)
class DrillFlow:
    """The planned traffic on one address, with all defaults filled in."""

    load: Load
    type: AddressKind
    senders: tuple[str, ...]
    receivers: tuple[str, ...]
    """The name of the router to which each receiver attaches."""

    @property
    def address(self) -> str:
        return self.load.address

    @property
    def is_competing(self) -> bool:
        """Tell whether each message goes to one receiver, and not to all receivers."""
        return not self.type.is_copied


@dataclass(frozen=True, slots=True)
class DrillPlan:
    baseline_s: float
    faults: tuple[PlannedFault, ...]
    method_s: float
    cooldown_s: float
    flows: tuple[DrillFlow, ...]

    @property
    def length_s(self) -> float:
        return self.baseline_s + self.method_s + self.cooldown_s


def make_plan(file: DrillFile, topology: Topology, seed: int) -> DrillPlan:
    """Make the plan of a drill. Raise DrillInvalid with every problem of the drill with this topology."""
    found: list[Problem] = []
    flows = tuple(flow for flow in _flows(file, topology, found) if flow is not None)
    chance = random.Random(seed)
    faults = [(path, fault) for path, fault in _concrete(file, topology, chance)]
    for path, fault in faults:
        found += _check(path, fault, topology)
    found += _check_random(file, topology)
    if not faults:
        fix = "add a fault to 'method', such as {at: 1s, fault: kill, router: any}."
        found.append(Problem(("method",), "AM102", "the method has no fault: expected at least one", fix=fix))
    planned, method_s = _timed(faults, file)
    found += _check_times([path for path, _ in faults], planned)
    file.fail(found)
    drill = file.drill
    return DrillPlan(drill.baseline, planned, method_s, drill.cooldown, flows)


def _timed(faults: Sequence[tuple[Path, Fault]], file: DrillFile) -> tuple[tuple[PlannedFault, ...], float]:
    heals = sorted(step.at for _, step in file.steps if isinstance(step, Heal))
    ends = [fault.at + (fault.for_ or 0.0) for _, fault in faults if fault.after is None]
    method_s = max([*ends, *heals], default=0.0)
    timed = enumerate((fault for _, fault in faults), 1)
    return tuple(_planned(str(n), fault, method_s, heals) for n, fault in timed), method_s


def _planned(name: str, fault: Fault, method_s: float, heals: Sequence[float]) -> PlannedFault:
    if fault.after is not None or (fault.is_momentary and fault.for_ is None):
        return PlannedFault(name, fault, fault.at, fault.after, fault.for_ or 0.0)
    until = method_s if fault.for_ is None else fault.at + fault.for_
    heal_at = min([until, *(at for at in heals if at > fault.at)])
    return PlannedFault(name, fault, fault.at, None, heal_at - fault.at)


def _concrete(file: DrillFile, topology: Topology, chance: random.Random) -> Iterator[tuple[Path, Fault]]:
    for path, step in file.steps:
        if isinstance(step, Fault):
            yield path, _with_target(step, topology, chance)
        elif isinstance(step, Random):
            yield from ((path, fault) for fault in _drawn(step, topology, chance))


def _with_target(fault: Fault, topology: Topology, chance: random.Random) -> Fault:
    if getattr(fault, "router", None) == ANY:
        return fault.model_copy(update={"router": chance.choice(list(topology.routers))})
    ours = _embedded(topology)
    if getattr(fault, "broker", None) == ANY and ours:
        return fault.model_copy(update={"broker": chance.choice(ours)})
    return fault


def _drawn(step: Random, topology: Topology, chance: random.Random) -> Iterator[Fault]:
    links = [(edge.dialer, edge.to) for edge in topology.edges()]
    for turn in range(step.count):
        model = FAULTS[chance.choice(step.among)]
        fields = {"at": f"{step.at + turn * step.every}s", "for": f"{step.for_}s"}
        if issubclass(model, LinkFault):
            if links:
                yield model.model_validate({**fields, "link": chance.choice(links)})
        else:
            yield model.model_validate({**fields, "router": chance.choice(list(topology.routers))})


def _embedded(topology: Topology) -> list[str]:
    return [name for name, broker in topology.brokers.items() if broker.is_embedded]


def _check(path: Path, fault: Fault, topology: Topology) -> Iterator[Problem]:
    if isinstance(fault, LinkFault):
        yield from _check_link(path, fault, topology)
        return
    for kind in NODE_KINDS.values():
        name = getattr(fault, kind.name, None)
        if name is not None:
            yield from _check_known((*path, kind.name), kind.name, name, kind.declared(topology))
    broker = getattr(fault, "broker", None)
    if broker in topology.brokers and not topology.brokers[broker].is_embedded:
        yield Problem((*path, "broker"), "AM603", f"{broker!r} is {EXISTING}")
    if isinstance(fault, ExpireCertificate) and not topology.node_tls:
        yield Problem((*path, "fault"), "AM603", "node_tls is false: no node has a certificate that can expire")


def _check_known(
    path: Path, kind: str, name: str, known: Collection[str], *, may_be_any: bool = True
) -> Iterator[Problem]:
    if name not in known:
        hint = hint_for(name, known)
        fix = f"name one of the {kind}s of the topology" + (f", or '{ANY}'." if may_be_any else ".")
        yield Problem(path, UNKNOWN_NAME_CODES[kind], f"unknown {kind} {name!r}", hint, fix, nearest(name, known))


def _check_link(path: Path, fault: LinkFault, topology: Topology) -> Iterator[Problem]:
    links = [f"{edge.dialer} - {edge.to}" for edge in topology.edges()]
    first, second = fault.link
    if not {f"{first} - {second}", f"{second} - {first}"} & set(links):
        hint = f"links: {', '.join(links)}"
        message = f"{first!r} and {second!r} are not connected to each other"
        yield Problem((*path, "link"), "AM603", message, hint, fix="name the two ends of a link of the topology.")


def _check_random(file: DrillFile, topology: Topology) -> Iterator[Problem]:
    for path, step in file.steps:
        if isinstance(step, Random) and not list(topology.edges()):
            for kind in step.among:
                if issubclass(FAULTS[kind], LinkFault):
                    yield Problem((*path, "fault"), "AM603", f"{kind!r} needs a link, and no two routers are connected")


def _check_times(paths: Sequence[Path], planned: Sequence[PlannedFault]) -> Iterator[Problem]:
    for i, (path, one) in enumerate(zip(paths, planned, strict=True)):
        if one.lasts_s == 0 and not (one.fault.is_momentary or isinstance(one.fault, Command)):
            message = (
                f"{one.label!r} has no duration: without 'for', the fault ends with the method, or with 'heal: all'"
            )
            yield Problem(path, "AM102", message, fix="add 'for: 5s', or a later step `{at: 5s, heal: all}`.")
        if any(_is_same_at_once(one, other) for other in planned[:i]):
            message = (
                f"{one.label!r} begins while the same link is already broken in the same way: the end "
                "of one fault would heal both"
            )
            yield Problem(path, "AM603", message, fix="end one fault before the other begins, or break another link.")


def _is_same_at_once(one: PlannedFault, other: PlannedFault) -> bool:
    """Tell whether two faults break the same link in the same way at overlapping times.

    Faults of nodes never overlap, because the later fault waits until the node is back. A fault with `after` counts as
    overlapping with no other, because it begins after the end of the previous fault.
    """
    if not (isinstance(one.fault, LinkFault) and isinstance(other.fault, LinkFault)):
        return False
    is_same = set(one.fault.targets) == set(other.fault.targets) and one.fault.way == other.fault.way
    begins, ends = max(one.at_s, other.at_s), min(one.at_s + one.lasts_s, other.at_s + other.lasts_s)
    return is_same and one.after_s is None and other.after_s is None and begins < ends


def _flows(file: DrillFile, topology: Topology, found: list[Problem]) -> Iterator[DrillFlow | None]:
    loads = file.drill.steady_state.load
    several = len(loads) > 1
    for i, load in enumerate(loads):
        path: Path = ("steady_state", "load", i) if several else ("steady_state", "load")
        if load.address in {other.address for other in loads[:i]}:
            message = f"{load.address!r} already has a load: with two loads, missing messages could not be told apart"
            fix = "give one of them more 'senders' and 'receivers', or another address."
            found.append(Problem((*path, "address"), "AM604", message, fix=fix))
        yield _flow(path, load, loads, topology, found)


def _flow(path: Path, load: Load, loads: Sequence[Load], topology: Topology, found: list[Problem]) -> DrillFlow | None:
    routers = list(topology.routers)
    for key, names in (("from", load.from_), ("to", load.to)):
        for name in names:
            found += _check_known((*path, key), "router", name, routers, may_be_any=False)
    policy = AddressBook(topology).resolve(load.address)
    if policy is None or policy.is_internal or policy.kind.is_refused:
        hint = f"declared: {listing(topology.addresses)}"
        found.append(Problem((*path, "address"), "AM604", f"no client can use {load.address!r}", hint))
        return None
    if "type" in load.model_fields_set and load.type is not policy.kind:
        message = f"{load.address!r} is {policy.kind} in the topology, not {load.type}"
        found.append(Problem((*path, "type"), "AM604", message, fix="remove 'type': it is for `--against`."))
    # A fallback with a load of its own is a problem of the drill file: a message that took the fallback would arrive at
    # the receivers of that load, and would count as lost for the address.
    fallback = policy.fallback.name if policy.fallback is not None else None
    if fallback in {other.address for other in loads}:
        found.append(Problem((*path, "address"), "AM604", f"the fallback {fallback!r} already has a load of its own"))
    return spread(load, policy.kind, routers[:1], routers[-1:])


def spread(load: Load, kind: AddressKind, first: Sequence[str], last: Sequence[str]) -> DrillFlow:
    """Plan the traffic of ``load``: assign its routers to the senders and to the receivers, in turn. If the drill file
    names none, senders use the routers ``first``, receivers the routers ``last``.
    """
    return DrillFlow(
        load,
        kind,
        tuple(_in_turn(load.from_ or first, max(load.senders, len(load.from_)))),
        tuple(_in_turn(load.to or last, max(load.receivers, len(load.to)))),
    )


def _in_turn(names: Sequence[str], count: int) -> Iterator[str]:
    return (names[i % len(names)] for i in range(count))
