"""What do the files of the link log have in them? The one definition, for who writes them and who reads them.

A file is Parquet, a record is a row. Which columns a record fills in depends on its kind; the others are null. Files
lie in ``node=<name>/hour=<yyyy-mm-ddThh>/`` (UTC, of when the file was begun), and each opens with a snapshot: a record
with event `live` for all that there was then. Units: ``_us`` microseconds, ``_bytes`` octets; times are of UTC, since
1970.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SCHEMA_VERSION: Final = 1
"""Raised when a reader of the version before would misunderstand; a column more is no new version."""

VERSION_KEY: Final = "amqpmesh.link-log"
"""In the metadata of a file: the schema version. NODE_KEY, RUN_KEY, MESH_KEY: whose file it is."""
NODE_KEY: Final = "amqpmesh.node"
RUN_KEY: Final = "amqpmesh.run"
MESH_KEY: Final = "amqpmesh.mesh"
DROPPED_KEY: Final = "amqpmesh.dropped"
"""How many records the node had lost for want of room, ever in this run, when the file was written."""
REPLACES_KEY: Final = "amqpmesh.replaces"
"""Names of files of the same directory, a JSON list: all that is in them is in this one, and they no longer count."""


class Level(StrEnum):
    """How much is recorded."""

    OFF = "off"
    SUMMARY = "summary"
    """Of deliveries, the sums of each second and their latencies by bucket."""
    FULL = "full"
    """Each delivery."""


class Kind(StrEnum):
    """What a record tells of."""

    NODE = "node"
    """The node itself: started, its clock, what it lost, and that it ended; of one that was killed nothing says so."""
    CONNECTION = "connection"
    LINK = "link"
    DELIVERY = "delivery"
    """At level full: one for each delivery, when it was settled."""
    TRAFFIC = "traffic"
    """At level summary: all deliveries of a second that are alike, latency by bucket."""
    CREDIT = "credit"
    """Of a link, how long its sender had none, how often its receiver wanted it back, and what that has."""
    DROP = "drop"
    """Pre-settled messages, or copies of them, that somebody did not get."""
    NEIGHBOR = "neighbor"
    """The link state of a router, as it sees it itself."""
    PATH = "path"
    """The cheapest path of a router to another."""
    QUEUE = "queue"
    """How much is in a queue, or in a subscription, and how old."""
    MESSAGE = "message"
    """What went into a queue or out of it."""


class Event(StrEnum):
    """What happened to what the record is of."""

    LIVE = "live"
    """It was there when the file was begun; or it is there, and for want of room that could not be told in time."""
    OPENED = "opened"
    """A connection; a link that was attached; a queue that was made; a neighbor that came up; a node that started."""
    CLOSED = "closed"
    CHANGED = "changed"
    """A cost, a path, credit, the depth of a queue, a clock that was set."""
    DRAIN = "drain"
    """The receiver of an outgoing link asked for what there is, and for the rest of its credit: ``count`` times."""
    LOST = "lost"
    """Records of this node, for want of room: ``count`` of them."""
    ENQUEUED = "enqueued"
    DEQUEUED = "dequeued"
    """It left for a consumer, and was settled."""
    EXPIRED = "expired"
    DEAD_LETTERED = "dead_lettered"
    """To the queue for what nobody accepts, or for what has no room."""
    REMOVED = "removed"
    """For any other reason: refused where there is no such queue, dropped, purged, moved, with its queue."""


class Outcome(StrEnum):
    """What became of a delivery. [3.4]"""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RELEASED = "released"
    MODIFIED = "modified"
    NONE = "none"
    """It was sent settled, or was settled without a state."""
    ABORTED = "aborted"
    SENDER_LOST = "sender_lost"


class Part(StrEnum):
    """Of which part of a delivery's way a record tells. WHOLE and MANY came in, WHOLE and COPY went out."""

    WHOLE = "whole"
    MANY = "many"
    """A multicast, as its sender sent it."""
    COPY = "copy"
    """A multicast, as one taker got it."""


@dataclass(frozen=True, slots=True)
class Column:
    """``type`` is `string` or `int64`. ``kinds``: who fills it in; none for all."""

    name: str
    type: str
    meaning: str
    kinds: tuple[Kind, ...] = ()


STOPPED: Final = "stopped"
"""The cause of a node's end: it was asked to. FAILED: it could not go on, but ended in order."""
FAILED: Final = "failed"

BY_PEER: Final = "by the peer: "
"""In a cause what follows is a condition of the peer's own: it may call that what it likes."""

KNOWN_CONDITION: Final = re.compile(r"amqp(mesh)?:[a-z:-]+")
"""Of AMQP, and of amqpmesh."""

STILL_S: Final = 10
"""A link on which nothing moves for so long stands still. From then on Dispatch has deliveries for stuck, too."""

_MOVED = (Kind.DELIVERY, Kind.TRAFFIC)
_COUNTED = (*_MOVED, Kind.MESSAGE)

