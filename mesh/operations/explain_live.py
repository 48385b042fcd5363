"""Explains an address or a client: the declaration in the topology, and the links and queues of the nodes now.

The numbers are those of the nodes' records, from the observer of this host or from the rings here; nodes are not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from addressing.address import normalize
from addressing.book import AddressPolicy, SpaceBooks
from addressing.topology.model import Topology
from mesh.operations.entity_rows import EntityRows, Row, entity_rows
from mesh.terminal.failure import CommandFailed
from mesh.watch.declared_addresses import BALANCED, CLOSEST, declared_sentences
from mesh.watch.states import BROKER
from mesh.watch.troubles import CAUSES
from recording.entities import CONNECTION, LINK, NODE, PATH, QUEUE

MOST_ROWS: Final = 50
"""Most links of a table; the busiest of thousands explain no more."""
_NAMED: Final = 10
"""Most clients that the text of an error lists."""
_CIRCUIT: Final = "circuit"
_TO_BROKER: Final = "broker"
"""Roles of links between routers, and to a broker."""


@dataclass(slots=True)
class ExplainedTaker:
    """A taker of the router ``router``: a consumer there, a circuit to another router, or a link to a broker."""

    router: str
    link: Row
    to: str
    cost: int | None
    note: str = ""

    @property
    def may_take(self) -> bool:
        """Whether the taker has credit, as far as is recorded."""
        credit: int | None = self.link["credit"]
        return credit is None or credit > 0


@dataclass(slots=True)
class ExplainedAddress:
    """What is known of an address; ``declared`` are sentences, ``links`` those of clients."""

    address: str
    declared: list[str]
    policy: AddressPolicy | None
    producers: list[Row] = field(default_factory=list)
    consumers: list[Row] = field(default_factory=list)
    takers: list[ExplainedTaker] = field(default_factory=list)
    queues: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def explain_address(topology: Topology, address: str) -> ExplainedAddress:
    """Return what is known of ``address`` in the mesh of ``topology``."""
    name = normalize(address)
    policy = SpaceBooks(topology).of("").resolve(name)
    found = ExplainedAddress(name, list(declared_sentences(topology, name, policy)), policy)
    with entity_rows(topology) as source:
        if source is None:
            found.notes.append(f"no node of mesh {topology.mesh} runs on this machine: only the topology is known")
        else:
            _observe(source, found)
    return found


def _observe(source: EntityRows, found: ExplainedAddress) -> None:
    policy, brokers = found.policy, _brokers(source)
    links = [link for link in source.rows(LINK, address=found.address) if link["node"] not in brokers]
    found.producers = [link for link in links if link["role"] == "producer"]
    found.consumers = [link for link in links if link["role"] == "consumer"]
    found.queues = source.rows(QUEUE, address=found.address)
    if policy is not None and policy.pattern not in ("", found.address):
        # Addresses of a pattern may share circuits and links to a broker.
        links += [
            link
            for link in source.rows(LINK, address=policy.pattern)
            if link["node"] not in brokers and link["role"] in (_CIRCUIT, _TO_BROKER)
        ]
    found.takers = sorted(_takers(source, links), key=lambda taker: (taker.router, taker.cost or 0))
    for router in sorted({link["node"] for link in found.producers}):
        _choose(policy, [taker for taker in found.takers if taker.router == router])
    found.notes += [*_waits(found.producers), *source.notes]


def _brokers(source: EntityRows) -> set[str]:
    return {node["name"] for node in source.rows(NODE, role=BROKER)}


def _takers(source: EntityRows, links: Iterable[Row]) -> Iterator[ExplainedTaker]:
    costs: dict[str, dict[str, int]] = {}
    for link in links:
        router, egress = link["node"], link["egress"]
        if link["direction"] != "outgoing":
            continue
        if link["role"] == "consumer":
            yield ExplainedTaker(router, link, f"consumer {link['id']} of {link['container'] or '?'}", 0)
        elif link["role"] == _CIRCUIT and link["ingress"] == router:
            if egress is not None and egress not in costs:
                costs[egress] = {path["node"]: path["cost"] for path in source.rows(PATH, egress=egress)}
            cost = costs.get(egress or "", {}).get(router)
            yield ExplainedTaker(router, link, f"{egress or '?'} over {link['path']}", cost)
        elif link["role"] == _TO_BROKER:
            yield ExplainedTaker(router, link, f"broker {link['container'] or '?'}", 0)


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
        return cost + (taker.link["unsettled"] or 0) if policy.treatment == BALANCED else cost

    waits_for_closest = policy.treatment == CLOSEST and not policy.spill
    able = takers if waits_for_closest else [taker for taker in takers if taker.may_take]
    least = min((key(taker) for taker in able), default=None)
    for taker in takers:
        if not taker.may_take:
            taker.note = "no credit" + ("; producers wait for it" if waits_for_closest and key(taker) == least else "")
        elif key(taker) == least:
            taker.note = "next"
        else:
            taker.note = f"{key(taker)} against {least}"


def _waits(producers: Iterable[Row]) -> Iterator[str]:
    waiting: dict[str, list[Row]] = {}
    for link in producers:
        if link["waits_for"] is not None:
            waiting.setdefault(link["waits_for"], []).append(link)
    for cause, links in waiting.items():
        sentence, fix = CAUSES.get(cause, (cause, ""))
        longest = max(link["starved_s"] or 0.0 for link in links)
        who = f"{len(links):,} producers wait" if len(links) > 1 else f"producer {links[0]['id']} waits"
        yield f"{who} for credit, without it for up to {longest:,.0f} s in all: {sentence}. {fix}"


@dataclass(slots=True)
class ExplainedClient:
    name: str
    connections: list[Row]
    links: list[Row]
    notes: list[str]


def explain_client(topology: Topology, name: str) -> ExplainedClient:
    """Return the connections of clients with the container-id or id ``name``, or of the user ``name``, and their links.

    Raises CommandFailed if there is none.
    """
    with entity_rows(topology) as source:
        if source is not None:
            brokers = _brokers(source)
            for key in ("container", "id", "user"):
                rows = source.rows(CONNECTION, role="client", **{key: name})
                if found := [row for row in rows if row["node"] not in brokers]:
                    links = [link for row in found for link in source.rows(LINK, connection=row["id"])]
                    incoming = [link for link in links if link["direction"] == "incoming"]
                    return ExplainedClient(name, found, links, [*_waits(incoming), *source.notes])
            every = [row for row in source.rows(CONNECTION, role="client") if row["node"] not in brokers]
            names = sorted({row["container"] for row in every if row["container"]})[:_NAMED]
            known = f"expected one of {', '.join(names)}, an id, or a user" if names else "no client is connected"
        else:
            known = f"no node of mesh {topology.mesh} runs on this machine"
    raise CommandFailed(f"no client {name!r}: {known}", fix="`amqpmesh top clients` shows the connections of clients.")
