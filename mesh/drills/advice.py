"""Advice for a failed expectation of a drill: the text of the first rule that fits metric, fault kind and address type.

Text in backticks can be typed by a user: a key of the topology file, with or without its value, or a command.
"""

from __future__ import annotations

from dataclasses import dataclass

SILENT = frozenset({"pause", "blackhole"})
"""Faults that close no connection, so that neighbors notice a fault only by timeouts."""
CLOSED = frozenset({"kill", "stop", "restart", "cut", "reset"})
SLOW = frozenset({"latency", "bandwidth", "loss"})
FAULT_KINDS = SILENT | CLOSED | SLOW | {"flap", "disk_full", "expire_certificate", "command"}

TIMES = frozenset({"detection", "outage", "first_delivery", "recovery"})
LATENCIES = frozenset({"p50", "p99", "max"})
STALLS = frozenset({"stalls", "longest_stall"})
VOLUMES = frozenset({"attempted", "rate"})
ARRIVALS = frozenset({"lost", "received"})
METRICS = (
    TIMES
    | LATENCIES
    | STALLS
    | VOLUMES
    | ARRIVALS
    | {"duplicated", "reordered", "accepted", "rejected", "released", "modified", "unknown", "reconnects"}
)

ANYCAST, MULTICAST, QUEUE, TOPIC = "anycast", "multicast", "queue", "topic"
STORED = frozenset({QUEUE, TOPIC})
DIRECT = frozenset({ANYCAST, MULTICAST})


@dataclass(frozen=True, slots=True)
class Rule:
    """A piece of advice, and the metrics, fault kinds and address types for which it is given. None for kinds or types
    fits every kind or type.
    """

    metrics: frozenset[str]
    kinds: frozenset[str] | None
    types: frozenset[str] | None
    text: str

    def fits(self, metric: str, kind: str | None, address_type: str) -> bool:
        return (
            metric in self.metrics
            and (self.kinds is None or kind in self.kinds)
            and (self.types is None or address_type in self.types)
        )


def advice_for(metric: str, fault_kind: str | None, address_type: str) -> str:
    """Return the advice, one or two sentences, for a failed expectation about ``metric``.

    ``fault_kind`` is None for an expectation about the steady state. Raise ValueError for an unknown metric.
    """
    for rule in RULES:
        if rule.fits(metric, fault_kind, address_type):
            return rule.text
    raise ValueError(
        f"bug in this program: no rule has advice for the unknown metric {metric!r}: expected one of "
        f"{', '.join(sorted(METRICS))}"
    )


