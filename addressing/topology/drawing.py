"""A topology as plain text: a drawing of its routers, then tables of routers, brokers, addresses and users.

A line and a ring of up to 8 routers are drawn in a row, anything else as a tree of fewest hops from the interior router
with most connections; connections that the tree leaves out are named beside the router. ``r3[b1]`` is a router with a
broker that names its routers in the file, ``(e1)`` an edge router.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from addressing.priority import DEFAULT_PRIORITY
from addressing.topology.model import DeclaredAddress, Listener, Router, Topology

_MOST_IN_A_ROW = 8

Neighbors = dict[str, dict[str, int]]


def draw_topology(topology: Topology) -> str:
    """Return a drawing of ``topology``; equal topologies give equal drawings."""
    sections = [
        _title(topology),
        "\n".join(f"    {line}".rstrip() for line in _draw_routers(topology)),
        _table("routers", [_router_row(name, router) for name, router in topology.routers.items()]),
        _table("brokers", [_broker_row(name, topology) for name in topology.brokers]),
        _table("addresses", [_address_row(name, topology) for name in topology.addresses]),
        _table("users", [_user_row(name, topology) for name in topology.users]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _title(topology: Topology) -> str:
    counts = (
        (len(topology.interior_routers), "router"),
        (len(topology.edge_routers), "edge router"),
        (len(list(topology.edges())), "connection"),
        (len(topology.brokers), "broker"),
    )
    parts = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counts if count]
    security = "" if topology.node_tls else "; plain text between nodes"
    return f"mesh {topology.mesh}: {', '.join(parts)}{security}"


def _draw_routers(topology: Topology) -> Iterator[str]:
    neighbors: Neighbors = {name: {} for name in topology.routers}
    for edge in topology.edges():
        neighbors[edge.dialer][edge.to] = neighbors[edge.to][edge.dialer] = edge.cost
    labels = {name: _label(name, topology) for name in topology.routers}
    uplinks = {name: next(iter(topology.costs_at(name)), "") for name in topology.edge_routers}
    left = list(topology.routers)
    while left:
        part = _reachable(left[0], neighbors)
        yield from _draw_part([name for name in left if name in part], neighbors, labels, uplinks)
        left = [name for name in left if name not in part]
        if left:
            yield ""


def _label(router: str, topology: Topology) -> str:
    # Only a broker that names its routers is drawn beside these routers. Any other broker, which is at all interior
    # routers, stands in the table of brokers only.
    brokers = [name for name in topology.brokers_at(router) if topology.brokers[name].routers]
    name = f"({router})" if topology.routers[router].is_edge else router
    return f"{name}[{', '.join(brokers)}]" if brokers else name


def _reachable(start: str, neighbors: Neighbors) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = neighbors[waiting.pop()].keys() - reached
        reached |= fresh
        waiting += fresh
    return reached


def _draw_part(
    names: Sequence[str], neighbors: Neighbors, labels: dict[str, str], uplinks: dict[str, str]
) -> Iterator[str]:
    degrees = sorted(len(neighbors[name]) for name in names)
    fits_in_row = 2 <= len(names) <= _MOST_IN_A_ROW
    if fits_in_row and degrees[:2] == [1, 1] and degrees[-1] <= 2:
        start = next(name for name in names if len(neighbors[name]) == 1)
        yield _row(_walk(start, neighbors), neighbors, labels)
    elif fits_in_row and degrees[0] == degrees[-1] == 2:
        yield from _ring(_walk(names[0], neighbors), neighbors, labels)
    else:
        yield from _tree(names, neighbors, labels, uplinks)


def _walk(start: str, neighbors: Neighbors) -> list[str]:
    """Return the routers of a line or ring in their order along the connections, from ``start``."""
    walked = [start]
    while True:
        ahead = next((name for name in neighbors[walked[-1]] if name not in walked), None)
        if ahead is None:
            return walked
        walked.append(ahead)


def _row(names: Sequence[str], neighbors: Neighbors, labels: dict[str, str]) -> str:
    drawn = labels[names[0]]
    for before, name in pairwise(names):
        drawn += f" ──{neighbors[before][name]}── {labels[name]}"
    return drawn


def _ring(names: Sequence[str], neighbors: Neighbors, labels: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a ring of routers: a row, and below it the connection from the last router to the first."""
    row = _row(names, neighbors, labels)
    width = len(row) - len(labels[names[-1]])
    yield row
    yield f"│{'│':>{width}}"
    yield f"╰{neighbors[names[0]][names[-1]]!s:─^{width - 1}}╯"


