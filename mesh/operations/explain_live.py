"""Explains an address or a client: what the topology declares, and what the nodes of this machine have of it now.

The numbers are those of the nodes' records (`mesh.watch`); nodes are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from addressing.address import normalize
from addressing.book import AddressPolicy, SpaceBooks
from addressing.topology.model import Topology
from addressing.topology.places import TopologyPlaces
from mesh.operations.host_watch import watching
from mesh.terminal.exit_codes import ExitCode
from mesh.terminal.failure import CommandFailed
from mesh.watch.host_model import HostModel
from mesh.watch.states import ObservedConnection, ObservedLink, ObservedNode
from mesh.watch.troubles import CAUSES

MOST_ROWS: Final = 50
"""Most links of a table; the busiest of thousands explain no more."""
_CLOSEST: Final = "closest"
_BALANCED: Final = "balanced"


@dataclass(slots=True)
class ExplainedTaker:
    """A taker of the router ``router``: a consumer there, a circuit to another router, or a link to a broker."""

    router: str
    link: ObservedLink
    to: str
    cost: int | None
    note: str = ""

    @property
    def may_take(self) -> bool:
        """Whether the taker has credit, as far as is recorded."""
        return self.link.credit is None or self.link.credit > 0


@dataclass(slots=True)
class ExplainedAddress:
    """What is known of an address; ``declared`` are sentences, ``links`` those of clients."""

    address: str
    declared: list[str]
    policy: AddressPolicy | None
    producers: list[ObservedLink] = field(default_factory=list)
    consumers: list[ObservedLink] = field(default_factory=list)
    takers: list[ExplainedTaker] = field(default_factory=list)
    queues: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@contextmanager
def explained_address(topology: Topology, address: str) -> Iterator[ExplainedAddress]:
    """Yield what is known of ``address`` in the mesh of ``topology``, with the records of this machine's nodes."""
    name = normalize(address)
    policy = SpaceBooks(topology).of("").resolve(name)
    found = ExplainedAddress(name, list(_declared(topology, name, policy)), policy)
    with watching(topology) as watch:
        watch.look()
        if not watch.is_any_running:
            found.notes.append(f"no node of mesh {topology.mesh} runs on this machine: only the topology is known")
        else:
            _observe(topology, watch.host, found)
        yield found


def _declared(topology: Topology, name: str, policy: AddressPolicy | None) -> Iterator[str]:
    if policy is None:
        yield f"{name}: the topology declares no such address, so links to it are refused with amqp:not-found"
        return
    entry = topology.addresses.get(policy.pattern)
    if entry is None:
        yield f"{name}: an address of the mesh itself, or a dynamic one"
        return
    place = TopologyPlaces(topology).place("addresses", policy.pattern)
    by = f"by {policy.pattern}" if policy.pattern != name else "declared by its name"
    yield f"{name}: {policy.kind.value}, {by}" + (f" ({place})" if place else "")
    if policy.kind.is_refused:
        yield "the topology says that the address is unavailable: links to it are refused"
    elif policy.is_link_routed:
        yield f"each client's link is tied to a link of its own at broker {policy.brokers[0]}"
    elif policy.is_sharded:
        yield f"a queue over the brokers {', '.join(policy.brokers)}: each message goes to one that has credit"
    elif policy.kind.is_distributed:
        rule = {
            _CLOSEST: "the taker with the least path cost" + (" among those with credit" if policy.spill else ""),
            _BALANCED: "the taker with the least sum of outstanding deliveries and path cost",
        }
        yield f"each message goes to {rule[policy.treatment]}"
    else:
        yield "each consumer gets a copy of each message"
    if policy.fallback is not None:
        yield f"without a consumer, messages go to the queue {policy.fallback.name}"


