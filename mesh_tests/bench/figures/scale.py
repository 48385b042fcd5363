"""The part of the catalogue about scale: very many addresses, connections and consumers."""

from __future__ import annotations

from mesh_tests.bench.figures.model import Figure, Measurement
from mesh_tests.bench.figures.readers import row

MB = 1 / 1e6
MS = 1 / 1e3
"""Factor from microseconds to milliseconds."""

SCALE = "Scale: very many addresses, connections and consumers"
ANONYMOUS = "1 router and 1 broker, 1 anonymous sender, 1,000,000 messages to 100,000 addresses"
ATTACHED = "1 router, 20 connections attach 1,000 links each, an address each"
CYCLE = "1 router, connect, attach, send one, close"
BUSY = "1 router, 2,000 connections send in turn to 10 consumers, 100 B"
OTHERS = "1 router, others while 8 connections attach 1,000 links each, an address each"


def _scale(command: str, *figures: Figure, options: tuple[str, ...] = (), limit_s: float = 900.0) -> Measurement:
    return Measurement(SCALE, ("-m", "mesh", "bench", command, "--json", *options), figures, limit_s=limit_s)


SCALE_MEASUREMENTS: tuple[Measurement, ...] = (
    _scale(
        "addresses",
        *(
            figure
            for part, cpu in (("router", "2.5 us"), ("broker", "9 us"))
            for figure in (
                Figure(
                    f"scale.addresses.{part}.cpu",
                    f"message without a link's address to one of 100,000 topics: {part}",
                    "us",
                    row(f"{ANONYMOUS}: {part}", "cpu_us_per_message"),
                    cpu,
                ),
                Figure(
                    f"scale.addresses.{part}.memory",
                    f"memory of the {part} for each of these topics",
                    "B",
                    row(f"{ANONYMOUS}: {part}", "bytes_per_address"),
                    "300 B",
                ),
                Figure(
                    f"scale.addresses.{part}.idle",
                    f"memory of the {part} for each of these topics, after 70 s without messages",
                    "B",
                    row(f"{ANONYMOUS}: {part}", "idle_bytes_per_address"),
                ),
            )
        ),
        limit_s=1800.0,
    ),
    _scale(
        "attaches",
        Figure(
            "scale.attaches.connection",
            "connection opened with a link",
            "us",
            row("1 router, 20 connections opened with a link", "cpu_us_each"),
            "130 us",
        ),
        Figure("scale.attaches.link", "attach of a link", "us", row(ATTACHED, "cpu_us_each"), "20 us"),
        Figure("scale.attaches.others.p99", "others meanwhile: p99", "ms", row(OTHERS, "p99_us", scale=MS)),
        Figure("scale.attaches.others.max", "others meanwhile: worst", "ms", row(OTHERS, "max_us", scale=MS), "8 ms"),
    ),
    _scale(
        "cycles",
        *(
            figure
            for key, how in (("one", "one after the other"), ("eight", "8 at once"))
            for figure in (
                Figure(
                    f"scale.cycles.{key}.cpu",
                    f"connect, attach, send one, close: {how}",
                    "us",
                    row(f"{CYCLE}, {how}", "cpu_us_each"),
                    "180 us",
                ),
                Figure(f"scale.cycles.{key}.rate", f"cycles, {how}", "/s", row(f"{CYCLE}, {how}", "cycles_per_s")),
            )
        ),
    ),
    _scale(
        "fan",
        *(
            figure
            for count, target in (("1,000", "14 us"), ("10", "4 us"))
            for figure in (
                Figure(
                    f"scale.fan.{count.replace(',', '')}.cpu",
                    f"one sender to 1,000 consumers on {count} connections",
                    "us",
                    row(f"1 router, 1 to 1,000 consumers on {count} connections, 100 B", "cpu_us_per_message"),
                    target,
                ),
                Figure(
                    f"scale.fan.{count.replace(',', '')}.shares",
                    f"shares of these consumers on {count} connections: largest above smallest",
                    "%",
                    row(f"1 router, 1 to 1,000 consumers on {count} connections, 100 B", "shares_differ_percent"),
                    "1 %",
                ),
            )
        ),
    ),
    _scale(
        "footprint",
        *(
            Figure(
                f"scale.footprint.{key}",
                f"`up` of one router, idle, PSS: {name}",
                "MB",
                row(f"up of 1 router: {name}", "pss_bytes", "idle", MB),
                target,
            )
            for key, name, target in (
                ("together", "together", "120 MB"),
                ("supervisor", "supervisor", ""),
                ("router", "node r1", ""),
                ("writer", "link log writer", ""),
                ("observer", "observer", ""),
            )
        ),
    ),
    _scale(
        "handshakes",
        Figure(
            "scale.handshakes.rate",
            "TLS handshakes of clients, 4 at once",
            "/s",
            row("1 router, handshakes, 4 at once", "handshakes_per_s"),
            "800/s",
        ),
        Figure(
            "scale.handshakes.cpu",
            "CPU of the router for each handshake",
            "us",
            row("1 router, handshakes, 4 at once", "cpu_us_each"),
        ),
        Figure(
            "scale.handshakes.others.p99",
            "others meanwhile: p99",
            "ms",
            row("1 router, others beside handshakes, 4 at once", "p99_us", scale=MS),
        ),
    ),
    _scale(
        "busy",
        Figure(
            "scale.busy.cpu",
            "2,000 connections send 10,000/s",
            "us",
            row(BUSY, "cpu_us_per_message"),
            "45 us",
        ),
        Figure("scale.busy.p50", "their messages: p50", "ms", row(BUSY, "p50_us", scale=MS), "0.5 ms"),
        Figure("scale.busy.p99", "their messages: p99", "ms", row(BUSY, "p99_us", scale=MS)),
    ),
)
