"""Runs one measurement with a sending and a receiving process: makes the plan for both, and reads both reports."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from mesh.bench.processes import BenchProcess


def plan_of(
    count: int, body_bytes: int, mode: str, *, window: int, is_durable: bool, stall_s: float, in_flight: int = 0
) -> dict[str, Any]:
    """Make the plan of a measurement in which each producer sends ``count`` messages.

    ``in_flight``: limit of messages without an outcome; 0 if only credit limits the producer.
    """
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
    """Let the producer send, then tell the consumer that no more messages will come; return the report of each.

    The connections of both processes stay open.
    """
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
    """Return the number of messages for each violation of the server in the reports of sender and receiver.

    A violation without a message is left out, and so are lost messages, because these are a figure of their own.
    """
    others = {f"{name} to the sender": n for name, n in sent["outcomes"].items() if name != "accepted"}
    found = {key: received[key] for key in ("doubled", "reordered", "damaged")}
    found |= {"unsettled": sent["unsettled"], "settled twice": sent["settled_twice"], **others}
    return {what: number for what, number in found.items() if number}
