"""Checks of a topology as a whole, beyond single values: names must exist, ports must differ.

Each check yields its problems and goes on, so that one run reports every mistake of the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from addressing.names import ANONYMOUS
from addressing.topology.address_checks import check_addresses
from addressing.topology.broker_settings import Broker
from addressing.topology.declared_names import DeclaredNames, unknown
from addressing.topology.model import Listener, Router, Topology
from addressing.topology.problem import Path, Problem
from addressing.topology.queries import Authentication

_WILDCARD_HOSTS = ("0.0.0.0", "::")
_OBSERVER_HOST = "127.0.0.1"
_EMBEDDED_ONLY = ("host", "port", "disk_free_min_bytes")
_EXISTING_ONLY = ("address_prefix", "hostname", "share_connections", "subscriptions", "tls")


def check(topology: Topology, declared: DeclaredNames) -> list[Problem]:
    """Return all problems of ``topology``, except problems that rest on a value in doubt (see `DeclaredNames`)."""
    return [problem for problem in _check_all(topology, declared) if declared.holds(problem)]


def _check_all(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    yield from _check_names(declared)
    yield from _check_connections(topology, declared)
    yield from _check_routing(topology)
    yield from _check_ports(topology, declared)
    yield from _check_listeners(topology)
    yield from _check_brokers(topology, declared)
    yield from check_addresses(topology, declared)
    yield from _check_users(topology)
    yield from _check_authentication(topology)


def _check_names(declared: DeclaredNames) -> Iterator[Problem]:
    if declared.routers is not None and not declared.routers:
        fix = "add a router: 'routers: {r1: {listeners: [5672]}}'."
        yield Problem(("routers",), "AM106", "routers: expected at least one router, got none", fix=fix)
    for name in sorted(set(declared.routers or ()) & set(declared.brokers or ())):
        yield Problem(("brokers", name), "AM108", f"{name!r} is the name of a router already", at_key=True)


def _check_connections(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    declarers: dict[frozenset[str], str] = {}
    for name, router in topology.routers.items():
        yield from _check_edge(topology, name, router)
        for i, connection in enumerate(router.connect):
            path: Path = ("routers", name, "connect", i, "to")
            yield from unknown("router", path, connection.to, declared.routers, f"router {name!r}: connector to")
            pair = frozenset((name, connection.to))
            if len(pair) == 1:
                yield Problem(path, "AM201", f"router {name!r}: the router connects to itself")
            elif pair in declarers:
                message = f"{name!r} and {connection.to!r} are connected already, by router {declarers[pair]!r}"
                yield Problem(path, "AM202", message)
            declarers.setdefault(pair, name)


def _check_edge(topology: Topology, name: str, router: Router) -> Iterator[Problem]:
    """Yield a problem if ``router`` is an edge router that declares no connection.

    Yield one, too, for each connection that ``router``, interior or edge, declares to an edge router.
    """
    here: Path = ("routers", name)
    if router.is_edge and not router.connect:
        message = f"edge router {name!r} has no uplink"
        yield Problem(here, "AM207", message, at_key=True, relies_on=((*here, "mode"), (*here, "connect")))
    for i, connection in enumerate(router.connect):
        other = topology.routers.get(connection.to)
        if other is not None and other.is_edge and connection.to != name:
            message = f"router {name!r}: connector to edge router {connection.to!r}"
            yield Problem(
                (*here, "connect", i, "to"), "AM206", message, relies_on=(("routers", connection.to, "mode"),)
            )


def _check_routing(topology: Topology) -> Iterator[Problem]:
    interval_s, max_age_s = topology.hello_interval_s, topology.hello_max_age_s
    if max_age_s < 2 * interval_s:
        yield Problem(
            ("hello_max_age_s",),
            "AM205",
            f"hello_max_age_s is {max_age_s:g}, expected at least {2 * interval_s:g}, twice hello_interval_s",
            relies_on=(("hello_interval_s",),),
        )


@dataclass(frozen=True, slots=True)
class _Bind:
    """A port that a node or listener binds. ``machine`` is the host by which other nodes reach the node."""

    path: Path
    owner: str
    machine: str
    host: str
    port: int
    relies_on: tuple[Path, ...]

    def conflicts_with(self, other: _Bind) -> bool:
        if self.machine == other.machine:
            return self.host == other.host or self._is_wildcard or other._is_wildcard
        # Two hosts that name different machines to other nodes conflict only in an equal address to listen on that is
        # neither 127.x nor a wildcard (0.0.0.0 or ::): such an address belongs to one machine.
        return self.host == other.host and not self._is_wildcard and not self.host.startswith("127.")

    @property
    def _is_wildcard(self) -> bool:
        return self.host in _WILDCARD_HOSTS


def _check_ports(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    by_port: dict[int, list[_Bind]] = defaultdict(list)
    for bind in _binds(topology):
        if not declared.is_certain(*bind.relies_on):
            continue
        first = next((other for other in by_port[bind.port] if bind.conflicts_with(other)), None)
        by_port[bind.port].append(bind)
        if first:
            yield Problem(
                (*bind.path, "port"),
                "AM203",
                f"{bind.owner}: {bind.host}:{bind.port} is in use already, by {first.owner}",
                hint=_free_port(bind.port, topology),
            )


def _binds(topology: Topology) -> Iterator[_Bind]:
    for name, router in topology.routers.items():
        path: Path = ("routers", name)
        machine, owner = _machine(router.host), f"router {name!r}"
        yield _Bind(path, owner, machine, machine, router.port, ((*path, "host"), (*path, "port")))
        for i, listener in enumerate(router.listeners):
            yield _listener_bind((*path, "listeners", i), f"listener {i + 1} of {owner}", machine, listener)
    for name, broker in topology.brokers.items():
        path = ("brokers", name)
        if broker.is_embedded and broker.url is None:
            machine = _machine(broker.host)
            relies_on = ((*path, "host"), (*path, "port"))
            yield _Bind(path, f"broker {name!r}", machine, machine, broker.port, relies_on)
    if topology.watch.port is not None:
        yield _Bind(("watch",), "the observer", _OBSERVER_HOST, _OBSERVER_HOST, topology.watch.port, ())


def _listener_bind(path: Path, owner: str, machine: str, listener: Listener) -> _Bind:
    # Whether the port is certain depends on `tls`, too: a listener without a port gets 5672, or with TLS 5671.
    relies_on = ((*path, "host"), (*path, "port"), (*path, "tls"), (*path[:2], "host"))
    return _Bind(path, owner, machine, _machine(listener.host), listener.port, relies_on)


def _machine(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def _free_port(port: int, topology: Topology) -> str:
    taken = {bind.port for bind in _binds(topology)}
    free = next((candidate for candidate in range(port + 1, 65_536) if candidate not in taken), None)
    return f"ports that this mesh does not use: {free}" if free else ""


def _check_listeners(topology: Topology) -> Iterator[Problem]:
    for name, router in topology.routers.items():
        for i, listener in enumerate(router.listeners):
            path: Path = ("routers", name, "listeners", i)
            if listener.tls:
                subject = f"listener {i + 1} of router {name!r}"
                yield from _check_pair((*path, "tls"), subject, listener.tls.cert, listener.tls.key)


def _check_authentication(topology: Topology) -> Iterator[Problem]:
    for name, router in topology.routers.items():
        for i, listener in enumerate(router.listeners):
            is_required = listener.authentication is Authentication.REQUIRED
            if is_required and not topology.users and not listener.tls:
                path: Path = ("routers", name, "listeners", i)
                yield Problem(
                    (*path, "authentication"),
                    "AM503",
                    f"listener {i + 1} of router {name!r} requires authentication, but there are no users and no TLS",
                    relies_on=(("users",), (*path, "tls")),
                )


def _check_pair(path: Path, subject: str, cert: object, key: object) -> Iterator[Problem]:
    if (cert is None) != (key is None):
        given, missing = ("cert", "key") if key is None else ("key", "cert")
        yield Problem((*path, given), "AM504", f"{subject}: {given!r} without {missing!r}", at_key=True)


def _check_brokers(topology: Topology, declared: DeclaredNames) -> Iterator[Problem]:
    folders: dict[object, str] = {}
    for name, broker in topology.brokers.items():
        path: Path = ("brokers", name)
        yield from _check_kind_of_broker(path, name, broker)
        if broker.url is not None:
            yield from _check_pair((*path, "tls"), f"broker {name!r}", broker.tls.cert, broker.tls.key)
        for i, router in enumerate(broker.routers):
            yield from unknown(
                "router", (*path, "routers", i), router, declared.routers, f"broker {name!r}: attached to"
            )
            if router in topology.edge_routers:
                message = f"broker {name!r}: attached to edge router {router!r}"
                yield Problem((*path, "routers", i), "AM208", message, relies_on=(("routers", router, "mode"),))
        if broker.data is not None:
            first = folders.setdefault(topology.locate(broker.data), name)
            if first != name:
                message = f"broker {name!r}: the folder {str(broker.data)!r} belongs to broker {first!r}"
                yield Problem((*path, "data"), "AM304", message)
    if topology.default_broker is not None:
        known = declared.brokers
        yield from unknown("broker", ("default_broker",), topology.default_broker, known, "default_broker:")


def _check_kind_of_broker(path: Path, name: str, broker: Broker) -> Iterator[Problem]:
    if (broker.data is None) == (broker.url is None):
        which = "neither 'data' nor 'url'" if broker.data is None else "both 'data' and 'url'"
        hint = "data: ./data/NAME for an embedded broker, url: amqp://host:port for an existing one"
        yield Problem(path, "AM301", f"broker {name!r} has {which}", hint=hint, at_key=True, relies_on=(path,))
        return
    foreign, kind = (_EXISTING_ONLY, "embedded") if broker.is_embedded else (_EMBEDDED_ONLY, "existing")
    for key in foreign:
        if key in broker.model_fields_set:
            yield Problem((*path, key), "AM303", f"{key!r} is not valid for an {kind} broker", at_key=True)


def _check_users(topology: Topology) -> Iterator[Problem]:
    anonymous = topology.users.get(ANONYMOUS)
    if anonymous and anonymous.password is not None:
        yield Problem(("users", ANONYMOUS, "password"), "AM502", "user 'anonymous' cannot have a password", at_key=True)


def check_reach(topology: Topology) -> Iterator[Problem]:
    """Yield one warning if some interior routers of the valid ``topology`` have no path of connections to others."""
    parts = _parts(topology)
    if len(parts) < 2:
        return
    first, second = parts[0], parts[1]
    yield Problem(
        ("routers", second[0]),
        "AM204",
        f"no connection leads from {', '.join(second)} to {', '.join(first)}",
        fix=f"connect the parts, for example: {second[0]}: {{connect: [{first[0]}]}}",
        at_key=True,
        severity="warning",
    )


def _parts(topology: Topology) -> list[list[str]]:
    """Return the interior routers in groups that reach each other over connections, in the order of the file.

    Edge routers are left out, since they pass nothing on between interior routers.
    """
    neighbors: dict[str, set[str]] = {name: set() for name in topology.interior_routers}
    for edge in topology.edges():
        if edge.to in neighbors and edge.dialer in neighbors:
            neighbors[edge.dialer].add(edge.to)
            neighbors[edge.to].add(edge.dialer)
    parts: list[list[str]] = []
    reached: set[str] = set()
    for name in neighbors:
        if name not in reached:
            part = _reachable(name, neighbors)
            reached |= part
            parts.append([other for other in neighbors if other in part])
    return parts


def _reachable(start: str, neighbors: dict[str, set[str]]) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        fresh = neighbors[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached
