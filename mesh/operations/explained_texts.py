"""What `amqpmesh explain address|client|access` prints: tables and sentences for people, one document with --json."""

from __future__ import annotations

from typing import Any

from addressing.address import normalize
from addressing.topology.model import Topology
from mesh.operations.explain_access import explain_access, to_maps
from mesh.operations.explain_live import MOST_ROWS, ExplainedTaker, explained_address, explained_client
from mesh.terminal.output import Output
from mesh.watch.states import ObservedLink, row_of
from recording.entities import CONNECTION, LINK, QUEUE


def show_access(topology: Topology, user: str, address: str, *, out: Output) -> None:
    rights = explain_access(topology, user, address)
    if out.is_json:
        out.document({"user": user, "address": normalize(address), "rights": list(to_maps(rights))})
        return
    rows = [(each.right, "yes" if each.is_allowed else "no", each.pattern, each.place, each.why) for each in rights]
    out.table(("RIGHT", "ALLOWED", "PATTERN", "PLACE", "WHY"), rows)


def show_address(topology: Topology, address: str, *, out: Output) -> None:
    with explained_address(topology, address) as found:
        links = (found.producers, found.consumers)
        if out.is_json:
            producers, consumers = ([row_of(LINK, link) for link in some[:MOST_ROWS]] for some in links)
            document: dict[str, Any] = {
                "address": found.address,
                "pattern": found.policy.pattern or None if found.policy is not None else None,
                "declared": found.declared,
                "counts": {"producers": len(found.producers), "consumers": len(found.consumers)},
                "producers": producers,
                "consumers": consumers,
                "takers": [_taker_map(taker) for taker in found.takers[:MOST_ROWS]],
                "queues": [row_of(QUEUE, queue) for queue in found.queues[:MOST_ROWS]],
                "notes": found.notes,
            }
            out.document(document)
            return
        for sentence in found.declared:
            out.data(sentence)
        _print_links("producers", found.producers, out)
        _print_links("consumers", found.consumers, out)
        if found.takers:
            out.data(f"\n{len(found.takers):,} takers, of {len({taker.router for taker in found.takers})} routers")
            rows = [
                (each.router, each.link.id, each.to, each.cost, each.link.credit, each.link.unsettled, each.note)
                for each in found.takers[:MOST_ROWS]
            ]
            out.table(("AT", "LINK", "TAKER", "COST", "CREDIT", "UNSETTLED", "NOTE"), rows)
        if found.queues:
            out.data(f"\n{len(found.queues):,} queues and subscriptions")
            queues = [
                (each.node.name, each.subscriber, each.depth, each.acquired, each.oldest_s)
                for each in found.queues[:MOST_ROWS]
            ]
            out.table(("BROKER", "SUBSCRIBER", "DEPTH", "ACQUIRED", "OLDEST S"), queues)
        _print_notes(found.notes, out)


def show_client(topology: Topology, name: str, *, out: Output) -> None:
    with explained_client(topology, name) as found:
        links = [link for each in found.connections for link in each.links.values() if not link.is_ended]
        if out.is_json:
            out.document(
                {
                    "client": name,
                    "connections": [row_of(CONNECTION, each) for each in found.connections[:MOST_ROWS]],
                    "links": [row_of(LINK, link) for link in links[:MOST_ROWS]],
                    "notes": found.notes,
                }
            )
            return
        rows = [
            (each.id, each.container, each.user_name, each.remote_address, each.mechanism, each.tls_version)
            for each in found.connections[:MOST_ROWS]
        ]
        out.table(("CONNECTION", "CONTAINER", "USER", "REMOTE", "MECHANISM", "TLS"), rows)
        _print_links("links", links, out)
        _print_notes(found.notes, out)


def _print_links(what: str, links: list[ObservedLink], out: Output) -> None:
    if not links:
        out.data(f"\nno {what}")
        return
    out.data(f"\n{len(links):,} {what if len(links) > 1 else what[:-1]}")
    columns = (
        "LINK",
        "ROLE",
        "ADDRESS",
        "CONTAINER",
        "USER",
        "CREDIT",
        "WAITS FOR",
        "STARVED S",
        "UNSETTLED",
        "RELEASED",
    )
    rows = [
        (
            link.id,
            link.role,
            link.address_text,
            link.container,
            link.user_name,
            link.credit,
            link.waits_for,
            round(link.starved_s, 1),
            link.unsettled,
            link.counts.released,
        )
        for link in links[:MOST_ROWS]
    ]
    out.table(columns, rows)


def _print_notes(notes: list[str], out: Output) -> None:
    if notes:
        out.data("")
    for note in notes:
        out.data(note)


def _taker_map(taker: ExplainedTaker) -> dict[str, Any]:
    return {
        "router": taker.router,
        "link": taker.link.id,
        "to": taker.to,
        "cost": taker.cost,
        "credit": taker.link.credit,
        "unsettled": taker.link.unsettled,
        "note": taker.note,
    }
