"""The change class of each key of a topology file: the least that a change of the key takes.

The class of a step belongs to the effect of the whole change (`mesh.change.effects`), and may be larger: the first user
turns every listener to `authentication: required`, for instance. docs/reference/changes.md is made from this table, and
a test fails for a key of the model without a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mesh.change.change_class import ChangeClass

_LIVE, _REMADE, _TOLD = ChangeClass.LIVE, ChangeClass.REMADE, ChangeClass.TOLD
_MOVED, _RESTARTED, _REFUSED = ChangeClass.MOVED, ChangeClass.RESTARTED, ChangeClass.REFUSED


@dataclass(frozen=True, slots=True)
class KeyClass:
    """The least class of a change of one key, what clients notice, and how the change is carried out."""

    change_class: ChangeClass
    notice: str
    execution: str


def _row(change_class: ChangeClass, notice: str, execution: str) -> KeyClass:
    return KeyClass(change_class, notice, execution)


_NOTHING: Final = "nothing"
_BOOK: Final = "each node swaps its address book"
_RIGHTS: Final = "each router swaps its permissions"
_OBSERVER: Final = "the observer is started again; nodes go on"
_WRITER: Final = "the writer of link logs is started again; nodes go on"
_NEW_CONNECTIONS: Final = "holds for connections that open later"
_LOWERED: Final = "nothing if raised; if lowered, what is beyond the limit ends"
_BROKER_CONNECTIONS: Final = "a pause while routers connect to the broker again"
_AGAIN: Final = "routers make new connections to the broker first, then close the old ones"
_DIALED: Final = "the new connection is made first, then the old one is closed"
_CERTIFICATE: Final = "connections of the listener end; clients connect again"
_RELISTEN: Final = "the router drains the connections of the listener, and listens anew"
_RESTART: Final = "clients of the node connect again"
_ONE_BY_ONE: Final = "the node is emptied, restarted and proved ready before the next one"
_ROWS: Final = "each node swaps its policies"
_QUEUE_POLICY: Final = "the broker swaps the policy of the queue"
_REROUTE: Final = "a pause while links find their new way"
_HAND_OVER: Final = "messages are handed over to the new broker, and counted at both"

KEY_CLASSES: Final[dict[tuple[str, str], KeyClass]] = {
    ("Topology", "mesh"): _row(_REFUSED, "every connection and subscription has the name", "start a new mesh"),
    ("Topology", "node_tls"): _row(_RESTARTED, "clients of every router connect again", _ONE_BY_ONE),
    ("Topology", "hello_interval_s"): _row(_LIVE, _NOTHING, "each router swaps its timers"),
    ("Topology", "hello_max_age_s"): _row(_LIVE, _NOTHING, "each router swaps its timers"),
    ("Topology", "routers"): _row(_LIVE, "nothing if added; if removed, its clients are told", "new nodes start first"),
    ("Topology", "brokers"): _row(_LIVE, "nothing if added; if removed, its messages move", "new nodes start first"),
    ("Topology", "addresses"): _row(_LIVE, "nothing if added; if removed, links end", _BOOK),
    ("Topology", "users"): _row(_LIVE, "nothing if added, except for the first; if removed, links end", _RIGHTS),
    ("Topology", "default_broker"): _row(_LIVE, "nothing, unless a queue or topic names no broker", _BOOK),
    ("Topology", "link_logs"): _row(_LIVE, _NOTHING, _ROWS),
    ("Topology", "metrics"): _row(_LIVE, _NOTHING, "the observer swaps its patterns"),
    ("Topology", "watch"): _row(_LIVE, _NOTHING, _OBSERVER),
    ("Topology", "logs"): _row(_LIVE, _NOTHING, "each node swaps the limits of its log"),
    ("Router", "mode"): _row(_RESTARTED, _RESTART, _ONE_BY_ONE),
    ("Router", "host"): _row(_RESTARTED, _RESTART, _ONE_BY_ONE),
    ("Router", "port"): _row(_RESTARTED, _RESTART, _ONE_BY_ONE),
    ("Router", "listeners"): _row(_LIVE, "nothing if added; if removed, its clients are told", "the router listens"),
    ("Router", "connect"): _row(_LIVE, "nothing if added; if removed, a pause", _DIALED),
    ("Listener", "host"): _row(_TOLD, _CERTIFICATE, _RELISTEN),
    ("Listener", "port"): _row(_TOLD, _CERTIFICATE, _RELISTEN),
    ("Listener", "tls"): _row(_TOLD, _CERTIFICATE, _RELISTEN),
    ("Listener", "authentication"): _row(
        _LIVE, "nothing if loosened; if tightened, clients without a login are told", _NEW_CONNECTIONS
    ),
    ("Listener", "max_connections"): _row(_LIVE, _LOWERED, "the router swaps the limits of the listener"),
    ("Listener", "max_links"): _row(_LIVE, _LOWERED, "the router swaps the limits of the listener"),
    ("Listener", "max_frame_bytes"): _row(_LIVE, _LOWERED, _NEW_CONNECTIONS),
    ("Listener", "max_message_bytes"): _row(_LIVE, _LOWERED, _NEW_CONNECTIONS),
    ("Listener", "idle_timeout_s"): _row(_LIVE, _NOTHING, _NEW_CONNECTIONS),
    ("Listener", "sender_stall_timeout_s"): _row(_LIVE, _NOTHING, _NEW_CONNECTIONS),
    ("Listener", "handshake_timeout_s"): _row(_LIVE, _NOTHING, _NEW_CONNECTIONS),
    ("Listener", "link_capacity"): _row(_LIVE, _NOTHING, "holds for links that attach later"),
    ("ListenerTls", "cert"): _row(_LIVE, _NOTHING, "holds for handshakes that begin later"),
    ("ListenerTls", "key"): _row(_LIVE, _NOTHING, "holds for handshakes that begin later"),
    ("ListenerTls", "ca"): _row(_LIVE, _NOTHING, "holds for handshakes that begin later"),
    ("Connection", "to"): _row(_LIVE, "nothing if added; if removed, a pause", _DIALED),
    ("Connection", "cost"): _row(_LIVE, _NOTHING, "both routers advertise the new cost"),
    ("Connection", "host"): _row(_REMADE, _REROUTE, _DIALED),
    ("Connection", "port"): _row(_REMADE, _REROUTE, _DIALED),
    ("Broker", "data"): _row(
        _RESTARTED, "a pause of the queues of the broker", "the store moves while the broker is down"
    ),
    ("Broker", "host"): _row(_RESTARTED, "a pause of the queues of the broker", _ONE_BY_ONE),
    ("Broker", "port"): _row(_RESTARTED, "a pause of the queues of the broker", _ONE_BY_ONE),
    ("Broker", "disk_free_min_bytes"): _row(_LIVE, _NOTHING, "the broker swaps the limit"),
    ("Broker", "url"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("Broker", "routers"): _row(_LIVE, "nothing if added; if removed, a pause", _AGAIN),
    ("Broker", "address_prefix"): _row(_MOVED, "another queue at the broker", _HAND_OVER),
    ("Broker", "hostname"): _row(_REMADE, "messages of the virtual host of before are no longer found", _AGAIN),
    ("Broker", "subscriptions"): _row(_REMADE, "subscriptions by their old names are no longer found", _AGAIN),
    ("Broker", "share_connections"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("Broker", "tls"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("BrokerTls", "ca"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("BrokerTls", "cert"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("BrokerTls", "key"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("BrokerTls", "verify_hostname"): _row(_REMADE, _BROKER_CONNECTIONS, _AGAIN),
    ("DeclaredAddress", "type"): _row(
        _LIVE, "nothing from unavailable; between anycast and multicast a pause; else links end or messages move", _BOOK
    ),
    ("DeclaredAddress", "distribution"): _row(_LIVE, _NOTHING, _BOOK),
    ("DeclaredAddress", "spill"): _row(_LIVE, _NOTHING, _BOOK),
    ("DeclaredAddress", "broker"): _row(_MOVED, "nothing, while messages move", _HAND_OVER),
    ("DeclaredAddress", "brokers"): _row(_MOVED, "nothing, while messages move", _HAND_OVER),
    ("DeclaredAddress", "broker_address"): _row(_MOVED, "nothing, while messages move", _HAND_OVER),
    ("DeclaredAddress", "fallback"): _row(_LIVE, _NOTHING, _BOOK),
    ("DeclaredAddress", "priority"): _row(_LIVE, _NOTHING, _BOOK),
    ("DeclaredAddress", "dead_letter"): _row(_LIVE, _NOTHING, _QUEUE_POLICY),
    ("DeclaredAddress", "max_delivery_attempts"): _row(_LIVE, _NOTHING, _QUEUE_POLICY),
    ("DeclaredAddress", "expiry"): _row(_LIVE, _NOTHING, _QUEUE_POLICY),
    ("DeclaredAddress", "max_messages"): _row(
        _LIVE, "nothing if raised; if lowered, producers wait or messages go", _QUEUE_POLICY
    ),
    ("DeclaredAddress", "max_bytes"): _row(
        _LIVE, "nothing if raised; if lowered, producers wait or messages go", _QUEUE_POLICY
    ),
    ("DeclaredAddress", "when_full"): _row(_LIVE, _NOTHING, _QUEUE_POLICY),
    ("DeclaredAddress", "max_queues"): _row(_LIVE, "nothing; queues that are there stay", _QUEUE_POLICY),
    ("DeclaredAddress", "max_queues_per_user"): _row(_LIVE, "nothing; queues that are there stay", _QUEUE_POLICY),
    ("DeclaredAddress", "queue_expiry_s"): _row(_LIVE, "nothing; only empty queues expire", _QUEUE_POLICY),
    ("DeclaredAddress", "retransmit"): _row(_LIVE, _NOTHING, _BOOK),
    ("DeclaredAddress", "link_log"): _row(_LIVE, _NOTHING, _ROWS),
    ("DeclaredAddress", "subscription_expiry_s"): _row(
        _LIVE, "nothing if longer; if shorter, subscriptions without a consumer may end", _QUEUE_POLICY
    ),
    ("DeclaredAddress", "fill_to"): _row(_LIVE, _NOTHING, _BOOK),
    ("User", "password"): _row(_LIVE, _NOTHING, "holds for logins from then on"),
    ("User", "send"): _row(_LIVE, "nothing if widened; if narrowed, links end", _RIGHTS),
    ("User", "receive"): _row(_LIVE, "nothing if widened; if narrowed, links end", _RIGHTS),
    ("User", "view"): _row(_LIVE, "nothing; holds for the next request", _RIGHTS),
    ("User", "browse"): _row(_LIVE, "nothing; holds for the next request", _RIGHTS),
    ("User", "manage"): _row(_LIVE, "nothing; holds for the next request", _RIGHTS),
    ("User", "max_connections"): _row(_LIVE, _LOWERED, _RIGHTS),
    ("LinkLogs", "level"): _row(_LIVE, "nothing, unless nodes begin or cease to record", _ROWS),
    ("LinkLogs", "keep"): _row(_LIVE, _NOTHING, "the writer of link logs starts or ends"),
    ("LinkLogs", "folder"): _row(_LIVE, _NOTHING, _WRITER),
    ("LinkLogs", "keep_s"): _row(_LIVE, _NOTHING, _WRITER),
    ("LinkLogs", "keep_bytes"): _row(_LIVE, _NOTHING, _WRITER),
    ("LinkLogs", "redact"): _row(_LIVE, _NOTHING, _WRITER),
    ("LinkLogs", "ring_bytes"): _row(_RESTARTED, _RESTART, _ONE_BY_ONE),
    ("Redaction", "key"): _row(_LIVE, _NOTHING, _WRITER),
    ("Redaction", "columns"): _row(_LIVE, _NOTHING, _WRITER),
    ("Metrics", "detail"): _row(_LIVE, _NOTHING, "the observer swaps its patterns"),
    ("Metrics", "off"): _row(_LIVE, _NOTHING, "the observer swaps its patterns"),
    ("Watch", "mode"): _row(_LIVE, _NOTHING, "the observer starts or ends; nodes go on"),
    ("Watch", "port"): _row(_LIVE, _NOTHING, _OBSERVER),
    ("Logs", "max_bytes"): _row(_LIVE, _NOTHING, "each node swaps the limits of its log"),
    ("Logs", "max_age_s"): _row(_LIVE, _NOTHING, "each node swaps the limits of its log"),
    ("Logs", "keep"): _row(_LIVE, _NOTHING, "each node swaps the limits of its log"),
}
"""By the name of the model's class and the key."""
