"""`bench busy`: its rows, and what is wrong in them. Its loop is tested in test_crowd.py."""

from __future__ import annotations

from mesh.bench.busy import BusyBenchRequest, BusyBenchRun, sentences


def test_rows_name_connections_consumers_and_rate() -> None:
    order = BusyBenchRequest(
        connections=2000, consumers=10, rate_per_s=10_000.0, seconds=1.0, body_bytes=100, repeat=1, stall_s=1.0
    )
    assert order.name("r") == "r, 2,000 connections send in turn to 10 consumers, 100 B"
    assert order.mode == "unsettled, 10,000/s"


def test_lost_doubled_and_released_messages_are_wrong() -> None:
    runs = [BusyBenchRun({"lost": 3}, {"doubled": 1}), BusyBenchRun({"lost": 0}, {"released to the sender": 1})]
    assert list(sentences("w", runs)) == [
        "w: 3 messages did not arrive",
        "w: 1 messages doubled",
        "w: 1 messages released to the sender",
    ]
