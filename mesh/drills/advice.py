"""Advice for a failed expectation: the first rule that fits metric, fault and address type gives the text.

Text in backticks is what a user can type: a key of the topology file, with or without its value, or a command.
"""

from __future__ import annotations

from dataclasses import dataclass

SILENT = frozenset({"pause", "blackhole"})
"""Faults that close no connection: neighbors notice only the silence."""
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
    """Advice for some metrics, fault kinds and address types. None in place of a set fits every value."""

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
    """Return one or two sentences. ``fault_kind``: None for a steady state. Raise ValueError for an unknown metric."""
    for rule in RULES:
        if rule.fits(metric, fault_kind, address_type):
            return rule.text
    raise ValueError(f"no metric {metric!r}; known: {', '.join(sorted(METRICS))}")


RULES = (
    # Times: detection, outage, first delivery, recovery.
    Rule(
        TIMES,
        SILENT,
        STORED,
        "Nothing was closed, so only silence gave it away. With `hello_interval_s: 0.1` a router that says nothing is "
        "dead to its neighbors after 0.3 s in place of 3; a broker is given up after 16 s, whatever the topology says.",
    ),
    Rule(
        TIMES,
        SILENT,
        None,
        "Nothing was closed, so only silence gave it away, after 3 s unless the topology says otherwise: with "
        "`hello_interval_s: 0.1` a router that says nothing is dead to its neighbors after 0.3 s.",
    ),
    Rule(
        TIMES,
        SLOW,
        None,
        "A slow connection is no dead one: traffic stays on it as long as it is the cheapest way. Where there is "
        "another, `amqpmesh cost` moves traffic while the mesh runs, and a higher `cost` keeps it there.",
    ),
    Rule(
        TIMES,
        frozenset({"flap"}),
        None,
        "Traffic moves back to a connection once that has been up for 2 s, and off it each time it drops. A higher "
        "`cost` keeps traffic off one that comes and goes.",
    ),
    Rule(
        TIMES,
        frozenset({"disk_full"}),
        STORED,
        "A broker that cannot write ends, and is started again after 0.5 to 30 s. Give the disk of its `data` more "
        "room; a queue that names several `brokers` goes on at the others.",
    ),
    Rule(
        TIMES | {"reconnects"},
        frozenset({"expire_certificate"}),
        None,
        "Connections that break after a certificate has expired do not come back. `amqpmesh certs renew` makes new "
        "ones, which nodes take at their next start; `amqpmesh certs show` tells how long they last.",
    ),
    Rule(
        frozenset({"detection"}),
        None,
        None,
        "A connection that is closed is noticed at once, so look for what kept the node that should have noticed: its "
        "log around that time, and whether the machine had a core to spare.",
    ),
    Rule(
        TIMES,
        None,
        frozenset({QUEUE}),
        "If the way to the broker was lost: see that it has several `routers`, and that there is more than one path to "
        "them. If the broker was: a queue that names several `brokers` goes on at the others, and an anycast with this "
        "queue as `fallback` needs it only while nobody consumes.",
    ),
    Rule(
        TIMES,
        None,
        frozenset({TOPIC}),
        "If the way to the broker was lost: see that it has several `routers`, and that there is more than one path to "
        "them. If the broker was, its subscriptions wait until it is back: a broker with replicas of its own, attached "
        "by `url`, is back sooner.",
    ),
    Rule(
        TIMES,
        CLOSED,
        DIRECT,
        "What was lost was noticed at once, so the time went into finding another way. See that each router can "
        "`connect` to two others, and that there is a consumer at more than one router.",
    ),
    Rule(
        TIMES,
        None,
        None,
        "`amqpmesh status` tells what each node sees; the logs of the nodes around that time tell when each noticed. "
        "See that there is a second path, and a consumer at more than one router.",
    ),
    # Fates of messages: lost, duplicated, reordered.
    Rule(
        ARRIVALS,
        None,
        frozenset({MULTICAST}),
        "Nobody keeps copies of a multicast: those on a branch that broke are missing behind it. Where every consumer "
        "must have every message, use `type: topic` and durable subscriptions.",
    ),
    Rule(
        ARRIVALS,
        None,
        frozenset({ANYCAST}),
        "Accepted means that a consumer settled it. One that settles before it is done, or a producer that sends "
        "pre-settled, loses what is under way; if neither does, this should not be: please report it with this page.",
    ),
    Rule(
        ARRIVALS,
        frozenset({"disk_full"}),
        STORED,
        "Accepted means on disk, also when the disk fills up. See whether consumers had the time to take all that was "
        "kept before the drill ended; if they had, this should not be: please report it with this page.",
    ),
    Rule(
        ARRIVALS,
        None,
        frozenset({TOPIC}),
        "A topic keeps messages for durable subscriptions only, and those of a drill's receivers are not: what is "
        "published while the path of one is made anew is not for it. Allow for some, or drill a queue.",
    ),
    Rule(
        ARRIVALS,
        None,
        None,
        "Accepted means on the broker's disk. See that consumers had the time to take all that was kept before the "
        "drill ended, and that the folder `data` outlived the broker.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        frozenset({ANYCAST}),
        "What was in doubt was sent again, by `retransmit` or by its producer. What `retransmit` sends has a "
        "delivery-count of 1 or more, so consumers can look whether they know it; without it the producer decides.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        STORED,
        "A broker sends again what a consumer had not settled when its link was lost, with a delivery-count of 1 or "
        "more. Consumers that grant less credit see fewer of them.",
    ),
    Rule(
        frozenset({"duplicated"}),
        None,
        None,
        "The mesh never sends a multicast twice, but a producer that hears MODIFIED may, and some consumers had it by "
        "then. Consumers can tell by the message's id.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        frozenset({QUEUE}),
        "Order is kept at each broker: a queue that must keep it names one `broker`, not several. What a consumer had "
        "and did not settle comes again later, with a delivery-count of 1 or more.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        frozenset({ANYCAST}),
        "What is offered again, to another consumer or by `retransmit`, comes after what was sent meanwhile. Where "
        "order counts for more than time, use `type: queue` with one `broker`.",
    ),
    Rule(
        frozenset({"reordered"}),
        None,
        None,
        "What is still on the old path may come after what took the new one. Where order counts for more than time, "
        "keep it at one broker: `type: topic` for all, `type: queue` for one.",
    ),
    # Outcomes: what producers were told.
    Rule(
        frozenset({"released", "accepted"}),
        None,
        frozenset({ANYCAST}),
        "RELEASED: for 2 s nobody was there to take it. Have a consumer at another router too, or name a queue as "
        "`fallback` that keeps what nobody takes; `retransmit: true` sends again what a lost router or consumer had.",
    ),
    Rule(
        frozenset({"modified"}),
        None,
        frozenset({ANYCAST}),
        "MODIFIED: it was on its way to a router or consumer that was lost. With `retransmit: true` it is sent again "
        "and the producer sees no failure; a lower `link_capacity` puts fewer in doubt.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        frozenset({MULTICAST}),
        "On a multicast that broke, no consumer is known to have had it, and nobody keeps a copy to send again. The "
        "producer may send it again, or `type: topic` keeps it.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        STORED,
        "The broker, or the way to it, was lost before it could promise anything: the producer has to send those "
        "again. See that the broker has several `routers`; a queue may name several `brokers`.",
    ),
    Rule(
        frozenset({"modified", "released", "accepted"}),
        None,
        None,
        "See which outcome the others had, in the ledger: producers may send again what is RELEASED or MODIFIED.",
    ),
    Rule(
        frozenset({"rejected"}),
        None,
        None,
        "REJECTED is the answer of a consumer or a broker, or of a router that does not know or allow the address. The "
        "examples have the error; `amqpmesh check` and the users' permissions may explain it.",
    ),
    Rule(
        frozenset({"unknown"}),
        None,
        None,
        "The producer's own connection was lost, or the drill ended, before it heard an outcome: it has to send those "
        "again. A lower `link_capacity` has fewer under way.",
    ),
    # Latencies, stalls, reconnects and volumes, as clients saw them.
    Rule(
        LATENCIES,
        SLOW | {"flap"},
        None,
        "Traffic stays on a slow connection while that is the cheapest way: `amqpmesh cost` moves it to another one. A "
        "higher `priority` goes first where a connection is short of room.",
    ),
    Rule(
        LATENCIES | STALLS,
        SILENT,
        None,
        "Messages wait until silence is noticed, after 3 s unless the topology says otherwise: with "
        "`hello_interval_s: 0.1` after 0.3 s.",
    ),
    Rule(
        LATENCIES,
        None,
        None,
        "A message's age counts from when it was due, so what waits for a path or for credit is late: see the outage "
        "and the stalls first. `distribution: closest` prefers near consumers, a lower `link_capacity` short queues.",
    ),
    Rule(
        STALLS,
        None,
        None,
        "A producer waits while all that it may have under way is under way. A higher `link_capacity` lets it have "
        "more, unless it is the consumers that grant too little credit.",
    ),
    Rule(
        frozenset({"reconnects"}),
        SILENT,
        None,
        "A client finds a silent router dead after the idle timeout it asked for, and dials another: name several to "
        "it. `idle_timeout_s` of a listener is what routers do about silent clients.",
    ),
    Rule(
        frozenset({"reconnects"}),
        None,
        None,
        "Clients of a router that is lost have to connect to another: name several to them. Losing a connection "
        "between routers, or a broker, should cost no client its own.",
    ),
    Rule(
        VOLUMES,
        None,
        None,
        "Producers could not send as fast as they should: credit comes from consumers, so see the stalls, then whether "
        "consumers keep up. More consumers help, or a higher `link_capacity`; if it is the machine, a lower rate.",
    ),
)
