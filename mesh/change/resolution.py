"""Resolves a topology: every node, connection, listener, address and user with all its values, defaults included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from addressing.book import AddressBook, AddressPolicy
from addressing.coverage import covers
from addressing.names import ANONYMOUS
from addressing.pattern import PatternMap, for_user, is_pattern
from addressing.queue_policy import (
    DEFAULT_MAX_QUEUES,
    DEFAULT_MAX_QUEUES_PER_USER,
    DEFAULT_QUEUE_EXPIRY_S,
)
from mesh.change.resource import ResolvedTopology, Resource, ResourceKind
from mesh.change.written_values import written_values

if TYPE_CHECKING:
    from addressing.topology.broker_settings import Broker
    from addressing.topology.model import Connection, DeclaredAddress, Listener, Topology, User
    from mesh.change.source import TopologySource

EVERY_ADDRESS: Final = ("#",)
LISTENER_LIMITS: Final = (
    "max_connections",
    "max_links",
    "max_frame_bytes",
    "max_message_bytes",
    "idle_timeout_s",
    "sender_stall_timeout_s",
    "handshake_timeout_s",
    "link_capacity",
)
BROKER_KEYS: Final = ("address_prefix", "hostname", "subscriptions", "share_connections")
BROKER_TLS_KEYS: Final = ("ca", "cert", "key", "verify_hostname")
USER_RIGHTS: Final = ("send", "receive", "view", "browse", "manage")


def resolve(source: TopologySource, names: Iterable[str] = ()) -> ResolvedTopology:
    """Return all resources of a topology.

    ``names``: further addresses and patterns to resolve, such as those that are in use, are stored in brokers, or are
    declared in another version of the file; an address without a policy is no resource.
    """
    found = [
        *_settings(source),
        *_routers(source),
        *_brokers(source),
        *_connections(source),
        *_attachments(source),
        *_addresses(source, names),
        *_users(source),
    ]
    return ResolvedTopology({each.key: each for each in found})


def _settings(source: TopologySource) -> Iterator[Resource]:
    topology = source.topology
    names = ("mesh", "node_tls", "hello_interval_s", "hello_max_age_s")
    values = {name: getattr(topology, name) for name in names}
    values["subscription_broker"] = topology.subscription_broker
    yield _section(source, "mesh", values, ())
    logs = topology.link_logs
    recorded = {
        "records": topology.is_recorded,
        **_scalars(logs, "level", "keep", "keep_s", "keep_bytes", "ring_bytes"),
    }
    recorded["folder"] = _text(logs.folder)
    recorded["redact_key"] = _text(logs.redact.key) if logs.redact else None
    recorded["redact_columns"] = tuple(logs.redact.columns) if logs.redact else ()
    yield _section(source, "link_logs", recorded, ("link_logs",))
    for name, keys in (
        ("metrics", ("detail", "off")),
        ("watch", ("mode", "port")),
        ("logs", ("max_bytes", "max_age_s", "keep")),
    ):
        yield _section(source, name, _scalars(getattr(topology, name), *keys), (name,))


def _section(source: TopologySource, name: str, values: dict[str, Any], path: tuple[str, ...]) -> Resource:
    written = written_values(source, ResourceKind.SETTINGS, values, path)
    return Resource(ResourceKind.SETTINGS, name, values, line=source.line(name), written=written)


def _scalars(part: Any, *keys: str) -> dict[str, Any]:
    return {key: _scalar(getattr(part, key)) for key in keys}


def _scalar(value: Any) -> Any:
    """Return a value without classes of the model: an enumeration's member as its word, a path as text."""
    if isinstance(value, Path):
        return str(value)
    return getattr(value, "value", value)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _routers(source: TopologySource) -> Iterator[Resource]:
    for name, router in source.topology.routers.items():
        values = {"mode": router.mode.value, "host": router.host, "port": source.port_of(name)}
        yield _placed(source, ResourceKind.ROUTER, name, values, (name,), ("routers", name))
        for i, listener in enumerate(router.listeners):
            yield _listener(source, name, listener, ("routers", name, "listeners", i))


def _placed(
    source: TopologySource,
    kind: ResourceKind,
    name: str,
    values: dict[str, Any],
    nodes: tuple[str, ...],
    path: tuple[str | int, ...],
) -> Resource:
    """Return the resource that the file declares at ``path``."""
    return Resource(kind, name, values, nodes, source.line(*path), written_values(source, kind, values, path))


def _listener(source: TopologySource, router: str, listener: Listener, path: tuple[str | int, ...]) -> Resource:
    tls = listener.tls
    values: dict[str, Any] = {"tls": tls is not None}
    values |= {key: _text(getattr(tls, key)) if tls is not None else None for key in ("cert", "key", "ca")}
    values["authentication"] = listener.authentication.value
    values |= _scalars(listener, *LISTENER_LIMITS)
    name = f"{router} {endpoint(listener.host, listener.port)}"
    return _placed(source, ResourceKind.LISTENER, name, values, (router,), path)


