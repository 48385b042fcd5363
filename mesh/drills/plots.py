"""Computes the data of the charts of a drill's page: traffic over time, single messages, and examples of failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from mesh.client.journal import Journal
from mesh.drills.rehearsal import RehearsalRecord
from mesh.drills.report import Example, Series
from mesh.drills.traffic import DrillTraffic
from mesh.terminal.figures import rank

SHORTEST_BIN_S = 0.1
MOST_BINS = 600
MOST_MESSAGES = 2000
MOST_EXAMPLES = 20


def phases(record: RehearsalRecord) -> dict[str, tuple[float, float]]:
    began = record.began_at
    faults_at = min((each.at for each in record.injected if each.at), default=record.cooldown_at)
    edges = [round(at - began, 3) for at in (began, faults_at, max(record.cooldown_at, faults_at), record.ended_at)]
    return {
        "baseline": (edges[0], edges[1]),
        "faults": (edges[1], edges[2]),
        "cooldown": (edges[2], edges[3]),
    }


def series(record: RehearsalRecord, traffic: DrillTraffic) -> Series:
    length_s = record.ended_at - record.began_at
    bin_s = max(SHORTEST_BIN_S, round(length_s / MOST_BINS, 2))
    bins = int(length_s / bin_s) + 1

    def bin_of(at: float) -> int:
        return int((at - record.began_at) / bin_s)

    journal = traffic.journal
    sent = Counter(bin_of(at) for at in journal.sent)
    failed = Counter(bin_of(due) for message, due in enumerate(journal.due) if journal.outcome(message) != "accepted")
    received = Counter(bin_of(arrival.at) for arrival in journal.arrivals)
    late: list[list[float]] = [[] for _ in range(bins)]
    for arrival in journal.arrivals:
        index = bin_of(journal.due[arrival.message])
        if 0 <= index < bins:
            late[index].append((arrival.at - journal.due[arrival.message]) * 1000)
    return Series(
        bin_s,
        *(tuple(counted[index] for index in range(bins)) for counted in (sent, received, failed)),
        *(tuple(_share(each, share) for each in late) for share in (0.5, 0.99, 1.0)),
    )


def _share(values: Sequence[float], share: float) -> float | None:
    return round(sorted(values)[rank(share, len(values))], 2) if values else None


def messages(record: RehearsalRecord, traffic: DrillTraffic) -> list[tuple[float, str, float | None]]:
    """Choose at most 2,000 messages of an address for the chart, as (due time in s, outcome, latency in ms).

    Messages that were lost or not accepted come first; the others are sampled evenly over the whole drill.
    """
    journal = traffic.journal
    first = _first_arrivals(journal)
    lost = set(journal.lost())
    odd = [message for message in range(len(journal.due)) if message in lost or journal.outcome(message) != "accepted"]
    odd_set = set(odd)
    even = [message for message in range(len(journal.due)) if message not in odd_set]
    room = max(0, MOST_MESSAGES - len(odd))
    step = max(1, -(-len(even) // room)) if room else len(even) + 1
    chosen = [*odd[:MOST_MESSAGES], *even[::step]]
    return [
        (
            round(journal.due[message] - record.began_at, 3),
            "lost" if message in lost else journal.outcome(message),
            round((first[message] - journal.due[message]) * 1000, 2) if message in first else None,
        )
        for message in chosen
    ]


def _first_arrivals(journal: Journal) -> dict[int, float]:
    first: dict[int, float] = {}
    for arrival in journal.arrivals:
        first.setdefault(arrival.message, arrival.at)
    return first


def examples(record: RehearsalRecord) -> Iterator[Example]:
    left = MOST_EXAMPLES
    for traffic in record.traffics:
        for fate, message in _odd(traffic.journal):
            if left == 0:
                return
            left -= 1
            yield Example(
                traffic.flow.address,
                traffic.journal.name(message),
                round(traffic.journal.due[message] - record.began_at, 3),
                fate,
                _trail(record, traffic, message),
            )


def _odd(journal: Journal) -> Iterator[tuple[str, int]]:
    """Yield fate and journal position of each lost, duplicated, reordered and not accepted message, in this order."""
    for message in journal.lost():
        yield "lost", message
    for fate, arrivals in (("duplicated", journal.duplicated()), ("reordered", journal.reordered())):
        for arrival in arrivals:
            yield fate, arrival.message
    for message in range(len(journal.due)):
        if (outcome := journal.outcome(message)) != "accepted":
            yield outcome, message


def _trail(record: RehearsalRecord, traffic: DrillTraffic, message: int) -> str:
    journal = traffic.journal
    steps = [f"sent {journal.sent[message] - record.began_at:.3f} s", journal.outcome(message)]
    for arrival in journal.arrivals:
        if arrival.message == message:
            place = traffic.flow.receivers[arrival.consumer]
            steps.append(f"received {arrival.at - record.began_at:.3f} s by receiver {arrival.consumer} ({place})")
    return ", ".join(steps)
