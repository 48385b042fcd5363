"""Queries of the observer: filters, sorting, pages, fields, and what is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.watch.host_model import HostModel, NodeRecords
from mesh.watch.query import MAX_LIMIT, Page, QueryError, answer, parse
from mesh.watch.slots import RingRecords
from recording.entities import ENTITIES, LINK, EntityFieldType

HARMLESS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def host_of(links: list[dict[str, Any]]) -> HostModel:
    host = HostModel(lambda address: None)
    records = RingRecords(rows=[(0, {"kind": "connection", "event": "opened", "connection": 1, "role": "client"})])
    for number, columns in enumerate(links, 1):
        row = {"kind": "link", "event": "opened", "link": number, "connection": 1, "role": "producer", **columns}
        records.rows.append((number, {name: value for name, value in row.items() if value is not None}))
    NodeRecords(host, host.node("r1"), 0.0).add(records)
    return host


def ask(host: HostModel, *parameters: tuple[str, str]) -> Page:
    return answer(parse(LINK, parameters), host.states(LINK))


def ids(page: Page) -> list[str]:
    return [row["id"] for row in page.rows]


def test_without_parameters_the_first_entities_come_by_their_id_with_all_fields() -> None:
    page = ask(host_of([{"address": "a"}, {"address": "b"}]))
    assert ids(page) == ["r1/1", "r1/2"]
    assert (page.total, page.matched, page.next) == (2, 2, None)
    assert tuple(page.rows[0]) == LINK.names


def test_all_filters_have_to_hold() -> None:
    host = host_of([{"address": "tea", "name": "x"}, {"address": "teapot"}, {"address": "coffee", "name": "x"}])
    assert ids(ask(host, ("filter", "address~tea"))) == ["r1/1", "r1/2"]
    assert ids(ask(host, ("filter", "address~tea"), ("filter", "name=x"))) == ["r1/1"]
    assert ids(ask(host, ("filter", "name="))) == ["r1/2"]
    assert ids(ask(host, ("filter", "name!="))) == ["r1/1", "r1/3"]
    assert ids(ask(host, ("filter", "address!=tea"))) == ["r1/2", "r1/3"]
    assert ids(ask(host, ("filter", "attached_at>0.0000015"))) == ["r1/2", "r1/3"]
    assert ids(ask(host, ("filter", "attached_at<=0.000002"))) == ["r1/1", "r1/2"]
    assert ids(ask(host, ("filter", "unsettled<5"))) == []


def test_a_value_may_have_any_characters() -> None:
    host = host_of([{"address": "a=b&c\n<d>"}, {"address": "a"}])
    assert ids(ask(host, ("filter", "address=a=b&c\n<d>"))) == ["r1/1"]


def test_only_the_fields_that_were_asked_for_come_and_the_id() -> None:
    page = ask(host_of([{"address": "a"}]), ("fields", "address,rate"))
    assert page.rows == [{"id": "r1/1", "address": "a", "rate": 0.0}]


@pytest.mark.parametrize("sort", ["address", "-address", "attached_at", "-attached_at", "name", "-name", "id", "-id"])
@given(
    st.lists(st.fixed_dictionaries({"address": HARMLESS, "name": st.none() | HARMLESS}), max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=40)
def test_the_pages_together_have_each_entity_once_and_in_order(
    sort: str, links: list[dict[str, Any]], limit: int
) -> None:
    host = host_of([{**link, "address": link["address"] or "x"} for link in links])
    found: list[dict[str, Any]] = []
    after: tuple[tuple[str, str], ...] = ()
    for _ in range(len(links) + 1):
        page = ask(host, ("sort", sort), ("limit", str(limit)), *after)
        assert len(page.rows) <= limit
        found += page.rows
        if page.next is None:
            break
        after = (("after", page.next),)
    assert sorted(row["id"] for row in found) == sorted(f"r1/{number + 1}" for number in range(len(links)))
    values = [row[sort.removeprefix("-")] for row in found]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=sort.startswith("-"))
    assert values == known + [None] * (len(values) - len(known))


@pytest.mark.parametrize(
    ("parameters", "place", "words"),
    [
        ([("filter", "adress=a")], "filter", "links have no field 'adress'"),
        ([("filter", "address")], "filter", "'address' is not a filter, expected FIELD, an operator and a value"),
        ([("filter", "rate=fast")], "filter", "rate is a number, and 'fast' is none"),
        ([("filter", "rate=nan")], "filter", "rate is a number, and 'nan' is none"),
        ([("filter", "rate~1")], "filter", "rate is a number, and ~ compares text only"),
        ([("sort", "size")], "sort", "links have no field 'size'"),
        ([("sort", "--rate")], "sort", "links have no field '-rate'"),
        ([("fields", "id,,rate")], "fields", "links have no field ''"),
        ([("limit", "0")], "limit", f"expected a whole number from 1 to {MAX_LIMIT}"),
        ([("limit", "1001")], "limit", f"expected a whole number from 1 to {MAX_LIMIT}"),
        ([("limit", "9" * 5000)], "limit", f"expected a whole number from 1 to {MAX_LIMIT}"),
        ([("after", "W1tb" * 20_000)], "after", "is not a cursor"),
        ([("filter", "rate>1")] * 17, "filter", "more than 16 filters"),
        ([("limit", "²")], "limit", f"expected a whole number from 1 to {MAX_LIMIT}"),
        ([("after", "here")], "after", "'here' is not a cursor"),
        ([("after", "bnVsbA")], "after", "'bnVsbA' is not a cursor"),
        ([("limit", "1"), ("limit", "2")], "limit", "the parameter limit is given twice"),
        ([("page", "2")], "page", "unknown parameter 'page'"),
    ],
)
def test_a_wrong_query_is_refused_with_the_place(parameters: list[tuple[str, str]], place: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(LINK, parameters)
    assert caught.value.place == place
    assert words in str(caught.value)


def test_a_cursor_of_another_order_is_refused() -> None:
    cursor = ask(host_of([{}, {}]), ("limit", "1")).next
    assert cursor is not None
    with pytest.raises(QueryError, match="sorted in another way"):
        parse(LINK, [("after", cursor), ("sort", "-id")])


@pytest.mark.parametrize("content", [["rate", False, "fast", "r1/1"], ["rate", False, 1, 1], ["rate", False, 1], 5])
def test_a_cursor_that_was_made_by_hand_is_refused(content: object) -> None:
    text = base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")
    with pytest.raises(QueryError, match="is not a cursor, expected the `next` of a page"):
        parse(LINK, [("after", text), ("sort", "rate")])


@given(st.lists(st.tuples(st.sampled_from(["filter", "sort", "limit", "after", "fields", "x"]), st.text(max_size=20))))
@settings(max_examples=300)
def test_any_parameters_are_answered_or_refused(parameters: list[tuple[str, str]]) -> None:
    host = host_of([{"address": "a"}])
    for entity in ENTITIES:
        try:
            query = parse(entity, parameters)
        except QueryError:
            continue
        answer(query, host.states(entity))


def test_each_field_can_be_filtered_and_sorted() -> None:
    host = host_of([{"address": "a"}, {"address": "b", "name": "n"}])
    for entity in ENTITIES:
        for field in entity.fields:
            value = "1" if field.type is EntityFieldType.NUMBER else "x"
            for sign in ("=", "!=", "<", ">="):
                answer(parse(entity, [("filter", f"{field.name}{sign}{value}")]), host.states(entity))
            answer(parse(entity, [("sort", f"-{field.name}")]), host.states(entity))
