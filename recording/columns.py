"""Columns, words and latency buckets of a link log record: one definition for the writer and for all readers.

A file is Parquet, a record is a row. The kind of a record decides which columns have a value; all other columns are
null. Files lie in ``node=<name>/hour=<yyyy-mm-ddThh>/``, by the UTC hour in which the file was begun. Each file opens
with a snapshot: records with event `live` for the node and each connection, link, neighbor, path and queue there was
then. Units: ``_us`` microseconds, ``_bytes`` octets; times are UTC, since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SCHEMA_VERSION: Final = 1
"""Version of the link log files, raised when older readers would misread new files; not raised for a new column."""

VERSION_KEY: Final = "amqpmesh.link-log"
"""Metadata key of a link log file for the schema version; NODE_KEY, RUN_KEY and MESH_KEY for node, run and mesh."""
NODE_KEY: Final = "amqpmesh.node"
RUN_KEY: Final = "amqpmesh.run"
MESH_KEY: Final = "amqpmesh.mesh"
DROPPED_KEY: Final = "amqpmesh.dropped"
"""Metadata key: number of records that the node lost for want of room in its ring, from its start to this file."""
REPLACES_KEY: Final = "amqpmesh.replaces"
"""Metadata key: JSON list of files in the same directory that this file replaces; readers ignore the listed files."""


class RecordKind(StrEnum):
    """Kind of a link log record: the subject that the record describes, such as a connection or a delivery."""

    NODE = "node"
    """The node: start, clock, load, lost records, end. A killed node leaves no record of its end."""
    CONNECTION = "connection"
    LINK = "link"
    DELIVERY = "delivery"
    """At level full: one record per delivery, written when the delivery is settled."""
    TRAFFIC = "traffic"
    """At level summary: one record for all deliveries of a second with equal links, outcome, part, latency bucket."""
    CREDIT = "credit"
    """Credit of a link: credit and unsettled deliveries now, time without credit, drains asked for by the receiver."""
    DROP = "drop"
    """Pre-settled messages, or copies of pre-settled messages, that were dropped."""
    NEIGHBOR = "neighbor"
    """A neighbor in the link state of a router, as the router itself sees the neighbor."""
    PATH = "path"
    """The cheapest path from a router to another router."""
    QUEUE = "queue"
    """Depth of a queue or subscription, and the age of the oldest message."""
    MESSAGE = "message"
    """Messages that entered or left a queue."""


class RecordEvent(StrEnum):
    """Event that happened to the subject of a link log record: it opened, closed, changed, ..."""

    LIVE = "live"
    """The subject existed when the file was begun, or a reader asked for a list, or began when the ring was full."""
    LISTED = "listed"
    """The node wrote a list of all that there is, for a reader that asked: ``count`` records with event `live`."""
    OPENED = "opened"
    """A connection opened, a link was attached, a queue was made, a neighbor came up, or a node started."""
    CLOSED = "closed"
    CHANGED = "changed"
    """A cost, path, credit or queue depth changed, a clock was set, or 10 s have passed, for the load of a node."""
    DRAIN = "drain"
    """The receiver of an outgoing link asked ``count`` times for a drain: waiting messages, then the credit back."""
    LOST = "lost"
    """The node lost ``count`` records for want of room in its ring."""
    ENQUEUED = "enqueued"
    DEQUEUED = "dequeued"
    """The message left its queue for a consumer, and was settled."""
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"
    """The message moved to the dead-letter queue: no consumer accepted the message, or its queue had no room."""
    REMOVED = "removed"
    """The message left for another reason: refused where there is no such queue, dropped, purged, moved, queue gone."""


class RecordOutcome(StrEnum):
    """Outcome of a delivery in a link log record: an outcome of AMQP [3.4], or how the delivery ended without one."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"
    NONE = "none"
    """The delivery was sent settled, or was settled without a state."""
    ABORTED = "aborted"
    SENDER_LOST = "sender_lost"


class DeliveryPart(StrEnum):
    """Part of a delivery's way through the node that a record covers: the whole way, or one end of a multicast.

    Records of WHOLE and MANY add up to the arrivals at the node, records of WHOLE and COPY to the departures.
    """

    WHOLE = "whole"
    MANY = "many"
    """A multicast delivery as it arrived from the sender; its copies have records of their own."""
    COPY = "copy"
    """The copy of a multicast delivery for one taker (outgoing link)."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the link log files. ``type`` is `string` or `int64`.

    The column has values in records of the ``kinds``, and in records of all kinds if ``kinds`` is empty.
    """

    name: str
    type: str
    meaning: str
    kinds: tuple[RecordKind, ...] = ()


