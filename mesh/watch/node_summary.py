"""What a host tells of each of its nodes to the observers of other hosts: at most SUMMARY_BYTES a node. Sans-IO.

A summary is the row of entity `node`, and what the map of the mesh shows of the node: its neighbors, the peers of its
connections to nodes, the users of its clients, and the messages in its queues.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.states import RUNNING, row_of
from recording.entities import NODE

if TYPE_CHECKING:
    from mesh.watch.states import ObservedNode

SUMMARY_BYTES: Final = 2048
"""The most bytes of a summary as JSON: one that would be longer lacks names of peers and users, and says so."""
UNKNOWN: Final = "unknown"
"""The state of a node of which nobody can tell now."""
_USERS: Final = 4
_USER_CHARS: Final = 40
_TEXT_CHARS: Final = 128


@dataclass(slots=True)
class NodeSummary:
    """``row``: the fields of entity `node`. ``users``: number of clients by user, the most first.

    ``depth``: messages in all queues of a broker; None without a queue. ``is_cut``: ``neighbors``, ``peers`` and
    ``users`` are not all.
    """

    row: dict[str, Any]
    neighbors: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    users: dict[str, int] = field(default_factory=dict)
    depth: int | None = None
    is_cut: bool = False

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def state(self) -> str:
        return str(self.row["state"])

    @property
    def is_running(self) -> bool:
        return self.state == RUNNING

    def later(self, seconds: float) -> NodeSummary:
        """Return the summary as it is ``seconds`` later, when nothing else has been heard."""
        return replace(self, row={**self.row, "age_s": (self.row["age_s"] or 0.0) + seconds})


def summary_of(node: ObservedNode) -> NodeSummary:
    """Return the whole summary of ``node``."""
    counts = Counter(each.user.name for each in node.connections.values() if each.user is not None)
    return NodeSummary(
        row_of(NODE, node),
        tuple(node.neighbors),
        tuple({each.container for each in node.connections.values() if each.role != "client" and each.container}),
        dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        sum(queue.depth for queue in node.queues.values()) if node.queues else None,
    )


def to_list(summary: NodeSummary) -> list[Any]:
    """Return the summary as values for JSON: with names of fields nowhere, and of at most SUMMARY_BYTES."""
    values = [_short(summary.row[name]) for name in NODE.names]
    users = {name[:_USER_CHARS]: count for name, count in list(summary.users.items())[:_USERS]}
    is_cut = summary.is_cut or len(summary.users) > _USERS or any(len(name) > _USER_CHARS for name in summary.users)
    told = [values, list(summary.neighbors), list(summary.peers), users, summary.depth, is_cut]
    for number, less in ((2, []), (1, []), (3, {})):
        if len(json.dumps(told, separators=(",", ":"))) <= SUMMARY_BYTES:
            break
        told[number], told[5] = less, True
    return told


def from_list(told: list[Any], names: Iterable[str]) -> NodeSummary:
    """Return the summary that `to_list` told. ``names``: fields of entity `node` at the host that told it."""
    values, neighbors, peers, users, depth, is_cut = told
    row = dict(zip(names, values, strict=True))
    return NodeSummary(
        {name: row.get(name) for name in NODE.names}, tuple(neighbors), tuple(peers), dict(users), depth, is_cut
    )


def unknown(summary: NodeSummary, why: str, later_s: float) -> NodeSummary:
    """Return what is left of a summary that is ``later_s`` old, since its host cannot tell now: rates are none."""
    rates = {name: None for name in summary.row if name.endswith("rate")}
    aged = summary.later(later_s)
    return replace(aged, row={**aged.row, **rates, "state": UNKNOWN, "unknown_because": why})


def never_heard(name: str, role: str, why: str) -> NodeSummary:
    """Return the summary of a node of which no observer has told."""
    row: dict[str, Any] = dict.fromkeys(NODE.names)
    return NodeSummary({**row, "id": name, "name": name, "role": role, "state": UNKNOWN, "unknown_because": why})


def best(summaries: Iterable[NodeSummary]) -> Mapping[str, NodeSummary]:
    """Return one summary by the name of each node: of a node that moved to another host, the one of the last run."""
    found: dict[str, NodeSummary] = {}
    for each in summaries:
        known = found.get(each.name)
        if known is None or _rank(each) > _rank(known):
            found[each.name] = each
    return found


def _rank(summary: NodeSummary) -> tuple[int, float]:
    sure = {RUNNING: 3, "silent": 2, UNKNOWN: 0}.get(summary.state, 1)
    return sure, summary.row["started_at"] or 0.0


def _short(value: Any) -> Any:
    return value[:_TEXT_CHARS] if isinstance(value, str) else value
