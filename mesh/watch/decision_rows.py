"""Decisions of routers as rows for people and programs: what each link leads to, and why a candidate was not chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

REASONS: Final = {
    "chosen": "chosen",
    "farther": "farther",
    "busier": "more outstanding and cost",
    "other_turn": "equal, and had its turn later",
    "no_credit": "no credit",
    "under_way": "busy with another delivery",
    "no_room": "its connection is full",
    "too_large": "the message is too large for it",
    "had_before": "had the delivery before",
    "not_for_sender": "may not get deliveries of this sender",
    "leaving": "leaving",
    "order": "waits for earlier deliveries on another path",
    "left_out": "left out: it does not keep up",
}
"""By verdict about a candidate, what people read."""

Links = Mapping[str, Mapping[str, Any]]
"""By the number of a link, as text, what a router tells of it."""


def end_text(router: str, number: int | None, links: Links) -> str:
    """Return what the link of ``router`` with this number leads to, as people know it; empty for no link."""
    if number is None:
        return ""
    known = links.get(str(number), {})
    id_ = f"{router}/{number}"
    match known.get("role"):
        case "circuit":
            ends = (("to", known.get("egress")), ("from", known.get("ingress")))
            other = next((f" {word} {end}" for word, end in ends if end not in (None, router)), "")
            return f"{id_} circuit{other} over {known.get('path') or known.get('container') or '?'}"
        case None:
            return id_
        case role:
            return f"{id_} {role} {known.get('container') or '?'}"


def decision_row(router: str, told: Mapping[str, Any], links: Links) -> dict[str, Any]:
    """Return a decision of ``router`` as the REST interface shows it; links have the ids of their entities."""

    def link_id(number: int | None) -> str | None:
        return None if number is None else f"{router}/{number}"

    candidates = [
        {
            **candidate,
            "link": link_id(candidate["link"]),
            "text": end_text(router, candidate["link"], links),
            "why": REASONS[candidate["verdict"]],
        }
        for candidate in told["candidates"]
    ]
    return {
        **told,
        "id": f"{router}/{told['number']}",
        "node": router,
        "from": link_id(told["from"]),
        "from_text": end_text(router, told["from"], links),
        "chosen": link_id(told["chosen"]),
        "candidates": candidates,
    }