COLUMNS: Final = (
    Column("kind", "string", "what the record tells of"),
    Column("event", "string", "what happened; null for `delivery`, `traffic`, `drop`"),
    Column("at_us", "int64", "when; of a `delivery` when it was settled, of a second's `traffic` its end"),
    Column("run", "int64", "when the node started: numbers of connections, links and queues are of one run"),
    Column("incoming", "int64", "the link on which it came; 0: none", _MOVED),
    Column("outgoing", "int64", "the link on which it went; 0: nobody had it", _MOVED),
    Column("outcome", "string", "what became of it", _MOVED),
    Column("part", "string", "whole way, or of a multicast which part", _MOVED),
    Column("count", "int64", "how many: deliveries, messages, copies, drains, records; 1 of a `delivery`",
           (*_COUNTED, Kind.CREDIT, Kind.DROP, Kind.NODE)),
    Column("size_bytes", "int64", "of all of them", _COUNTED),
    Column("took_us", "int64", "from its start to its settlement, in the queue of a `message`; of several the longest: "
           "all are of one bucket", _COUNTED),
    Column("connection", "int64", "number of the connection", (Kind.CONNECTION, Kind.LINK)),
    Column("link", "int64", "number of the link", (Kind.LINK, Kind.CREDIT, Kind.DROP)),
    Column("queue", "int64", "number of the queue", (Kind.QUEUE, Kind.MESSAGE)),
    Column("role", "string", "of a connection: client, router, edge, broker, operator; of a link: producer, consumer, "
           "circuit, broker, route; of a node: router, edge, broker", (Kind.NODE, Kind.CONNECTION, Kind.LINK)),
    Column("direction", "string", "of a link, as the node sees it: incoming or outgoing", (Kind.LINK,)),
    Column("container", "string", "container-id of the peer", (Kind.CONNECTION, Kind.LINK)),
    Column("user", "string", "who authenticated", (Kind.CONNECTION, Kind.LINK)),
    Column("remote_address", "string", "host and port of the peer", (Kind.CONNECTION, Kind.LINK)),
    Column("address", "string", "of the link or queue", (Kind.LINK, Kind.QUEUE)),
    Column("treatment", "string", "closest, balanced, multicast, queue, topic", (Kind.LINK,)),
    Column("name", "string", "of a link; of a queue that is a subscription, whose", (Kind.LINK, Kind.QUEUE)),
    Column("ingress", "string", "of a circuit: the router where its messages enter the mesh", (Kind.LINK,)),
    Column("egress", "string", "of a circuit or path: the router at the other end", (Kind.LINK, Kind.PATH)),
    Column("path", "string", "routers from here on, with > between them", (Kind.LINK, Kind.PATH)),
    Column("cost", "int64", "of a neighbor or a path", (Kind.NEIGHBOR, Kind.PATH)),
    Column("neighbor", "string", "the router at the other end", (Kind.NEIGHBOR,)),
    Column("credit", "int64", "what the link has; told in its first second, when it stood still for 10 s, and when it "
           "had none: of one that is at work it changes all the time", (Kind.CREDIT,)),
    Column("starved_us", "int64", "for how long it had none since the record before", (Kind.CREDIT,)),
    Column("cause", "string", "why it closed (a node: `stopped`, or `failed`), dropped, or had no credit (`no_taker`, "
           "`takers`; at a broker `full_queue`, `disk`, `memory`); behind `by the peer: ` is a condition of its own",
           (Kind.NODE, Kind.CONNECTION, Kind.LINK, Kind.NEIGHBOR, Kind.CREDIT, Kind.DROP)),
    Column("unsettled_count", "int64", f"of an outgoing link that stood still for {STILL_S} s: deliveries that wait "
           "for an outcome; 0 of one that moves", (Kind.CREDIT,)),
    Column("depth_count", "int64", "messages in the queue", (Kind.QUEUE,)),
    Column("depth_bytes", "int64", "of all messages in the queue", (Kind.QUEUE,)),
    Column("acquired_count", "int64", "of the messages in the queue, those that consumers have without an outcome",
           (Kind.QUEUE,)),
    Column("oldest_us", "int64", "how long ago the oldest message came to the broker, also where it was moved since, "
           "as dead letters are", (Kind.QUEUE,)),
    Column("clock_us", "int64", "what the wall clock is ahead of the monotonic one", (Kind.NODE,)),
    Column("topology", "string", "sha256 of the topology file", (Kind.NODE,)),
    Column("version", "string", "of amqpmesh", (Kind.NODE,)),
)  # fmt: skip
"""In the order of the files."""

PERSONAL_COLUMNS: Final = ("user", "remote_address", "container", "address", "name")
"""What may be nobody's business. Names of links have containers and addresses in them."""

_SUBDIVISIONS = 16
_SHIFT = 4

BUCKET_ERROR: Final = 1 / (2 * _SUBDIVISIONS)
"""The middle of a bucket is no further than this from any latency in it, as a share of that."""


def bucket_of(took_us: int) -> int:
    """The bucket of a latency: exact below 16 us, then 16 of them for each doubling. They add up across all records."""
    if took_us < _SUBDIVISIONS:
        return took_us
    octave = took_us.bit_length() - 1
    return _SUBDIVISIONS * (octave - _SHIFT + 1) + (took_us >> (octave - _SHIFT)) - _SUBDIVISIONS


def bounds_of(bucket: int) -> tuple[int, int]:
    """The least and the largest latency in a bucket, in us."""
    if bucket < _SUBDIVISIONS:
        return bucket, bucket
    octave, step = bucket // _SUBDIVISIONS - 1, bucket % _SUBDIVISIONS
    least = (_SUBDIVISIONS + step) << octave
    return least, least + (1 << octave) - 1
