"""What `amqpmesh explain` prints of a mesh: tables and sentences for people, one document with --json."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from addressing.address import normalize
from addressing.topology.model import Topology
from mesh.operations.entity_rows import Row
from mesh.operations.explain_access import explain_access, to_maps
from mesh.operations.explain_delivery import explain_delivery, sentences_about
from mesh.operations.explain_live import MOST_ROWS, ExplainedTaker, explain_address, explain_client
from mesh.terminal.output import Output
from mesh.watch.decision_rows import REASONS


def show_access(topology: Topology, user: str, address: str, *, out: Output) -> None:
    rights = explain_access(topology, user, address)
    if out.is_json:
        out.document({"user": user, "address": normalize(address), "rights": list(to_maps(rights))})
        return
    rows = [(each.right, "yes" if each.is_allowed else "no", each.pattern, each.place, each.why) for each in rights]
    out.table(("RIGHT", "ALLOWED", "PATTERN", "PLACE", "WHY"), rows)


def show_address(topology: Topology, address: str, *, out: Output) -> None:
    found = explain_address(topology, address)
    if out.is_json:
        out.document(
            {
                "address": found.address,
                "pattern": found.policy.pattern or None if found.policy is not None else None,
                "declared": found.declared,
                "counts": {"producers": len(found.producers), "consumers": len(found.consumers)},
                "producers": found.producers[:MOST_ROWS],
                "consumers": found.consumers[:MOST_ROWS],
                "takers": [_taker_map(taker) for taker in found.takers[:MOST_ROWS]],
                "queues": found.queues[:MOST_ROWS],
                "notes": found.notes,
            }
        )
        return
    for sentence in found.declared:
        out.data(sentence)
    _print_links("producers", found.producers, out)
    _print_links("consumers", found.consumers, out)
    if found.takers:
        routers = len({taker.router for taker in found.takers})
        out.data(f"\n{_number(len(found.takers), 'taker')}, of {_number(routers, 'router')}")
        rows = [tuple(_taker_map(taker).values()) for taker in found.takers[:MOST_ROWS]]
        out.table(("AT", "LINK", "TAKER", "COST", "CREDIT", "UNSETTLED", "NOTE"), rows)
    if found.queues:
        out.data(f"\n{_number(len(found.queues), 'queue or subscription', 'queues and subscriptions')}")
        fields = ("node", "subscriber", "depth", "acquired", "oldest_s")
        out.table(("BROKER", "SUBSCRIBER", "DEPTH", "ACQUIRED", "OLDEST S"), _cells(found.queues, fields))
    _print_notes(found.notes, out)


def show_delivery(topology: Topology, address: str, *, seconds: int, count: int, out: Output) -> None:
    declared = sentences_about(topology, address)
    if not out.is_json:
        for sentence in declared:
            out.data(sentence)
    found = explain_delivery(topology, address, seconds, count)
    if out.is_json:
        out.document(
            {
                "address": found.address,
                "declared": declared,
                "decisions": found.decisions,
                "links": found.links,
                "notes": found.notes,
            }
        )
        return
    out.data("")
    if not found.decisions:
        out.data(f"within {seconds} s, no router here decided about a delivery of {found.address}")
        _print_notes(found.notes, out)
        return
    rows = []
    for row in found.decisions:
        at = datetime.fromtimestamp(row["at"], UTC).strftime("%H:%M:%S.%f")[:-3]
        number = str(row["delivery"]) if row["delivery"] else "again"
        came = (at, found.end(row["router"], row["from"]), number, f"{row['size_bytes']:,}")
        outcome = row["outcome"] or ("" if row["chosen"] else "waits")
        for candidate in row["candidates"] or [None]:
            if candidate is None:
                rows.append((*came, "no taker", "", "", "", "", outcome))
            else:
                numbers = (candidate["cost"], candidate["outstanding"], candidate["credit"])
                to = found.end(row["router"], candidate["link"])
                rows.append((*came, to, *numbers, REASONS[candidate["verdict"]], outcome))
            came, outcome = ("", "", "", ""), ""
        if (more := row["candidate_count"] - len(row["candidates"])) > 0:
            rows.append((*came, f"and {more:,} more", "", "", "", "", ""))
    columns = ("TIME", "FROM", "DELIVERY", "BYTES", "CANDIDATE", "COST", "OUTSTANDING", "CREDIT", "WHY", "OUTCOME")
    out.table(columns, rows)
    _print_notes(found.notes, out)


def show_client(topology: Topology, name: str, *, out: Output) -> None:
    found = explain_client(topology, name)
    if out.is_json:
        out.document(
            {
                "client": name,
                "connections": found.connections[:MOST_ROWS],
                "links": found.links[:MOST_ROWS],
                "notes": found.notes,
            }
        )
        return
    fields = ("id", "container", "user", "remote_address", "mechanism", "tls_version")
    out.table(("CONNECTION", "CONTAINER", "USER", "REMOTE", "MECHANISM", "TLS"), _cells(found.connections, fields))
    _print_links("links", found.links, out)
    _print_notes(found.notes, out)


def _cells(rows: Sequence[Row], fields: Sequence[str]) -> list[tuple[object, ...]]:
    return [tuple(row[name] for name in fields) for row in rows[:MOST_ROWS]]


def _number(count: int, one: str, several: str = "") -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _print_links(what: str, links: Sequence[Row], out: Output) -> None:
    if not links:
        out.data(f"\nno {what}")
        return
    out.data(f"\n{len(links):,} {what if len(links) > 1 else what[:-1]}")
    columns = {
        "LINK": "id",
        "ROLE": "role",
        "ADDRESS": "address",
        "CONTAINER": "container",
        "USER": "user",
        "CREDIT": "credit",
        "WAITS FOR": "waits_for",
        "STARVED S": "starved_s",
        "UNSETTLED": "unsettled",
        "RELEASED": "released",
    }
    out.table(tuple(columns), _cells(links, tuple(columns.values())))


def _print_notes(notes: list[str], out: Output) -> None:
    if notes:
        out.data("")
    for note in notes:
        out.data(note)


def _taker_map(taker: ExplainedTaker) -> dict[str, Any]:
    return {
        "router": taker.router,
        "link": taker.link["id"],
        "to": taker.to,
        "cost": taker.cost,
        "credit": taker.link["credit"],
        "unsettled": taker.link["unsettled"],
        "note": taker.note,
    }
