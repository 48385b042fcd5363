"""Who is said to have waited for credit, and for whom; and what consumers keep."""

from typing import Any

import pytest

from mesh.reports.finding import ReportFinding
from mesh.reports.findings import findings
from mesh_tests.unit.mesh.reports.tables import LINK, MOVED, at, summary

S = 1_000_000


def texts(**tables: list[dict[str, Any]]) -> list[str]:
    return [finding.text for finding in findings(summary(**tables))]


def waited(seconds: float, cause: str, **more: Any) -> dict[str, Any]:
    """Of 100 s."""
    times = {"starved_us": round(seconds * S), "share": seconds / 100, "since_at": at(3)}
    return {**LINK, "direction": "incoming", "user": None, "cause": cause, **times, **more}


def keeps(seconds: float, **more: Any) -> dict[str, Any]:
    kept = {"most_unsettled": 12, "last_unsettled": 3, "longest_us": round(seconds * S), "since_at": at(4)}
    return {**LINK, "role": "consumer", "container": "slow", "direction": "outgoing", "user": None, **kept, **more}


@pytest.mark.parametrize(
    ("cause", "why"), [("no_taker", "the address had no consumer"), ("takers", "its consumers gave no credit")]
)
def test_a_producer_that_waited_is_told_with_who_kept_it_waiting(cause: str, why: str) -> None:
    row = {**LINK, "direction": "incoming", "user": None, "cause": cause, "starved_us": 5 * S, "share": 0.25}
    assert texts(credit=[row]) == [
        f"producer app at r1 waited 5 s for credit to send to orders, 25 % of the time: {why}"
    ]


def test_a_wait_of_less_than_a_second_is_not_told() -> None:
    row = {**LINK, "direction": "incoming", "user": None, "cause": "takers", "starved_us": S - 1, "share": 0.1}
    assert texts(credit=[row]) == []


def test_probes_of_the_mesh_itself_that_wait_are_not_told() -> None:
    row = {**LINK, "direction": "incoming", "user": None, "cause": "no_taker", "starved_us": 10 * S, "share": 0.2}
    assert texts(credit=[{**row, "address": "_amqpmesh/probe/f44839ba-r1"}]) == []
    assert len(texts(credit=[{**row, "address": "_topo/0/r1/temp.x"}, {**row, "address": None}])) == 2


def test_a_consumer_that_keeps_what_it_got_is_told_of() -> None:
    held = {"most_unsettled": 12, "last_unsettled": 3, "held_us": 200 * S, "longest_us": 90 * S}
    row = {**LINK, "role": "consumer", "direction": "outgoing", "user": None, **held}
    assert texts(unsettled=[row]) == [
        "consumer app at r1 kept 12 deliveries of orders without an outcome for 90 s; 3 of them at the end"
    ]
    assert texts(unsettled=[{**row, "longest_us": 50 * S}]) == []
    assert texts(unsettled=[{**row, "role": "circuit"}]) == []
    often = [{**row, "held_us": 5000 * S, "longest_us": 40 * S} for _ in range(5)]
    assert len(texts(unsettled=[*often, row])) == 1


def test_a_circuit_that_waited_is_not_told() -> None:
    row = {**LINK, "direction": "incoming", "user": None, "cause": "no_taker", "starved_us": 50 * S, "share": 0.9}
    assert texts(credit=[{**row, "role": "circuit"}]) == []


def test_each_cause_is_told_however_many_waited_longer_for_another() -> None:
    many = [waited(90 - number, "takers", address=f"slow.{number}") for number in range(5)]
    found = texts(credit=[*many, waited(20, "no_taker", address="none"), waited(10, "full_queue", address="small")])
    assert sum("gave no credit" in text for text in found) == 3
    assert sum("to none, 20 % of the time: the address had no consumer" in text for text in found) == 1
    assert sum("to small, 10 % of the time: the queue was full" in text for text in found) == 1
    assert found[-1] == "producers of 2 more addresses waited for credit"


def test_of_links_that_waited_for_one_matter_the_longest_is_told_and_the_others_counted() -> None:
    rows = [waited(seconds, "takers", link=seconds, container=f"app{seconds}") for seconds in (5, 9, 7)]
    assert texts(credit=rows) == [
        "producer app9 at r1 waited 9 s for credit to send to orders, 9 % of the time (2 more such links waited, too): "
        "its consumers gave no credit"
    ]


def test_a_producer_that_waited_for_a_broker_waited_for_what_the_broker_says() -> None:
    full = waited(88, "full_queue", node="b1", container="r1")
    [finding] = findings(summary(credit=[waited(90, "takers"), full]))
    assert finding.text.startswith("producer app at r1 waited 90 s")
    assert finding.text.endswith("the queue was full")
    assert finding.since == at(3)
    # The broker was full for a moment: that is not why its producer waited for so long.
    assert len(texts(credit=[waited(90, "takers"), {**full, "starved_us": 10 * S}])) == 2


def test_a_consumer_that_keeps_what_it_got_is_why_producers_wait() -> None:
    [finding] = findings(summary(credit=[waited(88, "takers"), waited(2, "takers", link=9)], unsettled=[keeps(20)]))
    assert finding.text == (
        "consumer slow at r1 kept 12 deliveries of orders without an outcome for 20 s; "
        "producer app at r1 waited 88 s for credit to send to it, 88 % of the time"
    )
    assert (finding.since, finding.weight) == (at(4), pytest.approx(0.35 + 0.88 / 3))
    assert "no more credit than the number of messages that it works on" in finding.helps


def test_of_many_addresses_whose_consumers_keep_what_they_got_some_are_told_and_the_others_counted() -> None:
    names = [f"a{number}" for number in range(5)]
    credit = [waited(50 - number, "takers", address=name) for number, name in enumerate(names)]
    found = texts(credit=credit, unsettled=[keeps(100, address=name) for name in names])
    assert [text.split(" of ")[1].split()[0] for text in found[:3]] == names[:3]
    assert found[3:] == ["producers of 2 more addresses waited for credit"]


def helps_with_modified(**tables: list[dict[str, Any]]) -> str:
    row = {**MOVED, "address": "orders", "accepted": 93, "modified": 7}
    found: list[ReportFinding] = findings(summary(addresses=[row], **tables))
    return next(each.helps for each in found if "not accepted" in each.text and "messages to" in each.text)


def test_what_a_consumer_kept_and_gave_up_is_not_put_down_to_outages() -> None:
    outage = {"node": "r1", "neighbor": "r2", "cause": "c", "why": None, "lasted_s": 1.0, "failed": 0, "at": at(1)}
    assert "Consumers left, or were lost" in helps_with_modified(unsettled=[keeps(100)], outages=[outage])
    assert "see the outages" in helps_with_modified(outages=[outage])
    assert "Consumers gave these messages back" in helps_with_modified()
