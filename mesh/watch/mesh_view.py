"""The view of the whole mesh at one observer: its own host's model, and what the observers of other hosts answer.

Nothing is asked unless somebody looks. Whoever cannot be reached is named with age and reason, and is never taken for
something that is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Final

from mesh.client.errors import MeshError
from mesh.watch.client_groups import CLIENT_GROUP
from mesh.watch.health import Health
from mesh.watch.mesh_pages import (
    SUMMED,
    MeshPage,
    MissingHost,
    Parameters,
    Request,
    combined,
    mesh_page,
    row_getters,
    rows_in,
)
from mesh.watch.node_summary import NodeSummary, best, never_heard, summary_of
from mesh.watch.query import PLACES, QueryError, answer, parse
from mesh.watch.states import getters_of, row_of
from mesh.watch.troubles import Trouble
from recording.entities import NODE, Entity

if TYPE_CHECKING:
    from mesh.watch.host_answers import HostAnswers
    from mesh.watch.host_model import HostModel
    from mesh.watch.mesh_pages import HostSite
    from mesh.watch.other_hosts import OtherHost, OtherHosts
    from mesh.watch.visible_rows import VisibleRows

SUMMARIES_S: Final = 1.0
"""For how long a viewer waits for summaries; who is later is shown by the summary before."""
HOST_SCOPE: Final = "host"
MESH_SCOPE: Final = "mesh"


class NobodyTells(Exception):
    """An entity is not known, and hosts that may have it cannot be reached; the message names them."""


class OwnSite:
    """This host among the hosts that are asked for a page."""

    def __init__(self, answers: HostAnswers) -> None:
        self._answers = answers

    async def ask(self, request: Request) -> dict[str, Any]:
        return self._answers.answer(request)

    def missing(self, why: str) -> MissingHost:
        raise NotImplementedError("bug in this program: an observer did not reach itself")


class SeenSite:
    """A host as the user ``user`` sees it."""

    def __init__(self, site: HostSite, user: str) -> None:
        self._site, self._user = site, user

    async def ask(self, request: Request) -> dict[str, Any]:
        return await self._site.ask({**request, "user": self._user})

    def missing(self, why: str) -> MissingHost:
        return self._site.missing(why)


class MeshView:
    """The view. ``roles``: by name, the role of each node that amqpmesh runs.

    ``others`` is None, and no node is missing, where observers do not see other hosts. ``is_alone`` tells whether all
    nodes run on this host, as `up` has them: a node that was not seen yet is not on another host then.
    """

    def __init__(
        self,
        host: HostModel,
        answers: HostAnswers,
        roles: Mapping[str, str] | None = None,
        others: OtherHosts | None = None,
        is_alone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._host, self._answers, self._roles = host, answers, roles or {}
        self._others, self._is_alone = others, is_alone
        self._rows: VisibleRows | None = None

    def seen_by(self, rows: VisibleRows) -> MeshView:
        """Return the view of an operator who may see ``rows`` on this host, and the like on each other host."""
        if rows.is_all:
            return self
        seen = copy(self)
        seen._rows = rows
        return seen

    @property
    def _sees_nodes(self) -> bool:
        return self._rows is None or self._rows.operator.sees_mesh

    def _seen(self, request: Request) -> Request:
        return request if self._rows is None else {**request, "user": self._rows.operator.name}

    def _site(self, site: HostSite) -> HostSite:
        return site if self._rows is None else SeenSite(site, self._rows.operator.name)

    def _states(self, entity: Entity) -> Collection[Any]:
        return self._answers.states(entity, self._rows)

    @property
    def _hosts(self) -> list[OtherHost]:
        return self._others.hosts if self._others is not None else []

    # Nodes
    async def refresh(self) -> None:
        """Ask each other host for a summary that is not fresh, and wait for SUMMARIES_S at most."""
        due = [each.start_asking() for each in self._hosts if each.is_due()]
        if due:
            await asyncio.wait(due, timeout=SUMMARIES_S)

    def summaries(self) -> Mapping[str, NodeSummary]:
        """Return by name what is known of each node of the mesh now."""
        if not self._sees_nodes:
            return {}
        found = dict(best([*map(summary_of, self._host.nodes.values()), *self._told()]))
        for name in self._never_heard(found):
            found[name] = never_heard(name, self._roles[name], self._why_never_heard())
        return found

    def _told(self) -> Iterable[NodeSummary]:
        return [told for each in self._hosts for told in each.summaries()]

    def _never_heard(self, known: Iterable[str]) -> list[str]:
        if self._others is None or self._is_alone():
            return []
        return [name for name in self._roles if name not in set(known)]

    def _why_never_heard(self) -> str:
        assert self._others is not None
        if self._others.link.is_up:
            return "no observer has told of it"
        return f"this observer has no connection to the mesh: {self._others.link.reason}"

    def missing(self, wanted: Iterable[OtherHost] | None = None) -> list[MissingHost]:
        """Return the hosts, of ``wanted`` or all, that did not answer when asked last; and nodes nobody told of."""
        if not self._sees_nodes:
            return []
        hosts = self._hosts
        missing = [each.missing(each.why) for each in (hosts if wanted is None else wanted) if each.why is not None]
        heard = {*self._host.nodes, *(name for each in hosts for name in each.nodes)}
        never = self._never_heard(heard)
        return [*missing, *([MissingHost(None, tuple(never), None, self._why_never_heard())] if never else [])]

    # Pages
    def check(self, entity: Entity, parameters: Parameters) -> None:
        """Raise QueryError if a page of ``parameters`` would be refused whatever the hosts have."""
        parse(entity, _split(entity, parameters)[0])

    async def page(self, entity: Entity, parameters: Parameters) -> MeshPage:
        """Return the page for the parameters of a query string: those of `query`, and ``scope`` and ``node``.

        ``scope=host``: of this host only. ``node``: of one node. Raises QueryError.
        """
        wanted, scope, node = _split(entity, parameters)
        if scope == HOST_SCOPE or (self._others is None and entity is not NODE):
            return MeshPage(answer(parse(entity, wanted), self._states(entity)), [])
        if entity is NODE:
            await self.refresh()
            rows = [each.row for each in self.summaries().values()]
            page = answer(parse(entity, wanted), rows, row_getters(NODE))
            return MeshPage(page, self.missing())
        hosts = self._hosts if node is None else [each for each in self._hosts if node in each.nodes]
        if not hosts:
            return MeshPage(answer(parse(entity, wanted), self._states(entity)), self._missing_of(node))
        sites: list[HostSite] = [OwnSite(self._answers), *hosts]
        found = await mesh_page(entity, wanted, [self._site(each) for each in sites])
        named = {each.host for each in found.missing}
        others = [each for each in self._missing_of(node) if each.host not in named and each.host is None]
        return MeshPage(found.page, [*found.missing, *others], found.is_most)

    def _missing_of(self, node: str | None) -> list[MissingHost]:
        found = self.missing()
        return found if node is None else [each for each in found if node in each.nodes]

    async def one(self, entity: Entity, id_: str) -> dict[str, Any] | None:
        """Return all fields of one entity, or None if there is none. Raises NobodyTells."""
        if entity is NODE:
            await self.refresh()
            found = self.summaries().get(id_)
            return found.row if found is not None else None
        if entity not in SUMMED:
            return await self._one_of_node(entity, id_)
        request = self._seen({"op": "rows", "things": entity.plural, "ids": [id_], "fields": entity.names})
        rows, missing = await self._ask_hosts(request)
        tables = [self._answers.answer(request)["items"], *(each["items"] for each in rows)]
        summed = next(combined(entity, [rows_in(each) for each in tables]), None)
        if summed is None and missing:
            raise NobodyTells(_sentence(missing))
        return summed

    async def _one_of_node(self, entity: Entity, id_: str) -> dict[str, Any] | None:
        id_of = getters_of(entity)["id"]
        own = next((each for each in self._states(entity) if id_of(each) == id_), None)
        if own is not None:
            return row_of(entity, own)
        node = id_.partition("/")[0]
        for host in self._hosts:
            if node not in host.nodes:
                continue
            request = self._seen({"op": "rows", "things": entity.plural, "ids": [id_], "fields": entity.names})
            try:
                rows = rows_in((await host.ask(request))["items"])
            except MeshError as error:
                raise NobodyTells(_sentence([host.missing(error.message)])) from None
            if rows:
                return rows[0]
        unheard = [each for each in self.missing() if each.host is None and node in each.nodes]
        if unheard:
            raise NobodyTells(_sentence(unheard))
        return None

    async def _ask_hosts(self, request: Request) -> tuple[list[dict[str, Any]], list[MissingHost]]:
        missing: list[MissingHost] = []

        async def ask(host: OtherHost) -> dict[str, Any] | None:
            try:
                return await host.ask(request)
            except MeshError as error:
                missing.append(host.missing(error.message))
                return None

        found = await asyncio.gather(*(ask(host) for host in self._hosts))
        return [each for each in found if each is not None], missing

    # What is wrong
    async def troubles(self) -> list[Trouble]:
        """Return what is wrong on other hosts, as their observers say: waiting producers and old messages."""
        found: list[Trouble] = []
        for host in self._hosts:
            try:
                answered = await host.ask(self._seen({"op": "troubles"}))
                found += [Trouble(**each).on(host.host) for each in answered["troubles"]]
            except (MeshError, TypeError, KeyError):
                # The host, and why it did not answer, are among the troubles of nodes.
                continue
        return found

    async def health(self, own: Health) -> Health:
        """Return ``own``, the health as this host sees it, together with that of all other hosts."""
        answers, missing = await self._ask_hosts({"op": "health"})
        faults = [] if own.is_well else list(own.sentences)
        faults += [sentence for each in answers if not each["is_well"] for sentence in each["sentences"]]
        faults += [_sentence([each]) for each in missing]
        count = len(answers)
        well = [*own.sentences, *([f"{count} other host{'s' * (count != 1)} said the same"] if count else [])]
        return Health(not faults, faults or well)


def _split(entity: Entity, parameters: Parameters) -> tuple[list[tuple[str, str]], str, str | None]:
    """Return the parameters of the query itself, with a filter for ``node``; the scope; and the node."""
    mine = [each for each in parameters if each[0] in PLACES]
    wanted = [each for each in parameters if each[0] not in PLACES]
    if len({name for name, _ in mine}) < len(mine):
        raise QueryError("scope", "the parameters scope and node can be given once")
    scope, node = dict(mine).get("scope", MESH_SCOPE), dict(mine).get("node")
    if scope not in (HOST_SCOPE, MESH_SCOPE):
        raise QueryError("scope", f"{scope[:80]!r} is not a scope", (HOST_SCOPE, MESH_SCOPE))
    if node is not None:
        field = "name" if entity is NODE else "node"
        if entity in SUMMED or entity is CLIENT_GROUP:
            raise QueryError(
                "node", f"{entity.plural} belong to no node", ("filter", "sort", "limit", "after", "fields")
            )
        wanted.append(("filter", f"{field}={node}"))
    return wanted, scope, node


def _sentence(missing: Sequence[MissingHost]) -> str:
    each = missing[0]
    nodes = ", ".join(each.nodes[:5]) + (" ..." if len(each.nodes) > 5 else "")
    heard = f", heard {each.age_s:.0f} s ago" if each.age_s is not None else ""
    where = f"host {each.host} with nodes {nodes or 'unknown'}" if each.host is not None else f"nodes {nodes}"
    return f"{where}{heard}: {each.why}"
