"""The catalogue of figures in docs/reference/figures.md, with the command that measures each.

A figure that is not in the catalogue stands in no document. The sections are those of the page, in the same order.
"""

from __future__ import annotations

from mesh_tests.bench.figures.model import Figure, Measurement
from mesh_tests.bench.figures.observer import OBSERVER_MEASUREMENTS
from mesh_tests.bench.figures.readers import at, row, slowest_change
from mesh_tests.bench.figures.scale import SCALE_MEASUREMENTS

MB = 1 / 1e6
KB = 1 / 1e3
MS = 1 / 1e3
"""Factor from microseconds to milliseconds."""

ROUTERS = "Routers: CPU of the router for each message, 100 bytes, one router, one producer to one consumer"
STREAMS = "Routers: latency and large messages"
KEPT = "Routers: memory and CPU of what is idle"
INSTRUCTIONS = "Routers: user instructions, by callgrind"
BROKERS = "Brokers: 1 KB, durable"
RECOVERY = "Brokers: recovery"
LOGS = "Link logs"
OUTAGES = "Failover: a ring of four, the transit router is lost"
LARGE = "Large meshes: 1,000 routers in virtual time"


def _forward(key: str, title: str, work: str, mode: str, targets: tuple[str, str], *options: str) -> Measurement:
    return Measurement(
        ROUTERS,
        ("-m", "mesh", "bench", "forward", "--json", "--mode", mode, *options),
        (
            Figure(f"forward.{key}.cpu", title, "us", row(work, "cpu_us_per_message", mode), targets[0]),
            Figure(f"forward.{key}.rate", f"{title}: rate", "/s", row(work, "messages_per_s", mode), targets[1]),
        ),
    )


def _latency(key: str, work: str, title: str, *options: str, target: str = "") -> Measurement:
    return Measurement(
        STREAMS,
        ("-m", "mesh", "bench", "latency", "--json", "--repeat", "5", *options),
        (
            Figure(f"latency.{key}.p99", f"{title}: p99", "ms", row(work, "p99_us", scale=MS), target),
            Figure(f"latency.{key}.streams", f"{title}: the streams took", "s", row(work, "stream_s")),
            Figure(f"latency.{key}.grown", f"{title}: the router grew by", "MB", row(work, "grown_bytes", scale=MB)),
        ),
    )


def _outage(key: str, title: str, target: str, *options: str) -> Measurement:
    return Measurement(
        OUTAGES,
        ("-m", "mesh_tests.bench.outage", "--json", *options),
        (Figure(f"outage.{key}", title, "ms", at("outage_ms"), target),),
        limit_s=900.0,
    )


def _broker(key: str, title: str, work: str, mode: str, target: str = "") -> Figure:
    return Figure(f"broker.{key}", title, "/s", row(work, "messages_per_s", mode), target)


def _report(records: str, target: str) -> Measurement:
    return Measurement(
        LOGS,
        ("-m", "mesh_tests.bench.report", "--json", "--records", records),
        (
            Figure(
                f"report.{records}.took", f"report of {records} records, from a cold start", "s", at("took_s"), target
            ),
            Figure(
                f"report.{records}.memory", f"report of {records} records: memory", "MB", at("peak_bytes", scale=MB)
            ),
        ),
        limit_s=1800.0,
    )


PAIR = "1 broker, 1 to 1, 1 KB"