RULES = (
    # Advice for failed expectations about times: detection, outage, first delivery, recovery.
    Rule(
        TIMES,
        SILENT,
        STORED,
        "No connection was closed, so routers noticed the fault by silence only. With `hello_interval_s: 0.1` "
        "neighbors give up a silent router after 0.3 s in place of 3; a silent broker is given up after 16 s in any "
        "case.",
    ),
    Rule(
        TIMES,
        SILENT,
        None,
        "No connection was closed, so routers noticed the fault by silence only, after 3 s by default: with "
        "`hello_interval_s: 0.1` neighbors give up a silent router after 0.3 s.",
    ),
    Rule(
        TIMES,
        SLOW,
        None,
        "A slow connection still works: traffic stays on it as long as it is on the cheapest path. If there is "
        "another path, `amqpmesh cost` moves traffic there while the mesh runs, and a higher `cost` in the topology "
        "keeps it there.",
    ),
    Rule(
        TIMES,
        frozenset({"flap"}),
        None,
        "Traffic moves back to a connection that has been up for 2 s, and leaves it each time it drops. A higher "
        "`cost` keeps traffic off an unstable connection.",
    ),
    Rule(
        TIMES,
        frozenset({"disk_full"}),
        STORED,
        "A broker that cannot write to its disk ends, and is started again after 0.5 to 10 s. Give the disk of its "
        "`data` more space; a queue on several `brokers` continues at the other brokers.",
    ),
    Rule(
        TIMES | {"reconnects"},
        frozenset({"expire_certificate"}),
        None,
        "Connections that break after a certificate has expired do not come back. `amqpmesh certs renew` makes new "
        "certificates, which nodes use from their next start on; `amqpmesh certs show` lists when each expires.",
    ),
    Rule(
        frozenset({"detection"}),
        None,
        None,
        "Routers notice a closed connection at once, so find out why this node was late: see its log around that "
        "time, and whether the machine had a free core.",
    ),
    Rule(
        TIMES,
        None,
        frozenset({QUEUE}),
        "If the way to the broker was lost: give the broker several `routers`, and more than one path to them. If "
        "the broker was lost: a queue on several `brokers` continues at the other brokers, and an anycast with this "
        "queue as `fallback` needs the queue only while it has no consumer.",
    ),
    Rule(
        TIMES,
        None,
        frozenset({TOPIC}),
        "If the way to the broker was lost: see that it has several `routers`, and that there is more than one path "
        "to them. If the broker was lost, its subscriptions wait until it is back: a replicated broker, attached by "
        "`url`, is back sooner.",
    ),
    Rule(
        TIMES,
        CLOSED,
        DIRECT,
        "The loss was noticed at once, so the time went into finding another path. See that each router can "
        "`connect` to two others, and that there is a consumer at more than one router.",
    ),
    Rule(
        TIMES,
        None,
        None,
        "`amqpmesh status` shows the connections of each node; the logs of the nodes around that time show when each "
        "noticed the fault. Provide a second path, and consumers at more than one router.",
    ),
    # Advice for failed expectations about lost, duplicated and reordered messages.
    Rule(
        ARRIVALS,
        None,
        frozenset({MULTICAST}),
        "No node stores messages of a multicast: copies on a broken branch are lost for the consumers behind it. "
        "Where every consumer must get every message, use `type: topic` and durable subscriptions.",
    ),
    Rule(
        ARRIVALS,
        None,
        frozenset({ANYCAST}),
        "Accepted means that a consumer settled it. A consumer that settles too early, or a producer that sends "
        "pre-settled messages, loses messages in flight; otherwise this is a bug: please report it with this page.",
    ),
    Rule(
        ARRIVALS,
        frozenset({"disk_full"}),
        STORED,
        "An accepted message is on disk, also when the disk fills up. See whether consumers had the time to take all "
        "stored messages before the drill ended; if they had, this is a bug: please report it with this page.",
    ),
    Rule(
        ARRIVALS,
        None,
        frozenset({TOPIC}),
        "A topic keeps messages for durable subscriptions only, and a drill's receivers have none: they miss "
        "messages that are published while their path is made anew. Allow for some lost messages, or drill a queue.",
    ),
    Rule(
        ARRIVALS,
        None,
        None,
        "An accepted message is on the broker's disk. See that consumers had the time to take all stored messages "
        "before the drill ended, and that the folder `data` outlived the broker.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        frozenset({ANYCAST}),
        "Messages in doubt were sent again, by `retransmit` or by their producer. Messages of `retransmit` have a "
        "delivery-count of 1 or more, so consumers can check whether they know them; without `retransmit` the "
        "producer decides.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        STORED,
        "A broker redelivers messages that a consumer had not settled when its link was lost, with a delivery-count "
        "of 1 or more. Consumers that grant less credit see fewer redeliveries.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        None,
        "The mesh never sends a multicast message twice, but a producer may do so after outcome MODIFIED, and some "
        "consumers already have the message then. Consumers can recognize it by its message-id.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        frozenset({QUEUE}),
        "Each broker keeps order: a queue that must keep order needs a single `broker`. Messages that a consumer did "
        "not settle are redelivered later, with a delivery-count of 1 or more.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        frozenset({ANYCAST}),
        "Messages that are sent again, to another consumer or by `retransmit`, arrive after messages that were sent "
        "meanwhile. Where order counts more than time, use `type: queue` with one `broker`.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        None,
        "Messages on the old path may arrive after messages on the new path. Where order counts more than time, use "
        "one broker: `type: topic` for all, `type: queue` for one.",
    ),
    # Advice for failed expectations about the outcomes that producers received.
    Rule(
        frozenset({"released", "accepted"}),
        None,
        frozenset({ANYCAST}),
        "RELEASED: no consumer was reachable for 2 s. Attach a consumer at another router, too, or name a queue as "
        "`fallback`, which keeps messages without a consumer; `retransmit: true` sends messages again that a lost "
        "router or consumer had.",
    ),
    Rule(
        frozenset({"modified"}),
        None,
        frozenset({ANYCAST}),
        "MODIFIED: the message was in flight to a router or consumer that was lost. With `retransmit: true` it is "
        "sent again and the producer sees no failure; with a lower `link_capacity` fewer messages are in doubt.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        frozenset({MULTICAST}),
        "A branch of the multicast broke: no consumer is known to have the message, and no node has a copy. The "
        "producer may send the message again; `type: topic` stores messages.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        STORED,
        "The broker, or the path to it, was lost before it accepted these messages: the producer has to send them "
        "again. Give the broker several `routers`; a queue may have several `brokers`.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        None,
        "The ledger shows the outcomes: producers may send RELEASED and MODIFIED messages again.",
    ),
    Rule(
        frozenset({"rejected"}),
        None,
        None,
        "REJECTED is the answer of a consumer or a broker, or of a router that does not know or allow the address. "
        "The examples show the error; `amqpmesh check` and the users' permissions may explain it.",
    ),
    Rule(
        frozenset({"unknown"}),
        None,
        None,
        "The producer's own connection was lost, or the drill ended, before the outcome arrived: the producer has to "
        "send these messages again. With a lower `link_capacity` fewer messages are in flight.",
    ),
    # Advice for failed expectations about latencies, stalls, reconnects and volumes, as clients measured them.
    Rule(
        LATENCIES,
        SLOW | {"flap"},
        None,
        "Traffic stays on a slow connection while that is on the cheapest path: `amqpmesh cost` moves traffic to "
        "another path. Addresses with a higher `priority` go first where a connection is short of room.",
    ),
    Rule(
        LATENCIES | STALLS,
        SILENT,
        None,
        "Messages wait until routers notice the silence, after 3 s by default: with `hello_interval_s: 0.1` after "
        "0.3 s.",
    ),
    Rule(
        LATENCIES,
        None,
        None,
        "Latency counts from the time at which a message was due, so a message that waits for a path or for credit "
        "is late: see the outage and the stalls first. `distribution: closest` prefers near consumers; a lower "
        "`link_capacity` keeps queues short.",
    ),
    Rule(
        STALLS,
        None,
        None,
        "A producer waits while it has used all its credit. A higher `link_capacity` gives it more, unless the "
        "consumers grant too little credit.",
    ),
    Rule(
        frozenset({"reconnects"}),
        SILENT,
        None,
        "A client gives up a silent router after its own idle timeout, and connects to another: give each client "
        "several routers. `idle_timeout_s` of a listener is the routers' timeout for silent clients.",
    ),
    Rule(
        frozenset({"reconnects"}),
        None,
        None,
        "Clients of a lost router have to connect to another router: give each client several routers. The loss of a "
        "connection between routers, or of a broker, should close no client's connection.",
    ),
    Rule(
        VOLUMES,
        None,
        None,
        "Producers could not send at the planned rate: credit comes from consumers, so see the stalls, then whether "
        "consumers keep up. More consumers or a higher `link_capacity` help; on a slow machine, use a lower rate.",
    ),
)
