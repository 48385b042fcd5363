"""The part of the catalogue about the observer: its answers and memory, and what being watched costs a router."""

from __future__ import annotations

from mesh_tests.bench.figures.model import Figure, Measurement
from mesh_tests.bench.figures.readers import at

MB = 1 / 1e6

OBSERVER = "Observer: 100,000 addresses, each with a producer and a queue"
ANSWERS = {
    "first": "first page of addresses",
    "rate": "addresses by rate",
    "filter": "addresses by a filter",
    "links": "links by a filter and rate",
    "queues": "queues by depth",
    "one": "one address",
    "metrics": "metrics",
    "detailed": "detailed metrics of 1,000 queues",
}

OBSERVER_MEASUREMENTS: tuple[Measurement, ...] = (
    Measurement(
        OBSERVER,
        ("-m", "mesh_tests.bench.observer"),
        (
            *(
                Figure(f"observer.{key}.{part}", f"{title}: {part}", "ms", at("answers", title, f"{part}_ms"))
                for key, title in ANSWERS.items()
                for part in ("p50", "p99")
            ),
            Figure(
                "observer.memory",
                "memory of the observer for 10,000 of these addresses",
                "MB",
                at("bytes_per_10000_addresses", scale=MB),
            ),
        ),
    ),
    Measurement(
        OBSERVER,
        ("-m", "mesh_tests.bench.watched"),
        (
            Figure(
                "observer.watched.router",
                "1 to 1 at full speed, watched by 20 viewers, scrapes and queries: router, for each message",
                "us",
                at("watched", "median_us"),
            ),
            Figure("observer.watched.nobody", "the same while nobody watches", "us", at("nobody", "median_us")),
            Figure(
                "observer.watched.observer",
                "CPU seconds of the observer for each second, watched",
                "s",
                at("watched", "observer_cpus"),
            ),
            Figure(
                "observer.watched.idle",
                "CPU seconds of the observer for each second while nobody watches",
                "s",
                at("nobody", "observer_cpus"),
            ),
        ),
        limit_s=1800.0,
    ),
)