def _tree(names: Sequence[str], neighbors: Neighbors, labels: dict[str, str], uplinks: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a drawing of connected routers as a tree of fewest hops.

    The root is the interior router with most connections. Connections outside the tree are named beside their routers.
    An edge router hangs from the router that it prefers to connect to.
    """
    root = max(names, key=lambda name: (name not in uplinks, len(neighbors[name]), -names.index(name)))
    parents = _parents(root, neighbors) | {edge: uplink for edge, uplink in uplinks.items() if edge in names}
    children: dict[str, list[str]] = {name: [] for name in names}
    for name, parent in parents.items():
        children[parent].append(name)
    extras = {name: _extras(name, neighbors, parents) for name in names}
    yield labels[root] + extras[root]
    # Walk the tree depth first without recursion: a line of a thousand routers, which is a tree, too, would exceed
    # Python's limit of recursion.
    waiting = [(name, "") for name in reversed(children[root])]
    while waiting:
        name, margin = waiting.pop()
        is_last = name == children[parents[name]][-1]
        branch = f"──{neighbors[parents[name]][name]}── "
        yield f"{margin}{'└' if is_last else '├'}{branch}{labels[name]}{extras[name]}"
        deeper = margin + (" " if is_last else "│") + " " * len(branch)
        waiting += [(child, deeper) for child in reversed(children[name])]


def _parents(root: str, neighbors: Neighbors) -> dict[str, str]:
    parents: dict[str, str] = {}
    layer = [root]
    while layer:
        found: dict[str, str] = {}
        for name in layer:
            for other in neighbors[name]:
                if other != root and other not in parents:
                    found.setdefault(other, name)
        parents |= found
        layer = list(found)
    return parents


def _extras(name: str, neighbors: Neighbors, parents: dict[str, str]) -> str:
    """Return a remark that names the connections of router ``name`` outside the drawn tree; "" for none."""
    others = [
        f"{other} at cost {cost}"
        for other, cost in neighbors[name].items()
        if parents.get(name) != other and parents.get(other) != name
    ]
    return f"   (also to {', '.join(others)})" if others else ""


def _table(title: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join([title, *(f"    {line}" for line in lines)])


def _router_row(name: str, router: Router) -> list[str]:
    clients = ", ".join(_listener(listener) for listener in router.listeners) or "none"
    return [name, _at(router.host, router.port), f"clients: {clients}"]


def _listener(listener: Listener) -> str:
    scheme = "amqps" if listener.tls else "amqp"
    asks = "" if listener.authentication == "none" else f" (authentication {listener.authentication})"
    return f"{scheme}://{_at(listener.host, listener.port)}{asks}"


def _at(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _broker_row(name: str, topology: Topology) -> list[str]:
    broker = topology.brokers[name]
    routers = ", ".join(broker.routers) or ("every interior router" if topology.edge_routers else "every router")
    if broker.location is not None:
        return [name, str(broker.location), "existing", f"at {routers}"]
    return [name, _at(broker.host, broker.port), f"embedded in {broker.data}", f"at {routers}"]


def _address_row(name: str, topology: Topology) -> list[str]:
    address = topology.addresses[name]
    parts = [_treatment(address, topology)]
    if address.fallback:
        parts.append(f"fallback {address.fallback}")
    if address.priority != DEFAULT_PRIORITY:
        parts.append(f"priority {address.priority}")
    if address.retransmit:
        parts.append("retransmitted")
    if address.max_queues is not None:
        parts.append(f"at most {address.max_queues:,} queues")
    if address.max_queues_per_user is not None:
        parts.append(f"at most {address.max_queues_per_user:,} of a user")
    if address.queue_expiry_s is not None:
        parts.append(f"unused queues expire after {address.queue_expiry_s:,.12g} s")
    if address.subscription_expiry_s is not None:
        parts.append(f"subscriptions expire after {address.subscription_expiry_s:,.12g} s")
    if address.fill_to:
        parts.append("fills in 'to'")
    return [name, str(address.type), ", ".join(part for part in parts if part)]


def _treatment(address: DeclaredAddress, topology: Topology) -> str:
    if address.type.is_distributed:
        return f"{address.distribution}, spills" if address.spill else str(address.distribution)
    if not address.type.is_stored:
        return ""
    brokers = topology.brokers_of(address)
    spread = "spread over" if len(brokers) > 1 else "on"
    renamed = f" as {address.broker_address}" if address.broker_address else ""
    return f"{spread} {', '.join(brokers)}{renamed}"


def _user_row(name: str, topology: Topology) -> list[str]:
    user = topology.users[name]
    rights = [
        f"{right}: {' '.join(patterns)}" for right in ("view", "browse", "manage") if (patterns := getattr(user, right))
    ]
    return [
        name,
        f"send: {' '.join(user.send) or 'nothing'}",
        f"receive: {' '.join(user.receive) or 'nothing'}",
        "  ".join(rights),
    ]