CATALOGUE: tuple[Measurement, ...] = (
    _forward("unsettled", "unsettled", "1 router, 1 to 1, 100 B", "unsettled", ("1.4 us", "600,000/s")),
    _forward("presettled", "pre-settled", "1 router, 1 to 1, 100 B", "presettled", ("1.2 us", "")),
    _forward("10k", "unsettled, 10 KB", "1 router, 1 to 1, 10 KB", "unsettled", ("12 us", ""), "--body", "10k"),
    _forward(
        "line",
        "three routers in line, for each router",
        "3 routers in line, 1 to 1, 100 B, per router",
        "unsettled",
        ("1.6 us", ""),
        *("--routers", "3"),
    ),
    _forward(
        "line_tls",
        "three routers in line, mutual TLS, for each router",
        "3 routers in line, TLS between them, 1 to 1, 100 B, per router",
        "unsettled",
        ("3 us", ""),
        *("--routers", "3", "--tls"),
    ),
    _forward(
        "multicast",
        "multicast to 10, for each copy",
        "1 router, multicast to 10, 100 B, per copy",
        "unsettled",
        ("1.0 us", ""),
        *("--consumers", "10"),
    ),
    _forward(
        "records",
        "every delivery recorded in the link log",
        "1 router, records on, 1 to 1, 100 B",
        "unsettled",
        ("10 % more than without", ""),
        "--records",
    ),
    Measurement(
        STREAMS,
        ("-m", "mesh", "bench", "latency", "--json", "--repeat", "5"),
        (
            Figure(
                "latency.one.p50", "10,000/s through one router: p50", "us", row("1 router, 100 B", "p50_us"), "90 us"
            ),
            Figure(
                "latency.one.p95", "10,000/s through one router: p95", "us", row("1 router, 100 B", "p95_us"), "200 us"
            ),
            Figure(
                "latency.relay.p50",
                "10,000/s through a relay of bytes: p50",
                "us",
                row("a relay of bytes, no router: the floor, 100 B", "p50_us"),
            ),
        ),
    ),
    _latency(
        "beside_1",
        "1 router, 100 B beside 1 x 1 GiB",
        "10,000/s beside 1 GiB, one router",
        *("--streams", "1"),
        target="5 ms",
    ),
    _latency(
        "beside_10",
        "1 router, 100 B beside 10 x 1 GiB",
        "10,000/s beside ten of 1 GiB, one router",
        *("--streams", "10"),
        target="5 ms",
    ),
    _latency(
        "line_beside_1",
        "3 routers in line, 100 B beside 1 x 1 GiB",
        "10,000/s beside 1 GiB, three routers",
        *("--streams", "1", "--routers", "3"),
        target="5 ms",
    ),
    _latency(
        "line_beside_slow",
        "3 routers in line, 100 B beside 1 x 1 GiB at 200 MiB/s",
        "10,000/s beside 1 GiB at 200 MiB/s, three routers",
        *("--streams", "1", "--routers", "3", "--stream-rate", "200m"),
        target="5 ms",
    ),
    Measurement(
        KEPT,
        ("-m", "mesh", "bench", "links", "--json", "--links", "40000"),
        (
            Figure(
                "links.one_address.memory",
                "idle link, all on one address",
                "KB",
                row("1 router, 40,000 receivers, one address", "bytes_each", scale=KB),
                "4 KB",
            ),
            Figure(
                "links.address_each.memory",
                "idle link, an address each",
                "KB",
                row("1 router, 40,000 receivers, an address each", "bytes_each", scale=KB),
                "4 KB",
            ),
            Figure(
                "links.one_address.cpu",
                "attach of a link, all on one address",
                "us",
                row("1 router, 40,000 receivers, one address", "cpu_us_each"),
            ),
            Figure(
                "links.transit.memory",
                "link of a transit circuit",
                "KB",
                row("transit router of 3, 20,000 circuits, per link (two each)", "bytes_each", scale=KB),
                "4 KB",
            ),
        ),
    ),
    Measurement(
        KEPT,
        ("-m", "mesh", "bench", "connections", "--json"),
        (
            Figure(
                "connections.plain.memory",
                "idle connection with one link, 10,000 of them",
                "KB",
                row("1 router, 10,000 connections with a receiver each", "bytes_each", scale=KB),
                "33 KB",
            ),
            Figure(
                "connections.plain.cpu",
                "connection, opened",
                "us",
                row("1 router, 10,000 connections with a receiver each", "cpu_us_each"),
            ),
        ),
    ),
    Measurement(
        KEPT,
        ("-m", "mesh", "bench", "connections", "--json", "--tls", "--connections", "3000"),
        (
            Figure(
                "connections.tls.memory",
                "idle connection with TLS, 3,000 of them",
                "KB",
                row("1 router, TLS, 3,000 connections with a receiver each", "bytes_each", scale=KB),
                "90 KB",
            ),
        ),
    ),
    Measurement(
        INSTRUCTIONS,
        ("-m", "mesh_tests.bench.instructions", "--json"),
        tuple(
            Figure(f"instructions.{key}", name, "instructions", at(name))
            for key, name in (
                ("unsettled", "message, unsettled"),
                ("each", "message, each settled alone"),
                ("presettled", "message, pre-settled"),
                ("consumer_link", "link of a consumer"),
                ("producer_link", "link of a producer"),
                ("connection", "connection"),
            )
        ),
        limit_s=1200.0,
    ),
    Measurement(
        BROKERS,
        ("-m", "mesh", "bench", "broker", "--json"),
        (
            _broker("pair", "a producer with 250 in flight and a consumer at once", PAIR, "durable", "50,000/s"),
            Figure("broker.pair.p50", "accept p50", "ms", row(PAIR, "accept_p50_us", "durable", MS), "6 ms"),
            Figure("broker.pair.p99", "accept p99", "ms", row(PAIR, "accept_p99_us", "durable", MS), "20 ms"),
            Figure(
                "broker.pair.cpu", "CPU for each message", "us", row(PAIR, "cpu_us_per_message", "durable"), "18 us"
            ),
            Figure(
                "broker.pair.written",
                "written for each message",
                "B",
                row(PAIR, "written_bytes_per_message", "durable"),
                "3,000 B",
            ),
            _broker("pairs", "four pairs on four queues", "1 broker, 4 pairs on 4 queues, 1 KB", "durable", "60,000/s"),
            _broker(
                "await",
                "a producer that waits for each accept",
                "1 broker, 1 to 1, waiting for each accept, 1 KB",
                "durable",
                "1,800/s",
            ),
            _broker("fill", "fill", f"{PAIR}, fill", "durable", "60,000/s"),
            _broker("drain", "drain", f"{PAIR}, drain", "durable", "80,000/s"),
            Figure(
                "broker.fill.resident",
                "memory with the queue full",
                "MB",
                row(f"{PAIR}, fill", "resident_bytes", "durable", MB),
                "200 MB",
            ),
            _broker("pair_non_durable", "non-durable messages", PAIR, "non-durable", "80,000/s"),
            *(
                _broker(
                    f"topic_{count}",
                    f"topic to {count}",
                    f"1 broker, topic to {count}, per copy, 1 KB",
                    "non-durable",
                    target,
                )
                for count, target in ((1, "80,000/s"), (10, "150,000/s"), (100, "150,000/s"))
            ),
            _broker(
                "topic_100_durable",
                "topic to 100 durable subscriptions",
                "1 broker, topic to 100 durable subscriptions, per copy, 1 KB",
                "durable",
            ),
            _broker(
                "routed", "through a router", "1 broker behind 1 router, 1 to 1, 1 KB", "durable", "90 % of direct"
            ),
            _broker(
                "waypoint",
                "through a router, a queue on two brokers",
                "a queue on 2 brokers behind 1 router, 1 to 1, 1 KB",
                "durable",
                "80 % of direct",
            ),
        ),
        limit_s=1800.0,
    ),
    *SCALE_MEASUREMENTS,
    *OBSERVER_MEASUREMENTS,
    Measurement(
        RECOVERY,
        ("-m", "mesh_tests.bench.recovery", "--json"),
        (
            Figure(
                "recovery.next", "next delivery after SIGKILL, 10 million messages", "s", at("next_delivery_s"), "5 s"
            ),
            Figure("recovery.memory", "memory at most", "MB", at("peak_mb"), "200 MB"),
        ),
        limit_s=3600.0,
    ),
    Measurement(
        LOGS,
        (
            "-m",
            "mesh_tests.bench.link_log_writer",
        ),
        (
            Figure("writer.cpu", "writer, for each record at level full", "us", at("cpu_us_per_record"), "0.25 us"),
            Figure("writer.bytes", "a record in files", "B", at("bytes_per_record"), "12 B"),
            Figure("writer.idle", "writer with 20 idle rings, of a core", "%", at("idle_percent")),
        ),
    ),
    _report("10m", "25 s"),
    _report("100m", "120 s, 4,000 MB"),
    _outage("one", "SIGKILL, one address", "", "kill"),
    _outage("tls", "SIGKILL, mutual TLS", "", "kill", "--tls", "--runs", "6"),
    _outage("retransmit", "SIGKILL, `retransmit`", "", "kill", "--retransmit", "--runs", "6"),
    _outage(
        "producer",
        "SIGKILL, a queue, its producer far from the broker",
        "",
        "kill",
        "--queue",
        "producer",
        "--runs",
        "6",
    ),
    _outage(
        "consumer",
        "SIGKILL, a queue, its consumer far from the broker",
        "",
        "kill",
        "--queue",
        "consumer",
        "--runs",
        "6",
    ),
    _outage("many", "SIGKILL, 1,000 addresses", "", "kill", "--addresses", "1000", "--runs", "6"),
    _outage("stop", "SIGSTOP, default timers", "", "stop", "--runs", "3"),
    _outage("stop_fast", "SIGSTOP, `hello_interval_s: 0.1`", "", "stop", "--hello", "0.1", "--runs", "6"),
    Measurement(
        LARGE,
        ("-m", "mesh", "simulate", "--routers", "1000", "--duration", "60s", "--json", "--measure"),
        (
            Figure("large.start", "all start at once: until the last router knew", "ms", slowest_change("start")),
            Figure(
                "large.crash",
                "a router crashes or comes back",
                "ms",
                slowest_change("crash r", "restart r"),
                "1,000 ms",
            ),
            Figure("large.cut", "a connection is cut", "ms", slowest_change("cut"), "1,000 ms"),
            Figure(
                "large.paths",
                "CPU of one router to compute all its paths",
                "ms",
                at("machine", "paths_median_ms"),
                "50 ms",
            ),
            Figure(
                "large.learning", "CPU of one router to take in a change", "ms", at("machine", "learning_median_ms")
            ),
            Figure("large.cpu", "CPU of the whole run", "s", at("machine", "cpu_s")),
            Figure("large.memory", "memory of the whole run", "MB", at("machine", "memory_mib", scale=1.048576)),
        ),
        limit_s=1800.0,
    ),
)
