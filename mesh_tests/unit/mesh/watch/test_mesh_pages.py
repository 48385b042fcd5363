"""Pages of a mesh: equal to the pages of one host that has the rows of all hosts, whatever the hosts and the query."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.watch import mesh_pages
from mesh.watch.host_answers import HostAnswers
from mesh.watch.mesh_pages import MeshPage, combined, mesh_page
from mesh.watch.query import Page, QueryError, answer, parse
from mesh.watch.states import ObservedAddress, ObservedNode, ObservedPattern, ObservedQueue, row_of
from mesh_tests.unit.mesh.watch.sample_sites import SampleSite
from recording.entities import ADDRESS, QUEUE, Entity

PATTERN = ObservedPattern("a.#", "anycast")


class RowHost:
    """A host that has only rows of one entity."""

    def __init__(self, states: list[Any]) -> None:
        self._states = states

    def states(self, entity: Entity) -> list[Any]:
        return self._states


@dataclass(frozen=True)
class Numbers:
    """What one host has of one address."""

    deliveries: int
    rate: float
    last_us: int | None
    depth: int | None


def address_of(name: str, numbers: Numbers) -> ObservedAddress:
    address = ObservedAddress(name, PATTERN if name < "m" else None)
    address.treatment = "closest"
    address.producers = numbers.deliveries % 3
    address.ingress.deliveries, address.ingress.rate = numbers.deliveries, numbers.rate
    address.ingress.last_us, address.depth = numbers.last_us, numbers.depth
    return address


def queue_of(node: str, number: int, depth: int, came_at: float | None) -> ObservedQueue:
    queue = ObservedQueue(ObservedNode(node), {"queue": number, "address": f"q{depth}"}, lambda: 1000.0)
    queue.depth, queue.came_at = depth, came_at
    return queue


NAMES = [f"{letter}{number}" for letter in "axz" for number in range(8)]
# Numbers are often equal, and often 0. A sum of halves is exact in any order.
SMALL = st.integers(0, 3)
HALVES = SMALL.map(lambda number: number / 2)
NUMBERS = st.builds(Numbers, SMALL, HALVES, st.none() | SMALL, st.none() | SMALL)
ADDRESSES = st.dictionaries(st.sampled_from(NAMES), NUMBERS, max_size=20)
QUEUES = st.lists(st.tuples(SMALL, st.none() | SMALL.map(float)), max_size=15)
SORTS = st.sampled_from(["id", "-id", "-in_rate", "-in_deliveries", "-in_last_at", "-depth", "-pattern", "pattern"])


def walk(entity: Entity, sites: list[SampleSite], parameters: list[tuple[str, str]]) -> list[MeshPage]:
    """All pages, each by the cursor of the one before."""
    pages: list[MeshPage] = []
    cursor: list[tuple[str, str]] = []
    while True:
        pages.append(asyncio.run(mesh_page(entity, [*parameters, *cursor], sites)))
        if pages[-1].page.next is None:
            return pages
        assert len(pages) < 100
        cursor = [("after", pages[-1].page.next)]


def rows_of(pages: list[MeshPage]) -> list[dict[str, Any]]:
    return [row for each in pages for row in each.page.rows]


@settings(max_examples=40)
@given(st.lists(QUEUES, min_size=1, max_size=4), st.sampled_from(["id", "-depth", "oldest_s", "-oldest_s", "-address"]),
       st.integers(1, 7), st.sampled_from([[], ["depth>0"], ["address~1", "oldest_s!="]]))  # fmt: skip
def test_pages_over_hosts_are_the_pages_of_one_host_with_all_rows(
    hosts: list[list[tuple[int, float | None]]], sort: str, limit: int, filters: list[str]
) -> None:
    states = [
        [queue_of(f"b{host}", number, *queue) for number, queue in enumerate(queues)]
        for host, queues in enumerate(hosts)
    ]
    parameters = [("sort", sort), ("limit", str(limit)), ("fields", "node"), *(("filter", text) for text in filters)]
    sites = [SampleSite(f"h{number}", RowHost(each)) for number, each in enumerate(states)]
    pages = walk(QUEUE, sites, parameters)
    everything = answer(
        parse(QUEUE, [*parameters[:1], ("limit", "1000"), *parameters[2:]]), [each for some in states for each in some]
    )
    assert rows_of(pages) == everything.rows
    assert {(each.page.total, each.page.matched, each.is_most) for each in pages} == {
        (everything.total, everything.matched, False)
    }
    assert all(len(each.page.rows) == limit for each in pages[:-1])


def expected_of(hosts: list[dict[str, Numbers]], parameters: list[tuple[str, str]]) -> Page:
    tables = [[row_of(ADDRESS, address_of(*each)) for each in host.items()] for host in hosts]
    rows = list(combined(ADDRESS, tables))
    query = parse(ADDRESS, [*(each for each in parameters if each[0] != "limit"), ("limit", "1000")])
    return answer(query, rows, mesh_pages.row_getters(ADDRESS))


@settings(max_examples=60)
@given(
    st.lists(ADDRESSES, min_size=1, max_size=4),
    SORTS,
    st.integers(1, 9),
    st.sampled_from([[], ["address~x"], ["pattern=a.#"], ["pattern="]]),
    st.sampled_from([0, 3, 1000]),
)
def test_sums_over_hosts_are_exact_however_many_rows_a_host_tells_at_once(
    hosts: list[dict[str, Numbers]], sort: str, limit: int, filters: list[str], whole_rows: int
) -> None:
    parameters = [("sort", sort), ("limit", str(limit)), *(("filter", text) for text in filters)]
    sites = [
        SampleSite(f"h{number}", RowHost([address_of(*each) for each in host.items()]))
        for number, host in enumerate(hosts)
    ]
    expected = expected_of(hosts, parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_pages, "WHOLE_ROWS", whole_rows)
        pages = walk(ADDRESS, sites, parameters)
    assert rows_of(pages) == expected.rows
    for each in pages:
        if each.is_most:
            assert expected.total <= each.page.total
            assert expected.matched <= each.page.matched
        else:
            assert (each.page.total, each.page.matched) == (expected.total, expected.matched)


def test_the_earliest_wait_and_the_causes_of_all_hosts_are_those_of_an_address() -> None:
    def waiting(*producers: tuple[str, float | None]) -> dict[str, Any]:
        address = address_of("rpc.tea", Numbers(0, 0, None, None))
        for cause, since in producers:
            address.change_waiting(None, cause, since)
        return row_of(ADDRESS, address)

    tables = [[waiting(("takers", 50.0))], [waiting(("no_taker", 40.0), ("takers", 60.0))], [waiting()]]
    (row,) = combined(ADDRESS, tables)
    assert (row["waiting_producers"], row["waits_for"], row["waiting_since"]) == (3, "no_taker, takers", 40.0)


def test_the_sum_of_a_row_that_is_nowhere_the_largest_can_be_the_largest() -> None:
    small = {f"m{number}": Numbers(5, 0, None, None) for number in range(20)}
    hosts = [{f"h{host}.{number}": Numbers(8, 0, None, None) for number in range(10)} | small for host in range(3)]
    sites = [SampleSite(str(n), RowHost([address_of(*each) for each in host.items()])) for n, host in enumerate(hosts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_pages, "WHOLE_ROWS", 10)
        page = asyncio.run(mesh_page(ADDRESS, [("sort", "-in_deliveries"), ("limit", "5")], sites)).page
    assert [row["in_deliveries"] for row in page.rows] == [15] * 5
    assert page.rows[0]["id"] == "m9"


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [("filter", "in_rate>5", "filter"), ("sort", "in_rate", "sort"), ("sort", "-treatment", "sort"),
     ("sort", "-waiting_since", "sort")],
)  # fmt: skip
def test_what_hosts_with_many_rows_cannot_tell_exactly_is_refused_with_what_is_allowed(
    name: str, value: str, place: str
) -> None:
    host = RowHost([address_of(f"a{number}", Numbers(1, 0, None, None)) for number in range(20)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_pages, "WHOLE_ROWS", 10)
        with pytest.raises(QueryError, match="more than 10 addresses at one host") as refused:
            asyncio.run(mesh_page(ADDRESS, [(name, value)], [SampleSite("h", host)]))
    assert refused.value.place == place
    assert "pattern" in refused.value.allowed


@pytest.mark.parametrize("answered", [0, 1, 2, 3, 9])
def test_a_host_that_is_lost_on_the_way_is_named_and_no_part_of_it_is_in_the_sums(answered: int) -> None:
    numbers = {f"a{number}": Numbers(number, 0, None, None) for number in range(20)}
    sites = [SampleSite(name, RowHost([address_of(*each) for each in numbers.items()])) for name in ("here", "there")]
    sites[1].lost_after = answered
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_pages, "WHOLE_ROWS", 10)
        found = asyncio.run(mesh_page(ADDRESS, [("sort", "-in_deliveries"), ("limit", "3")], sites))
    is_whole = answered == 9
    assert [row["in_deliveries"] for row in found.page.rows] == [(2 if is_whole else 1) * n for n in (19, 18, 17)]
    assert [(each.host, each.why) for each in found.missing] == ([] if is_whole else [("there", "nobody answers")])


def test_a_host_that_is_lost_after_its_numbers_set_the_bound_hides_no_row_of_the_others() -> None:
    both = {f"m{number}": Numbers(5, 0, None, None) for number in range(20)}
    hosts = [{f"h{host}.{number}": Numbers(8, 0, None, None) for number in range(10)} | both for host in range(2)]
    hosts.append({f"z{number}": Numbers(100, 0, None, None) for number in range(20)})
    sites = [SampleSite(str(n), RowHost([address_of(*each) for each in host.items()])) for n, host in enumerate(hosts)]
    sites[2].lost_after = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh_pages, "WHOLE_ROWS", 10)
        found = asyncio.run(mesh_page(ADDRESS, [("sort", "-in_deliveries"), ("limit", "2")], sites))
    assert [row["in_deliveries"] for row in found.page.rows] == [10, 10]
    assert [each.host for each in found.missing] == ["2"]


def test_each_request_that_no_observer_understands_is_answered_by_a_sentence() -> None:
    answers = HostAnswers(RowHost([]))  # type: ignore[arg-type]
    for text in ("", "[]", "3", '{"op": "dance"}', '{"op": "page", "things": "lynx"}', "{", '{"op": "rows"}'):
        assert "error" in answers.answer_text(text)
    wrong = '{"op": "page", "things": "links", "parameters": [["sort", "sise"]]}'
    assert "links have no field 'sise'" in answers.answer_text(wrong)