STOPPED: Final = "stopped"
"""Cause in the record of a node's end: the node was asked to stop. FAILED: an error ended the node, yet in order."""
FAILED: Final = "failed"


STILL_S: Final = 10
"""A link stands still after so many seconds without a delivery; Qpid Dispatch calls deliveries stuck after as long."""

_MOVED = (RecordKind.DELIVERY, RecordKind.TRAFFIC)
_COUNTED = (*_MOVED, RecordKind.MESSAGE)

COLUMNS: Final = (
    Column("kind", "string", "subject of the record"),
    Column("event", "string", "event that happened to the subject; null for `delivery`, `traffic`, `drop`"),
    Column("at_us", "int64", "time of the record: a `delivery`'s settlement, the end of the second of a `traffic` "
           "record"),
    Column("run", "int64", "start time of the node; numbers of connections, links and queues are unique within one "
           "run"),
    Column("incoming", "int64", "link on which the delivery arrived; 0 for none", _MOVED),
    Column("outgoing", "int64", "link on which the delivery left; 0 if no taker had it", _MOVED),
    Column("outcome", "string", "outcome of the delivery", _MOVED),
    Column("part", "string", "part of the delivery's way through the node: the whole way, or a part of a multicast",
           _MOVED),
    Column("count", "int64", "number of deliveries, messages, copies, drains or records; 1 in a `delivery`",
           (*_COUNTED, RecordKind.CREDIT, RecordKind.DROP, RecordKind.NODE)),
    Column("size_bytes", "int64", "size of all deliveries or messages that the record counts", _COUNTED),
    Column("took_us", "int64", "latency from start to settlement, or a `message`'s time in the queue; the longest of "
           "several, since all of them are in one latency bucket", _COUNTED),
    Column("connection", "int64", "number of the connection", (RecordKind.CONNECTION, RecordKind.LINK)),
    Column("link", "int64", "number of the link", (RecordKind.LINK, RecordKind.CREDIT, RecordKind.DROP)),
    Column("queue", "int64", "number of the queue", (RecordKind.QUEUE, RecordKind.MESSAGE)),
    Column("role", "string", "role of a connection: client, router, edge, broker, operator; of a link: producer, "
           "consumer, circuit, broker, route; of a node: router, edge, broker",
           (RecordKind.NODE, RecordKind.CONNECTION, RecordKind.LINK)),
    Column("direction", "string", "direction of the link as the node sees it: incoming or outgoing; of a connection: "
           "incoming if the node accepted it, outgoing if the node dialed it",
           (RecordKind.CONNECTION, RecordKind.LINK)),
    Column("container", "string", "container-id of the peer", (RecordKind.CONNECTION, RecordKind.LINK)),
    Column("user", "string", "authenticated user", (RecordKind.CONNECTION, RecordKind.LINK)),
    Column("remote_address", "string", "host and port of the peer", (RecordKind.CONNECTION, RecordKind.LINK)),
    Column("address", "string", "address of the link or queue", (RecordKind.LINK, RecordKind.QUEUE)),
    Column("treatment", "string", "treatment of the address: closest, balanced, multicast, queue, topic",
    (RecordKind.LINK,)),
    Column("name", "string", "name of a link; subscriber of a queue that is a subscription", (RecordKind.LINK,
    RecordKind.QUEUE)),
    Column("ingress", "string", "ingress of a circuit: router where its messages enter the mesh", (RecordKind.LINK,)),
    Column("egress", "string", "egress of a circuit or path: router at the other end", (RecordKind.LINK,
    RecordKind.PATH)),
    Column("path", "string", "routers of the path from this node on, with > between them", (RecordKind.LINK,
    RecordKind.PATH)),
    Column("cost", "int64", "cost of the neighbor's connection, or of the path", (RecordKind.NEIGHBOR,
    RecordKind.PATH)),
    Column("neighbor", "string", "router at the other end of the connection", (RecordKind.NEIGHBOR,)),
    Column("credit", "int64", "credit of the link; recorded in the link's first second, after 10 s without a move, "
           "and while and after it lacks credit, since the credit of a link at work changes all the time. A sender "
           "waits for credit from a record with 0 and a `cause` on, up to a record with more than 0",
           (RecordKind.CREDIT,)),
    Column("starved_us", "int64", "time without credit since the previous record", (RecordKind.CREDIT,)),
    Column("cause", "string", "reason for the end (of a node: `stopped`, `failed`), for a drop, or for the lack of "
           "credit in the time of `starved_us` (`no_taker`, `takers`; at a broker `full_queue`, `disk`, `memory`), "
           "null in a record that only says that the lack is over; a condition that the peer gave stands behind `by "
           "the peer: `",
           (RecordKind.NODE, RecordKind.CONNECTION, RecordKind.LINK, RecordKind.NEIGHBOR, RecordKind.CREDIT,
           RecordKind.DROP)),
    Column("unsettled_count", "int64", "deliveries that wait for an outcome, of an outgoing link without a move for "
           f"{STILL_S} s; 0 while deliveries move", (RecordKind.CREDIT,)),
    Column("depth_count", "int64", "number of messages in the queue", (RecordKind.QUEUE,)),
    Column("depth_bytes", "int64", "size of all messages in the queue", (RecordKind.QUEUE,)),
    Column("acquired_count", "int64", "number of messages in the queue that consumers have, without an outcome yet",
           (RecordKind.QUEUE,)),
    Column("oldest_us", "int64", "age of the oldest message since it came to the broker, also if it was moved to "
           "this queue later, as dead letters are", (RecordKind.QUEUE,)),
    Column("clock_us", "int64", "time by which the wall clock is ahead of the monotonic clock", (RecordKind.NODE,)),
    Column("topology", "string", "SHA-256 of the topology file", (RecordKind.NODE,)),
    Column("version", "string", "version of amqpmesh", (RecordKind.NODE,)),
    Column("cpu_us", "int64", "CPU time of the node's process since its start, user and system; recorded every 10 s, "
           "as the next three", (RecordKind.NODE,)),
    Column("resident_bytes", "int64", "resident memory of the node's process", (RecordKind.NODE,)),
    Column("connections", "int64", "number of open connections that have a record", (RecordKind.NODE,)),
    Column("links", "int64", "number of attached links that have a record", (RecordKind.NODE,)),
    Column("mechanism", "string", "SASL mechanism of the login; null without a SASL layer, as between nodes",
           (RecordKind.CONNECTION,)),
    Column("tls_version", "string", "version of TLS, such as `TLSv1.3`; null without TLS", (RecordKind.CONNECTION,)),
    Column("tls_cipher", "string", "cipher of TLS in OpenSSL's words, such as `TLS_AES_256_GCM_SHA384`; null without "
           "TLS", (RecordKind.CONNECTION,)),
    Column("sender_settle_mode", "string", "snd-settle-mode in the peer's attach, or in the node's own while the peer "
           "has not answered: unsettled, settled, mixed", (RecordKind.LINK,)),
    Column("receiver_settle_mode", "string", "rcv-settle-mode of the same attach: first, second",
           (RecordKind.LINK,)),
)  # fmt: skip
"""All columns of a link log file, in the order in which the file has them."""


_SUBDIVISIONS = 16
_SHIFT = 4

BUCKET_ERROR: Final = 1 / (2 * _SUBDIVISIONS)
"""Largest distance from the middle of a latency bucket to a latency in that bucket, as a share of the latency."""


def bucket_of(took_us: int) -> int:
    """Return the number of the bucket of a latency: a bucket per us below 16 us, then 16 buckets per doubling.

    All records use the same buckets, so counts of one bucket add up across records.
    """
    if took_us < _SUBDIVISIONS:
        return took_us
    octave = took_us.bit_length() - 1
    return _SUBDIVISIONS * (octave - _SHIFT + 1) + (took_us >> (octave - _SHIFT)) - _SUBDIVISIONS


def bounds_of(bucket: int) -> tuple[int, int]:
    """Return the least and the largest latency, in us, that `bucket_of` puts into ``bucket``."""
    if bucket < _SUBDIVISIONS:
        return bucket, bucket
    octave, step = bucket // _SUBDIVISIONS - 1, bucket % _SUBDIVISIONS
    least = (_SUBDIVISIONS + step) << octave
    return least, least + (1 << octave) - 1
