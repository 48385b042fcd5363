"""The messages of a pattern's queues are counted at each broker, also those of queues that are gone."""

from __future__ import annotations

from mesh.watch.host_model import ENDED_KEPT_S
from mesh.watch.slots import RingRecords
from mesh_tests.unit.mesh.watch.sample_host import (
    MESSAGE_CODES,
    NOW_S,
    SampleHost,
    add,
    closed,
    messages,
    queue,
)
from recording.columns import RecordEvent, RecordKind


def host_with_queues() -> SampleHost:
    host = SampleHost({"jobs.#": "queue"}, lambda address: "jobs.#" if address.startswith("jobs") else None)
    run = host.node("b1", "broker")
    for number, address in enumerate(("jobs.a", "jobs.b", "other"), 1):
        queue(run, number, address)
    return host


def total_of(host: SampleHost, event: RecordEvent) -> int:
    totals = host.model.nodes["b1"].queue_totals[host.model.patterns["jobs.#"]]
    return int(getattr(totals, event))


def test_messages_of_all_queues_of_a_pattern_are_added_up() -> None:
    host = host_with_queues()
    for number in (1, 2, 3):
        messages(host.runs["b1"], number, RecordEvent.ENQUEUED, 10**number)
        messages(host.runs["b1"], number, RecordEvent.EXPIRED, number)
    assert total_of(host, RecordEvent.ENQUEUED) == 110
    assert total_of(host, RecordEvent.EXPIRED) == 3
    assert len(host.model.nodes["b1"].queue_totals) == 1


def test_the_totals_remain_when_queues_go_and_when_the_broker_is_lost() -> None:
    host = host_with_queues()
    run = host.runs["b1"]
    messages(run, 1, RecordEvent.ENQUEUED, 5)
    add(run, closed(RecordKind.QUEUE, queue=1))
    run.end("lost")
    again = host.node("b1", "broker")
    queue(again, 1, "jobs.a")
    messages(again, 1, RecordEvent.ENQUEUED, 2)
    assert total_of(host, RecordEvent.ENQUEUED) == 7


def test_the_last_messages_of_a_queue_count_though_they_come_after_its_end() -> None:
    host = host_with_queues()
    run = host.runs["b1"]
    end = closed(RecordKind.QUEUE, queue=1)
    removed = {(MESSAGE_CODES[RecordEvent.REMOVED], 1): 4}
    run.add(RingRecords(rows=[(int(NOW_S * 1e6), end)], messages=removed))
    run.add(RingRecords(messages=removed))
    assert total_of(host, RecordEvent.REMOVED) == 8
    assert 1 not in host.model.nodes["b1"].queues
    host.model.on_time(NOW_S + ENDED_KEPT_S)
    run.on_time()
    run.add(RingRecords(messages=removed))
    assert total_of(host, RecordEvent.REMOVED) == 8


def test_a_queue_that_comes_again_with_its_number_counts() -> None:
    host = host_with_queues()
    run = host.runs["b1"]
    add(run, closed(RecordKind.QUEUE, queue=1))
    queue(run, 1, "jobs.a")
    host.model.on_time(NOW_S + ENDED_KEPT_S)
    run.on_time()
    messages(run, 1, RecordEvent.ENQUEUED, 3)
    assert total_of(host, RecordEvent.ENQUEUED) == 3
