"""What is wrong in a mesh now, worst first, each with who is hit and what to do. Sans-IO."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.mesh_plan import MISSING
from mesh.watch.node_summary import UNKNOWN
from recording.entities import LINK, QUEUE, Entity

if TYPE_CHECKING:
    from mesh.watch.host_model import HostModel
    from mesh.watch.mesh_plan import MeshPlan, MeshState
    from mesh.watch.states import ObservedLink, ObservedQueue

Sees = Callable[[Entity, Any], bool]
"""Tells whether somebody may see the state of a link or queue."""
OLD_S: Final = 60.0
"""A queue whose oldest message is older has a trouble: nobody takes messages, or too few do."""
MAX_OF_A_KIND: Final = 20
_NAMED: Final = 3
"""The most users or nodes that a sentence names."""
_SHOWN_CHARS: Final = 120
CAUSES: Final = {
    "no_taker": (
        "no consumer takes messages from the address",
        "Start a consumer, or declare `fallback` for the address, so that a queue takes its messages.",
    ),
    "takers": (
        "the consumers have no credit left, as they are slower than the producers",
        "Look at the consumers of the address: unsettled deliveries, delays, their number.",
    ),
    "full_queue": (
        "the queue is full",
        "Start consumers, or raise `max_messages` or `max_bytes` of the address.",
    ),
    "disk": ("the disk of the broker is full", "Free disk space on the broker's host."),
    "memory": ("the broker is short of memory", "Give the broker more memory, or start consumers."),
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """``since``: seconds of UTC, None if unknown. ``view``, ``parameters``: the page of the console that shows more."""

    id: str
    kind: str
    subject: str
    text: str
    fix: str
    view: str
    parameters: dict[str, str]
    since: float | None = None

    def to_map(self) -> dict[str, Any]:
        return asdict(self)

    def on(self, host: str) -> Trouble:
        """Return the trouble as one of another host: two hosts may tell the same of an address."""
        return replace(self, id=f"{self.id} on {host}", text=f"{self.text} (host {host})")


def _sees_all(_: Entity, __: Any) -> bool:
    return True


def troubles(
    plan: MeshPlan, state: MeshState, host: HostModel, sees: Sees = _sees_all, elsewhere: Iterable[Trouble] = ()
) -> tuple[list[Trouble], int]:
    """Return what is wrong, worst first, and how many troubles were left out: MAX_OF_A_KIND of a kind are returned.

    Troubles of links and queues that are not seen are left out, and not counted. ``elsewhere``: what observers of other
    hosts said, of `host_troubles`.
    """
    found: list[Trouble] = []
    left_out = 0
    for each in (list(_nodes(plan, state, host.utc_s)), list(_connections(plan, state))):
        found += each[:MAX_OF_A_KIND]
        left_out += max(0, len(each) - MAX_OF_A_KIND)
    own, own_left_out = host_troubles(host, sees)
    return [*found, *own, *elsewhere], left_out + own_left_out


def host_troubles(host: HostModel, sees: Sees = _sees_all) -> tuple[list[Trouble], int]:
    """Return what is wrong with addresses and queues of the host, worst first, and how many troubles were left out."""
    found: list[Trouble] = []
    left_out = 0
    # Of these there may be one for each of 100,000 addresses: only those that are shown are put into words.
    for some, count in (_waiting(host, sees), _old_queues(host, sees)):
        found += some
        left_out += count - len(some)
    return found, left_out


def _nodes(plan: MeshPlan, state: MeshState, utc_s: float) -> Iterator[Trouble]:
    worst = {"lost": 0, "silent": 1}
    for node in sorted(state.nodes.values(), key=lambda node: (worst.get(node.state, 2), node.name)):
        view = {"name": node.name}
        age_s = node.row["age_s"]
        since = utc_s - age_s if age_s is not None else None
        role = node.row["role"] or plan.roles.get(node.name, "node")
        if node.state == "lost":
            cause = node.row["cause"]
            yield Trouble(
                f"node {node.name}", "lost", node.name,
                f"{role} {node.name} is lost: the process is gone"
                + (f", {cause}" if cause else " without a record of its end"),
                f"`amqpmesh status` says whether {node.name} is started again, and why {node.name} ended.",
                "/node", view, since,
            )  # fmt: skip
        elif node.state == "silent":
            yield Trouble(
                f"node {node.name}", "silent", node.name,
                f"{role} {node.name} is silent: the process is there and does not run",
                "Is the host short of CPU or memory, or the process stopped? If not, restart the node.",
                "/node", view, since,
            )  # fmt: skip
        elif node.state == UNKNOWN and node.row["host"] is not None:
            yield Trouble(
                f"node {node.name}", "unknown", node.name,
                f"{role} {node.name} is unknown: host {node.row['host']} cannot be asked, as "
                f"{_short(str(node.row['unknown_because']))}",
                f"On that host, `amqpmesh status` says whether {node.name} and the observer run. Traffic may go on.",
                "/node", view, since,
            )  # fmt: skip


def _connections(plan: MeshPlan, state: MeshState) -> Iterator[Trouble]:
    for planned in plan.connections:
        if state.of_connection(planned) != MISSING:
            continue
        name = f"{planned.one} - {planned.other}"
        what = "broker" if planned.cost is None else "neighbor"
        yield Trouble(
            f"connection {name}", "missing", name,
            f"{planned.one} and {planned.other} have no connection: the {what} is missing",
            f"`amqpmesh status -c` shows all connections, and the logs of {planned.one} and {planned.other} say why.",
            "/nodes", {"show": "neighbors"} if planned.is_link_state else {},
        )  # fmt: skip


def _waiting(host: HostModel, sees: Sees) -> tuple[list[Trouble], int]:
    """Return the MAX_OF_A_KIND addresses with the most producers that wait, and the number of all."""
    found: dict[tuple[str, str], _Waiting] = {}
    for node in host.nodes.values():
        if not node.waiting_producers:
            continue
        for link in node.links.values():
            if link.waits_for is None or not link.is_producer or not sees(LINK, link):
                continue
            key = (link.address_text or "", link.waits_for)
            waiting = found.get(key)
            if waiting is None:
                waiting = found[key] = _Waiting()
            waiting.add(link)
    most = heapq.nsmallest(MAX_OF_A_KIND, found.items(), key=lambda item: (-item[1].count, item[0]))
    return [_waiting_at(*key, waiting) for key, waiting in most], len(found)


@dataclass(slots=True)
class _Waiting:
    """Producers that wait at one address for one cause. ``since``: the time from which the first of them waits."""

    count: int = 0
    users: dict[str, None] = field(default_factory=dict)
    since: float | None = None

    def add(self, link: ObservedLink) -> None:
        self.count += 1
        self.users.setdefault(link.user_name or "anonymous")
        if link.waiting_since is not None:
            self.since = min(link.waiting_since, self.since or link.waiting_since)


def _waiting_at(address: str, cause: str, waiting: _Waiting) -> Trouble:
    count = waiting.count
    reason, fix = CAUSES.get(cause, (cause, "Look at the address."))
    place = f"at {_short(address)}" if address else "without a fixed address"
    return Trouble(
        f"waiting {cause} {address}", "waiting", address,
        f"{count:,} producer{'s' * (count != 1)} of {_names(list(waiting.users))} wait{'s' * (count == 1)} {place}: "
        f"{reason}",
        fix, "/address" if address else "/links",
        {"address": address} if address else {"filter": f"waits_for={cause}"}, waiting.since,
    )  # fmt: skip


def _old_queues(host: HostModel, sees: Sees) -> tuple[list[Trouble], int]:
    """Return the MAX_OF_A_KIND queues with the oldest messages, and the number of all with a message of OLD_S."""
    old = [
        (queue.oldest_s, queue)
        for node in host.nodes.values()
        for queue in node.queues.values()
        if queue.depth and queue.oldest_s is not None and queue.oldest_s >= OLD_S and sees(QUEUE, queue)
    ]
    oldest = heapq.nlargest(MAX_OF_A_KIND, old, key=lambda item: item[0])
    return [_old_queue(queue, host.utc_s - age_s) for age_s, queue in oldest], len(old)


def _old_queue(queue: ObservedQueue, since: float) -> Trouble:
    address = queue.address_text or ""
    consumers = queue.address.consumers if queue.address is not None else 0
    of = f" of subscriber {_short(queue.subscriber)}" if queue.subscriber else ""
    return Trouble(
        f"queue {queue.id}", "old", address,
        f"{_short(address)}{of} has {queue.depth:,} message{'s' * (queue.depth != 1)} and "
        f"{f'{consumers:,}' if consumers else 'no'} consumer{'s' * (consumers != 1)}: the oldest waits long",
        "Start more consumers." if consumers else "Start a consumer.",
        "/queue", {"node": queue.node.name, "address": address, "subscriber": queue.subscriber or ""}, since,
    )  # fmt: skip


def _names(names: list[str]) -> str:
    shown = [_short(name) for name in names[:_NAMED]]
    more = len(names) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more:,} more user{'s' * (more != 1)}"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text):,} characters)"