def _observe(topology: Topology, host: HostModel, found: ExplainedAddress) -> None:
    policy = found.policy
    shared = {found.address, policy.pattern if policy is not None else found.address}
    for node in sorted(host.nodes.values(), key=lambda node: node.name):
        if node.is_over:
            continue
        links = [link for link in node.links.values() if not link.is_ended]
        of_address = [link for link in links if link.address_text == found.address]
        found.producers += [link for link in of_address if link.is_producer]
        found.consumers += [link for link in of_address if link.is_consumer]
        found.queues += [queue for queue in node.queues.values() if queue.address_text == found.address]
        takers = list(_takers(node, [link for link in links if link.address_text in shared], found.address))
        if any(link.is_producer for link in of_address):
            _choose(policy, takers)
        found.takers += takers
    known = {node.name for node in host.nodes.values()}
    missing = [name for name in topology.routers if name not in known]
    if missing:
        found.notes.append(f"not on this machine, and not counted: {', '.join(missing)}")
    found.notes += _waits(found.producers)


def _takers(node: ObservedNode, links: Iterable[ObservedLink], address: str) -> Iterator[ExplainedTaker]:
    for link in links:
        if link.direction != "outgoing" or node.is_broker:
            continue
        if link.is_consumer and link.address_text == address:
            who = link.container or "?"
            yield ExplainedTaker(node.name, link, f"consumer {link.id} of {who}", 0)
        elif link.role == "circuit" and link.ingress == node.name:
            path = node.paths.get(link.egress or "")
            yield ExplainedTaker(node.name, link, f"{link.egress or '?'} over {link.path}", path.cost if path else None)
        elif link.role == "broker":
            yield ExplainedTaker(node.name, link, f"broker {link.container or '?'}", 0)


def _choose(policy: AddressPolicy | None, takers: list[ExplainedTaker]) -> None:
    """Say of each taker whether it gets the next delivery of a producer at its router, as far as is recorded."""
    if policy is None or not takers:
        return
    if not policy.kind.is_distributed:
        for each in takers:
            each.note = "" if each.may_take else "no credit"
        return

    def key(taker: ExplainedTaker) -> int:
        cost = taker.cost or 0
        return cost + (taker.link.unsettled or 0) if policy.treatment == _BALANCED else cost

    waits_for_closest = policy.treatment == _CLOSEST and not policy.spill
    able = takers if waits_for_closest else [taker for taker in takers if taker.may_take]
    least = min((key(taker) for taker in able), default=None)
    for taker in takers:
        if not taker.may_take:
            taker.note = "no credit" + ("; producers wait for it" if waits_for_closest and key(taker) == least else "")
        elif key(taker) == least:
            taker.note = "next"
        else:
            taker.note = f"{key(taker)} against {least}"


def _waits(producers: Iterable[ObservedLink]) -> Iterator[str]:
    waiting: dict[str, list[ObservedLink]] = {}
    for link in producers:
        if link.waits_for is not None:
            waiting.setdefault(link.waits_for, []).append(link)
    for cause, links in waiting.items():
        sentence, fix = CAUSES.get(cause, (cause, ""))
        longest = max(link.starved_s for link in links)
        who = f"{len(links):,} producers wait" if len(links) > 1 else f"producer {links[0].id} waits"
        yield f"{who} for credit, without it for up to {longest:,.0f} s in all: {sentence}. {fix}"


@dataclass(slots=True)
class ExplainedClient:
    name: str
    connections: list[ObservedConnection]
    notes: list[str]


@contextmanager
def explained_client(topology: Topology, name: str) -> Iterator[ExplainedClient]:
    """Yield the connections with the container-id or id ``name``, or of the user ``name``, on this machine.

    Raises CommandFailed if there is none.
    """
    with watching(topology) as watch:
        watch.look()
        nodes = [node for node in watch.host.nodes.values() if not node.is_over and not node.is_broker]
        every = [each for node in nodes for each in node.connections.values() if each.role == "client"]
        found = [each for each in every if name in (each.container, each.id)]
        found = found or [each for each in every if each.user_name == name]
        if not found:
            names = sorted({each.container for each in every if each.container})[:10]
            known = f"expected one of {', '.join(names)}, an id, or a user" if names else "no client is connected here"
            raise CommandFailed(
                f"no client {name!r} is connected to a router on this machine: {known}",
                fix="`amqpmesh top clients` shows the connections of clients.",
                exit_code=ExitCode.FAILED,
            )
        links = [link for each in found for link in each.links.values() if not link.is_ended]
        yield ExplainedClient(name, found, list(_waits(link for link in links if link.direction == "incoming")))
