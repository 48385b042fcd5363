"""`/metrics/detailed`: the entities that were asked for, no more than asked for, and a sentence for a wrong request."""

from __future__ import annotations

import pytest

from mesh.watch.metric_details import DEFAULT_TOP, MAX_TOP, DetailQueryError, detailed_exposition, parse_detail_query
from mesh_tests.unit.mesh.watch.sample_host import SampleHost, attach, connect, large_host, small_mesh
from mesh_tests.unit.mesh.watch.scraped import Scraped

LEFT_OUT = "amqpmesh_detailed_rows_left_out"


def ask(host: SampleHost, **parameters: str) -> Scraped:
    return Scraped(detailed_exposition(host.model, parse_detail_query(tuple(parameters.items()))))


def test_each_address_has_its_own_series() -> None:
    found = ask(small_mesh(), family="address")
    tea = {"address": "rpc.tea", "pattern": "rpc.#"}
    assert found.value("amqpmesh_detailed_address_producers", **tea) == 2
    labels = {**tea, "direction": "in", "outcome": "accepted"}
    assert found.value("amqpmesh_detailed_address_deliveries_total", **labels) == 55
    assert found.value("amqpmesh_detailed_address_messages", address="orders", pattern="orders") == 7
    assert found.value(LEFT_OUT, family="address") == 0


def test_queues_links_and_users_have_theirs() -> None:
    host = small_mesh()
    queues, links, users = (ask(host, family=family) for family in ("queue", "link", "user"))
    # A label without a value is empty.
    orders = {"node": "b1", "address": "orders", "subscriber": ""}
    assert queues.value("amqpmesh_detailed_queue_messages", **orders) == 7
    waiting = {"link": "r2/12", "role": "producer", "address": "orders", "user": "bob"}
    assert links.value("amqpmesh_detailed_link_starved_seconds_total", **waiting, cause="no_taker") == 2.5
    assert links.value("amqpmesh_detailed_link_credit", **waiting) == 0
    assert users.value("amqpmesh_detailed_user_links", user="alice") == 3


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [("rpc.tea", {"rpc.tea"}), ("rpc.#", {"rpc.tea"}), ("*", {"orders", "news"}), ("rpc", set()),
     ("#", {"rpc.tea", "orders", "news"})],
)  # fmt: skip
def test_a_pattern_chooses_addresses_as_in_the_topology(pattern: str, wanted: set[str]) -> None:
    found = ask(small_mesh(), family="address", match=pattern)
    assert {each["address"] for each in found.labels("amqpmesh_detailed_address_producers")} == wanted


def test_the_largest_are_shown_and_the_others_counted() -> None:
    found = ask(small_mesh(), family="queue", top="1", by="enqueued")
    assert [each["address"] for each in found.labels("amqpmesh_detailed_queue_messages")] == ["orders"]
    assert found.value(LEFT_OUT, family="queue") == 1


def test_entities_without_a_value_come_last() -> None:
    found = ask(small_mesh(), family="queue", top="1", by="oldest_s")
    assert [each["address"] for each in found.labels("amqpmesh_detailed_queue_messages")] == ["orders"]


@pytest.mark.parametrize(("top", "shown"), [({}, DEFAULT_TOP), ({"top": str(MAX_TOP)}, MAX_TOP)])
def test_an_answer_has_no_more_rows_than_the_cap(top: dict[str, str], shown: int) -> None:
    query = parse_detail_query((("family", "address"), *top.items()))
    text = "".join(detailed_exposition(large_host(MAX_TOP + 500).model, query))
    assert text.count("\namqpmesh_detailed_address_producers{") == shown
    assert text.endswith(f'\n{LEFT_OUT}{{family="address"}} {MAX_TOP + 500 - shown}\n')


def test_an_address_longer_than_any_pattern_matches_no_wildcard() -> None:
    host = SampleHost({})
    run = host.node("r1")
    connect(run, 1)
    attach(run, 1, "producer", "x" * 70_000)
    assert ask(host, family="address", match="#").labels("amqpmesh_detailed_address_producers") == []
    assert len(ask(host, family="address").labels("amqpmesh_detailed_address_producers")) == 1


@pytest.mark.parametrize(
    ("parameters", "place", "sentence"),
    [
        ((), "family", "family: the parameter is missing, expected one of address, queue, link, user"),
        ((("family", "node"),), "family", "unknown family 'node', expected one of address, queue, link, user"),
        ((("famly", "link"),), "'famly'", "unknown parameter, expected one of family, match, top, by"),
        ((("family", "link"), ("family", "user")), "family", "given twice, expected once"),
        (
            (("family", "user"), ("by", "colour")),
            "by",
            "'colour' is not a number of users, expected one of connections",
        ),
        ((("family", "link"), ("by", "role")), "by", "'role' is not a number of links, expected one of"),
        ((("family", "link"), ("match", "a*")), "match", "must stand for a whole token"),
        ((("family", "link"), ("match", "")), "match", "expected an address or pattern, got an empty text"),
        *(
            ((("family", "link"), ("top", top)), "top", f"expected a whole number from 1 to 10000, got {top!r}")
            for top in ("0", "10001", "-1", "1.5", "many", "", "\u0663", "9" * 30)
        ),
        ((("family", "link"), ("top", "9" * 5000)), "top", "9..."),
    ],
)
def test_a_wrong_request_gets_the_place_and_what_is_allowed(
    parameters: tuple[tuple[str, str], ...], place: str, sentence: str
) -> None:
    with pytest.raises(DetailQueryError) as raised:
        parse_detail_query(parameters)
    assert raised.value.place == place
    assert sentence in str(raised.value)
    assert len(str(raised.value)) < 1500
