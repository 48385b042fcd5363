"""What the console calls wrong, in which order, and what it leaves out."""

from __future__ import annotations

from mesh.watch.troubles import MAX_OF_A_KIND, OLD_S, Trouble, troubles
from mesh_tests.unit.mesh.watch.console_host import NOW_S, TOKEN, ConsoleHost
from recording.columns import RecordEvent, RecordKind
from recording.entities import FINDING


def found(host: ConsoleHost) -> list[Trouble]:
    return troubles(host.plan, host.state, host.model)[0]


def only(host: ConsoleHost) -> Trouble:
    (trouble,) = found(host)
    return trouble


def running() -> ConsoleHost:
    host = ConsoleHost()
    host.start_all()
    return host


def test_nothing_is_wrong_with_a_mesh_that_runs() -> None:
    assert found(running()) == []


def test_nothing_is_wrong_with_nodes_of_other_hosts() -> None:
    assert found(ConsoleHost()) == []


def test_a_lost_node_is_first_with_the_time_of_its_last_record() -> None:
    host = running()
    host.connect("r2", 7, "alice")
    host.produce("r2", 1, 7, "rpc.x")
    host.starve("r2", 1, "no_taker")
    host.model.nodes["r1"].age_s = 12.0
    host.runs["r1"].end("lost")
    first = found(host)[0]
    assert (first.kind, first.subject, first.since) == ("lost", "r1", NOW_S - 12)
    assert "without a record of its end" in first.text


def test_a_node_that_failed_is_lost_and_one_that_was_stopped_is_not() -> None:
    host = running()
    host.add("r1", RecordKind.NODE, RecordEvent.CLOSED, cause="failed")
    host.runs["r1"].end("lost")
    host.add("b1", RecordKind.NODE, RecordEvent.CLOSED, cause="stopped")
    host.runs["b1"].end("ended")
    assert [each.subject for each in found(host) if each.kind == "lost"] == ["r1"]


def test_a_silent_node_is_a_trouble() -> None:
    host = running()
    host.model.nodes["r1"].state = "silent"
    assert found(host)[0].kind == "silent"


def test_a_missing_neighbor_and_a_missing_broker_are_named() -> None:
    host = running()
    host.add("r1", RecordKind.NEIGHBOR, RecordEvent.CLOSED, neighbor="r2")
    assert "r1 and r2 have no connection: the neighbor is missing" in only(host).text
    host.add("r1", RecordKind.NEIGHBOR, neighbor="r2", cost=1)
    host.add("r3", RecordKind.CONNECTION, RecordEvent.CLOSED, connection=1)
    assert "r3 and b1 have no connection: the broker is missing" in only(host).text


def test_producers_that_wait_are_one_trouble_for_each_address_and_cause() -> None:
    host = running()
    for number, user in enumerate(("alice", "bob", "alice"), start=2):
        host.connect("r1", number, user)
        host.produce("r1", number, number, "rpc.x")
        host.starve("r1", number, "no_taker")
    trouble = only(host)
    assert trouble.text == ("3 producers of alice and bob wait at rpc.x: no consumer takes messages from the address")
    assert (trouble.view, trouble.parameters) == ("/address", {"address": "rpc.x"})
    # `starve` tells of a second without credit.
    assert trouble.since == NOW_S - 1
    host.add("r1", RecordKind.CREDIT, RecordEvent.CHANGED, link=2, credit=5)
    assert only(host).text.startswith("2 producers of ")


def test_links_within_the_mesh_that_wait_are_not_counted_as_producers() -> None:
    host = running()
    host.connect("r1", 2, "alice")
    host.produce("r1", 1, 2, "rpc.x")
    host.add("r1", RecordKind.LINK, link=2, connection=2, role="circuit", direction="incoming", address="rpc.x")
    for link in (1, 2):
        host.starve("r1", link, "takers")
    assert only(host).text.startswith("1 producer of alice waits at rpc.x: ")


def test_a_queue_is_a_trouble_once_its_oldest_message_is_old() -> None:
    host = running()
    columns = {"queue": 1, "address": "orders", "depth_count": 3, "oldest_us": int((OLD_S - 1) * 1e6)}
    host.add("b1", RecordKind.QUEUE, **columns)
    assert found(host) == []
    host.model.utc_s += 1
    trouble = only(host)
    assert (trouble.kind, trouble.since) == ("old", NOW_S - OLD_S + 1)
    assert trouble.text == "orders has 3 messages and no consumers: the oldest waits long"


def test_findings_are_served_with_the_fields_of_the_model_and_those_of_the_map() -> None:
    host = running()
    host.connect("r1", 2, "alice")
    host.produce("r1", 1, 2, "rpc.x")
    host.starve("r1", 1, "no_taker")
    host.runs["r2"].end("lost")
    page = host.ask("/api/findings", authorization=f"Bearer {TOKEN}").content
    assert [(each["kind"], each["subject"]) for each in page["items"]] == [("lost", "r2"), ("waiting", "rpc.x")]
    assert {tuple(each) for each in page["items"]} == {FINDING.names}
    assert (page["left_out"], page["missing"]) == (0, [])
    shown = host.ask("/console/map", authorization=f"Bearer {TOKEN}").content
    assert shown["troubles"] == page["items"]


def test_many_troubles_of_a_kind_are_counted() -> None:
    host = running()
    host.connect("r1", 2, "alice")
    for number in range(MAX_OF_A_KIND + 7):
        host.produce("r1", number + 1, 2, f"rpc.{number}")
        host.starve("r1", number + 1, "takers")
    shown, left_out = troubles(host.plan, host.state, host.model)
    assert (len(shown), left_out) == (MAX_OF_A_KIND, 7)


def test_a_long_address_is_shortened_in_the_sentence_only() -> None:
    host = running()
    address = "rpc." + "x" * 65_536
    host.connect("r1", 2, "alice")
    host.produce("r1", 1, 2, address)
    host.starve("r1", 1, "no_taker")
    trouble = only(host)
    assert len(trouble.text) < 400
    assert trouble.subject == address
