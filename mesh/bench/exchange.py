"""One measurement of a sender and a receiver: the plan for both sides, and the reports of both."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from mesh.bench.processes import BenchProcess


def plan_of(
    count: int, body_bytes: int, mode: str, *, window: int, is_durable: bool, stall_s: float, in_flight: int = 0
) -> dict[str, Any]:
    """Plan ``count`` messages from each producer. ``in_flight`` 0: limited by credit alone."""
    return {
        "run": secrets.randbits(32),
        "count": count,
        "body_bytes": body_bytes,
        "mode": mode,
        "window": window,
        "is_durable": is_durable,
        "in_flight": in_flight,
        "stall_s": stall_s,
    }


def exchange(producer: BenchProcess, consumer: BenchProcess) -> tuple[dict[str, Any], dict[str, Any]]:
    """Let both sides run, and return the report of each; both are still connected afterwards."""
    producer.go_on()
    sent = producer.step()
    consumer.go_on()
    received = consumer.step()
    consumer.step()
    return sent, received


def dismiss(*sides: BenchProcess) -> None:
    for side in sides:
        side.go_on()
    for side in sides:
        side.end()


def wrongs_of(sent: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, int]:
    """Violations that a correct server never commits -> number of messages; lost messages are counted elsewhere."""
    others = {f"{name} to the sender": n for name, n in sent["outcomes"].items() if name != "accepted"}
    found = {key: received[key] for key in ("doubled", "reordered", "damaged")}
    found |= {"unsettled": sent["unsettled"], "settled twice": sent["settled_twice"], **others}
    return {what: number for what, number in found.items() if number}