def endpoint(host: str, port: int) -> str:
    """Return host and port as one text, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _brokers(source: TopologySource) -> Iterator[Resource]:
    for name, broker in source.topology.brokers.items():
        values = _embedded(source, name, broker) if broker.is_embedded else _existing(broker)
        yield _placed(source, ResourceKind.BROKER, name, values, (name,), ("brokers", name))


def _embedded(source: TopologySource, name: str, broker: Broker) -> dict[str, Any]:
    assert broker.data is not None
    return {
        "is_embedded": True,
        "data": str(source.topology.locate(broker.data)),
        "host": broker.host,
        "port": source.port_of(name),
        "disk_free_min_bytes": broker.disk_free_min_bytes,
    }


def _existing(broker: Broker) -> dict[str, Any]:
    values = {"is_embedded": False, "url": broker.url, **_scalars(broker, *BROKER_KEYS)}
    return values | {f"tls_{key}": _scalar(getattr(broker.tls, key)) for key in BROKER_TLS_KEYS}


def _connections(source: TopologySource) -> Iterator[Resource]:
    for name, router in source.topology.routers.items():
        for i, connection in enumerate(router.connect):
            yield _connection(source, name, connection, ("routers", name, "connect", i))


def _connection(source: TopologySource, dialer: str, connection: Connection, path: tuple[str | int, ...]) -> Resource:
    to = connection.to
    values = {
        "dialer": dialer,
        "cost": connection.cost,
        "host": connection.host or source.topology.routers[to].host,
        "port": connection.port or source.port_of(to),
    }
    ends = tuple(sorted((dialer, to)))
    return _placed(source, ResourceKind.CONNECTION, " - ".join(ends), values, ends, path)


def _attachments(source: TopologySource) -> Iterator[Resource]:
    topology = source.topology
    for name, broker in topology.brokers.items():
        url = broker.location
        host, port = (url.host, url.port) if url is not None else (broker.host, source.port_of(name))
        for router in topology.routers_of(name):
            yield Resource(
                ResourceKind.ATTACHMENT,
                f"{router} - {name}",
                {"host": host, "port": port},
                (router, name),
                source.line("brokers", name),
            )


def _users(source: TopologySource) -> Iterator[Resource]:
    users = source.topology.users
    for name, user in users.items():
        yield _placed(source, ResourceKind.USER, name, _rights(name, user), (), ("users", name))
    if not users:
        # In a mesh without users, every client counts as anonymous, and may do all but change the mesh.
        rights = {right: () if right == "manage" else EVERY_ADDRESS for right in USER_RIGHTS}
        values = {"password": None, **rights, "max_connections": None}
        yield Resource(ResourceKind.USER, ANONYMOUS, values, written=frozenset())


def _rights(name: str, user: User) -> dict[str, Any]:
    rights = {
        right: tuple(dict.fromkeys(for_user(pattern, name) for pattern in getattr(user, right)))
        for right in USER_RIGHTS
    }
    return {"password": user.password, **rights, "max_connections": user.max_connections}


def _addresses(source: TopologySource, names: Iterable[str]) -> Iterator[Resource]:
    topology = source.topology
    book = AddressBook(topology)
    for name in dict.fromkeys((*topology.addresses, *names)):
        policy = _policy(topology, book, name)
        if policy is not None and not policy.is_internal:
            entry = topology.addresses[policy.pattern]
            values = _address_values(book, name, policy, entry)
            path = ("addresses", policy.pattern)
            line, written = source.line(*path), written_values(source, ResourceKind.ADDRESS, values, path)
            yield Resource(ResourceKind.ADDRESS, name, values, line=line, written=written)


def _policy(topology: Topology, book: AddressBook, name: str) -> AddressPolicy | None:
    """Return the policy of an address or pattern; of a pattern that is not declared, that of the best one around it."""
    if name in topology.addresses or not is_pattern(name):
        policy = book.resolve(name)
        return policy if policy is not None and policy.pattern in topology.addresses else None
    around = PatternMap({each: each for each in topology.addresses if is_pattern(each) and covers(each, name)})
    found = around.find(name)
    return book.resolve(found) if found is not None else None


def _address_values(book: AddressBook, name: str, policy: AddressPolicy, entry: DeclaredAddress) -> dict[str, Any]:
    kind, queue = policy.kind, policy.queue
    is_limited = kind.has_queues and is_pattern(policy.pattern)
    is_limited = is_limited and (is_pattern(name) or book.pattern_policy(name) is not None)
    at_brokers = () if is_pattern(name) else tuple(policy.at_broker(broker) for broker in policy.brokers)
    expiry_s = policy.subscription_expiry_s
    return {
        "type": kind.value,
        "distribution": policy.distribution.value if kind.is_distributed else None,
        "spill": policy.spill,
        "brokers": policy.brokers,
        "names_at_brokers": at_brokers,
        "prefixes": policy.address_prefixes,
        "fallback": policy.fallback.text if policy.fallback is not None else None,
        "priority": policy.priority,
        "dead_letter": queue.dead_letter.text if queue.dead_letter is not None else None,
        "max_delivery_attempts": queue.max_delivery_attempts or None,
        "expiry": queue.expiry.text if queue.expiry is not None else None,
        "max_messages": queue.max_messages or None,
        "max_bytes": queue.max_bytes or None,
        "when_full": queue.when_full.value if kind.is_stored else None,
        "max_queues": entry.max_queues or DEFAULT_MAX_QUEUES if is_limited else None,
        "max_queues_per_user": entry.max_queues_per_user or DEFAULT_MAX_QUEUES_PER_USER if is_limited else None,
        "queue_expiry_s": entry.queue_expiry_s or DEFAULT_QUEUE_EXPIRY_S if is_limited else None,
        "retransmit": policy.retransmit,
        "link_log": policy.link_log.value if policy.link_log is not None else None,
        "subscription_expiry_s": None if expiry_s == inf else expiry_s,
        "fill_to": policy.fills_to,
        "shares_links": policy.shared is not None,
        "declared_by": policy.pattern,
    }


FIELD_KEYS: Final[dict[tuple[ResourceKind, str], tuple[str, str]]] = {
    **{
        (ResourceKind.SETTINGS, f"mesh.{key}"): ("Topology", key)
        for key in ("mesh", "node_tls", "hello_interval_s", "hello_max_age_s")
    },
    (ResourceKind.SETTINGS, "mesh.subscription_broker"): ("Topology", "default_broker"),
    (ResourceKind.SETTINGS, "link_logs.records"): ("LinkLogs", "level"),
    **{
        (ResourceKind.SETTINGS, f"link_logs.{key}"): ("LinkLogs", key)
        for key in ("level", "keep", "keep_s", "keep_bytes", "ring_bytes", "folder")
    },
    (ResourceKind.SETTINGS, "link_logs.redact_key"): ("Redaction", "key"),
    (ResourceKind.SETTINGS, "link_logs.redact_columns"): ("Redaction", "columns"),
    **{(ResourceKind.SETTINGS, f"metrics.{key}"): ("Metrics", key) for key in ("detail", "off")},
    **{(ResourceKind.SETTINGS, f"watch.{key}"): ("Watch", key) for key in ("mode", "port")},
    **{(ResourceKind.SETTINGS, f"logs.{key}"): ("Logs", key) for key in ("max_bytes", "max_age_s", "keep")},
    **{(ResourceKind.ROUTER, key): ("Router", key) for key in ("mode", "host", "port")},
    (ResourceKind.BROKER, "is_embedded"): ("Broker", "data"),
    **{(ResourceKind.BROKER, key): ("Broker", key) for key in ("data", "host", "port", "disk_free_min_bytes", "url")},
    **{(ResourceKind.BROKER, key): ("Broker", key) for key in BROKER_KEYS},
    **{(ResourceKind.BROKER, f"tls_{key}"): ("BrokerTls", key) for key in BROKER_TLS_KEYS},
    (ResourceKind.CONNECTION, "dialer"): ("Connection", "to"),
    **{(ResourceKind.CONNECTION, key): ("Connection", key) for key in ("cost", "host", "port")},
    **{(ResourceKind.ATTACHMENT, key): ("Broker", "routers") for key in ("host", "port")},
    (ResourceKind.LISTENER, "tls"): ("Listener", "tls"),
    **{(ResourceKind.LISTENER, key): ("ListenerTls", key) for key in ("cert", "key", "ca")},
    **{(ResourceKind.LISTENER, key): ("Listener", key) for key in ("authentication", *LISTENER_LIMITS)},
    **{
        (ResourceKind.ADDRESS, key): ("DeclaredAddress", key)
        for key in (
            *("type", "distribution", "spill", "brokers", "fallback", "priority", "dead_letter", "expiry"),
            *("max_delivery_attempts", "max_messages", "max_bytes", "when_full", "max_queues", "max_queues_per_user"),
            *("queue_expiry_s", "retransmit", "link_log", "subscription_expiry_s", "fill_to"),
        )
    },
    (ResourceKind.ADDRESS, "names_at_brokers"): ("DeclaredAddress", "broker_address"),
    (ResourceKind.ADDRESS, "prefixes"): ("Broker", "address_prefix"),
    (ResourceKind.ADDRESS, "shares_links"): ("Topology", "addresses"),
    (ResourceKind.ADDRESS, "declared_by"): ("Topology", "addresses"),
    **{(ResourceKind.USER, key): ("User", key) for key in ("password", *USER_RIGHTS, "max_connections")},
}
"""By kind and value of a resource, the key of the model whose class is the least that a change of the value takes.

Values of settings have the name of their section in front.
"""


def field_key(kind: ResourceKind, name: str, value: str) -> tuple[str, str]:
    """Return the model's class and the key for the value ``value`` of the resource ``name``."""
    return FIELD_KEYS[kind, f"{name}.{value}" if kind is ResourceKind.SETTINGS else value]
