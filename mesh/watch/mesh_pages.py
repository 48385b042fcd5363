"""Pages of a whole mesh, exact, of the pages of its hosts: at each host the same filter, sort and limit. Without I/O.

An entity such as a link belongs to one node, and so to one host: a page is the merge of the hosts' pages. Addresses,
patterns, users and groups of clients may be at several hosts, and their numbers are sums. With at most WHOLE_ROWS rows
at each host, all rows are added up. With more, the hosts are asked for candidates, and then for the candidates' rows:

* by id or pattern: the first of each host; no other can be among the first of all;
* by a number, the largest first: the first N of each host give a sum that N rows reach at least. A row that reaches it,
  too, has its k-th part at one of k hosts at least, and these rows are fetched [P. Cao and Z. Wang, Efficient Top-K
  Query Calculation in Distributed Networks, 2004].
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import nlargest
from operator import itemgetter
from typing import Any, Final, Protocol

from mesh.client.errors import MeshError
from mesh.watch.client_groups import CLIENT_GROUP
from mesh.watch.query import MAX_LIMIT, Getters, Page, Query, QueryError, answer, cursor_of, names_of, parse
from recording.entities import ADDRESS, PATTERN, USER, Entity, EntityFieldType, FieldUnit

WHOLE_ROWS: Final = 1000
"""Rows that a host tells at once; a host with more is asked for candidates."""
SUMMED: Final = (ADDRESS, PATTERN, USER, CLIENT_GROUP)
"""Entities that several hosts may have."""
_ALIKE: Final = frozenset({"id", "address", "pattern", "type", "user", "container"})
"""Texts of summed entities that are the same at each host, so that each host can filter and sort by them."""
_LISTS: Final = frozenset({"nodes", "waits_for"})
"""Texts of summed entities that are lists with commas between: the sum has the words of all hosts."""
_EARLIEST: Final = "waiting_since"
"""The one time of summed entities of which the earliest of all hosts counts."""
Row = dict[str, Any]
Request = dict[str, Any]
Parameters = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class MissingHost:
    """A host that a page lacks: name, nodes, time since the host was heard, and the reason.

    ``host`` is None for nodes of which no observer has told yet.
    """

    host: str | None
    nodes: tuple[str, ...]
    age_s: float | None
    why: str

    def to_map(self) -> dict[str, Any]:
        return {"host": self.host, "nodes": list(self.nodes), "age_s": self.age_s, "why": self.why}


class HostSite(Protocol):
    """A host whose observer can be asked, or this host."""

    async def ask(self, request: Request) -> dict[str, Any]:
        """Return the observer's answer. Raises MeshError if the host cannot be reached."""
        ...

    def missing(self, why: str) -> MissingHost: ...


@dataclass(frozen=True, slots=True)
class MeshPage:
    """A page, and the hosts that are not in it. ``is_most``: no more than ``total`` and ``matched``, perhaps fewer.

    That is so for addresses of which several hosts have many: an address that two hosts have counts twice there.
    """

    page: Page
    missing: list[MissingHost]
    is_most: bool = False


def page_map(found: MeshPage, utc_s: float) -> dict[str, Any]:
    """Return the page as the REST interface answers it. ``utc_s``: the time of the model."""
    page = found.page
    return {
        "at": utc_s,
        "total": page.total,
        "matched": page.matched,
        **({"counts_are": "at most"} if found.is_most else {}),
        "items": page.rows,
        "next": page.next,
        "missing": [each.to_map() for each in found.missing],
    }


async def mesh_page(entity: Entity, parameters: Parameters, sites: Sequence[HostSite]) -> MeshPage:
    """Return the page that ``parameters`` of a query string ask for. Raises QueryError."""
    query = parse(entity, parameters)
    asked = _AskedSites(sites)
    if entity in SUMMED:
        while True:
            count = len(asked.missing)
            page, is_most = await _summed(query, parameters, asked)
            # A host that was lost between two questions is left out, or a part of it would be in the sums.
            if len(asked.missing) == count or is_most is None:
                return MeshPage(page, asked.missing, bool(is_most))
    page = await _merged(query, parameters, asked)
    return MeshPage(page, asked.missing)


class _AskedSites:
    """The sites that have answered so far, and the missing ones."""

    def __init__(self, sites: Sequence[HostSite]) -> None:
        self._left = list(sites)
        self.missing: list[MissingHost] = []

    @property
    def count(self) -> int:
        return len(self._left)

    async def ask(self, request: Request) -> list[dict[str, Any]]:
        return await self.ask_each([request] * len(self._left))

    async def ask_each(self, requests: Sequence[Request]) -> list[dict[str, Any]]:
        """Ask the sites that are left, each its own of ``requests``; return the answers of those that are left then."""
        asked = zip(self._left, requests, strict=True)
        answers = await asyncio.gather(*(self._answer_of(site, request) for site, request in asked))
        self._left = [site for site, found in zip(self._left, answers, strict=True) if found is not None]
        return [found for found in answers if found is not None]

    async def _answer_of(self, site: HostSite, request: Request) -> dict[str, Any] | None:
        try:
            return await site.ask(request)
        except MeshError as error:
            self.missing.append(site.missing(error.message))
            return None


def table_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rows with equal names as a message has them: the names once."""
    names = list(rows[0]) if rows else []
    return {"names": names, "rows": [[row[name] for name in names] for row in rows]}


def rows_in(table: Mapping[str, Any]) -> list[Row]:
    names = table["names"]
    return [dict(zip(names, values, strict=True)) for values in table["rows"]]


@cache
def row_getters(entity: Entity) -> Getters:
    """Return the getters of rows: dicts with the values of the fields of ``entity``."""
    return {name: itemgetter(name) for name in entity.names}


# Entities of one host
async def _merged(query: Query, parameters: Parameters, asked: _AskedSites) -> Page:
    answers = await asked.ask(_page_request(query.entity, _with_fields(query, parameters)))
    rows = [row for each in answers for row in rows_in(each["items"])]
    total, matched = (sum(each[name] for each in answers) for name in ("total", "matched"))
    return _page_of(query, rows, total, matched, has_more=any(each["next"] is not None for each in answers))


def _page_of(query: Query, rows: list[Row], total: int, matched: int, *, has_more: bool) -> Page:
    """Return the first ``rows``; ``has_more``: there are others behind all of them."""
    first = answer(replace(query, filters=(), after=None), rows, row_getters(query.entity))
    following = first.next
    if has_more and following is None and first.rows:
        last = next(row for row in rows if row["id"] == first.rows[-1]["id"])
        following = cursor_of(query, last[query.sort], last["id"])
    return Page(total, matched, first.rows, following)


def _page_request(entity: Entity, parameters: Iterable[tuple[str, str]]) -> Request:
    return {"op": "page", "things": entity.plural, "parameters": [list(each) for each in parameters]}


def _with_fields(query: Query, parameters: Parameters) -> list[tuple[str, str]]:
    """Return ``parameters`` with the sort field among the fields, since rows are merged by it."""
    others = [each for each in parameters if each[0] != "fields"]
    return [*others, ("fields", ",".join(dict.fromkeys((*query.fields, query.sort))))] if query.fields else others


# Entities of several hosts
async def _summed(query: Query, parameters: Parameters, asked: _AskedSites) -> tuple[Page, bool | None]:
    """Return the page, and whether its counts are bounds; None for bounds of a page that needed one question only."""
    filters = [value for name, value in parameters if name == "filter"]
    kept = [text for text, each in zip(filters, query.filters, strict=True) if each.name in _ALIKE]
    fields = list(dict.fromkeys(("id", query.sort, *(each.name for each in query.filters), *names_of(query))))
    whole: Request = {"op": "whole", "things": query.entity.plural, "filters": kept, "fields": fields}
    answers = await asked.ask({**whole, "most": WHOLE_ROWS})
    if all(each["items"] is not None for each in answers):
        rows = list(combined(query.entity, [rows_in(each["items"]) for each in answers]))
        page = _slice(query, rows)
        is_all = not any(each["is_filtered"] for each in answers)
        if is_all:
            return page, None
        return replace(page, total=sum(each["total"] for each in answers)), True
    if len(kept) < len(filters):
        raise QueryError(
            "filter",
            f"more than {WHOLE_ROWS:,} {query.entity.plural} at one host: their sums over the hosts cannot be filtered",
            sorted(_ALIKE & set(query.entity.names)),
        )
    total, matched = (sum(each[name] for each in answers) for name in ("total", "matched"))
    if query.sort in _ALIKE:
        return await _first_of_each(query, parameters, fields, asked, total, matched), True
    if not query.is_descending or _type(query) is not EntityFieldType.NUMBER or query.sort == _EARLIEST:
        raise QueryError(
            "sort",
            f"more than {WHOLE_ROWS:,} {query.entity.plural} at one host: of sums over the hosts only the largest are "
            "found, by - before the field",
            sorted(_ALIKE & set(query.entity.names)),
        )
    return await _largest(query, kept, fields, asked, total, matched), True


def _type(query: Query) -> EntityFieldType | None:
    field = query.entity.field(query.sort)
    return field.type if field is not None else None


def combined(entity: Entity, tables: Iterable[Iterable[Row]]) -> Iterator[Row]:
    """Yield the rows of all hosts with equal ids as one row: with sums of numbers, and the latest of times."""
    found: dict[str, Row] = {}
    for rows in tables:
        for row in rows:
            known = found.setdefault(row["id"], row)
            if known is not row:
                found[row["id"]] = {name: _sum_of(entity, name, known[name], row[name]) for name in row}
    yield from found.values()


def _sum_of(entity: Entity, name: str, one: Any, other: Any) -> Any:
    field = entity.field(name)
    if one is None or other is None:
        return other if one is None else one
    if field is None or field.type is not EntityFieldType.NUMBER:
        return one if name not in _LISTS else ", ".join(sorted({*one.split(", "), *other.split(", ")} - {""}))
    if name == _EARLIEST:
        return min(one, other)
    return max(one, other) if field.unit is FieldUnit.UTC_SECONDS else one + other


async def _first_of_each(
    query: Query, parameters: Parameters, fields: list[str], asked: _AskedSites, total: int, matched: int
) -> Page:
    others = [each for each in parameters if each[0] != "fields"]
    request = _page_request(query.entity, [*others, ("fields", ",".join(dict.fromkeys(("id", query.sort))))])
    answers = await asked.ask(request)
    rows = combined(query.entity, [rows_in(each["items"]) for each in answers])
    has_more = any(each["next"] is not None for each in answers)
    first = _page_of(replace(query, fields=("id", query.sort)), list(rows), total, matched, has_more=has_more)
    found = await _rows_of(query, [row["id"] for row in first.rows], fields, asked)
    page = answer(replace(query, filters=(), after=None), found, row_getters(query.entity))
    return replace(first, rows=page.rows)


async def _rows_of(query: Query, ids: list[str], fields: list[str], asked: _AskedSites) -> list[Row]:
    answers = await asked.ask({"op": "rows", "things": query.entity.plural, "ids": ids, "fields": fields})
    return list(combined(query.entity, [rows_in(each["items"]) for each in answers]))


async def _largest(
    query: Query, kept: list[str], fields: list[str], asked: _AskedSites, total: int, matched: int
) -> Page:
    if query.after is not None and query.after[1]:
        raise QueryError("after", "the cursor is of a page of fewer hosts, expected none: begin with the first page")
    wanted = _offset_of(query) + query.limit + 1
    if wanted > MAX_LIMIT:
        raise QueryError(
            "after",
            f"more than {WHOLE_ROWS:,} {query.entity.plural} at one host: only the {MAX_LIMIT - 1} largest sums are "
            "found, expected another filter or sort field",
            sorted(_ALIKE & set(query.entity.names)),
        )
    filters = [("filter", text) for text in kept]
    first = [*filters, ("sort", "-" + query.sort), ("fields", query.sort), ("limit", str(wanted))]
    answers = await asked.ask(_page_request(query.entity, first))
    values = [{row["id"]: row[query.sort] for row in rows_in(each["items"])} for each in answers]
    unit = getattr(query.entity.field(query.sort), "unit", None)
    # The latest of times is at one of the hosts as it is; of sums, each host has a part.
    if unit is not FieldUnit.UTC_SECONDS:
        reached = nlargest(wanted, _sums(values).values())
        least = reached[-1] if len(reached) == wanted else 0
        if least > 0:
            values = await _with_parts(query, filters, asked, answers, values, least)
    ids = dict.fromkeys(id_ for each in values for id_ in each)
    rows: list[Row] = []
    chosen = list(ids)
    for begin in range(0, len(chosen), MAX_LIMIT):
        rows += await _rows_of(query, chosen[begin : begin + MAX_LIMIT], fields, asked)
    page = _slice(replace(query, filters=()), rows)
    return replace(page, total=total, matched=matched)


def _sums(values: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for each in values:
        for id_, value in each.items():
            sums[id_] = sums.get(id_, 0) + (value or 0)
    return sums


async def _with_parts(
    query: Query,
    filters: list[tuple[str, str]],
    asked: _AskedSites,
    answers: list[dict[str, Any]],
    values: list[dict[str, Any]],
    least: float,
) -> list[dict[str, Any]]:
    """Return of each host all rows that have a part of ``least``, the sum that enough rows reach; others cannot."""
    # A bit less, since a sum of floats is rounded.
    part = least / max(len(values), 1) * (1 - 1e-9)
    parameters = [*filters, ("filter", f"{query.sort}>={part!r}"), ("sort", "-" + query.sort), ("fields", query.sort)]
    parameters.append(("limit", str(MAX_LIMIT)))
    found = [dict(each) for each in values]
    cursors = [each["next"] for each in answers]
    while any(cursor is not None for cursor in cursors):
        # A host that has told all asks for nothing, but keeps its place among the answers.
        requests = [
            _page_request(query.entity, [*parameters, ("after", cursor)] if cursor is not None else [("limit", "1")])
            for cursor in cursors
        ]
        count = asked.count
        told = await asked.ask_each(requests)
        if len(told) < count:
            # The caller begins again without the host that was lost.
            return found
        for number, each in enumerate(told):
            if cursors[number] is not None:
                found[number] |= {row["id"]: row[query.sort] for row in rows_in(each["items"])}
                cursors[number] = each["next"]
    return found


def _slice(query: Query, rows: list[Row]) -> Page:
    """Return the page of ``rows``, which are all that can be on the page; a cursor of sums is a number of rows."""
    offset = _offset_of(query)
    getters = row_getters(query.entity)
    if not query.is_descending or _type(query) is not EntityFieldType.NUMBER or (query.after and query.after[1]):
        return answer(query, rows, getters)
    found = answer(replace(query, after=None, limit=offset + query.limit), rows, getters)
    following = cursor_of(query, -float(offset + query.limit), "") if found.next is not None else None
    return replace(found, rows=found.rows[offset:], next=following)


def _offset_of(query: Query) -> int:
    """Return how many rows the pages before had, where the cursor counts rows: sums may change between two pages."""
    if query.after is None or query.after[1] or not isinstance(query.after[0], float):
        return 0
    return int(-query.after[0])
