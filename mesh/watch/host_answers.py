"""What the observer of one host answers to the observers of other hosts, of the model of its own host. Sans-IO.

Requests and answers are JSON, with `op`:

    {"op": "summary"}                                            what `node_summary` tells of each node
    {"op": "page", "things", "parameters": [[name, value]]}      a page, as the REST interface has it
    {"op": "whole", "things", "filters", "fields", "most"}       all rows; if they are more, those that match; or none
    {"op": "rows", "things", "ids", "fields"}                    the rows with these ids
    {"op": "troubles"}, {"op": "health"}                         what is wrong, as the console and `/healthz/mesh` say

With `user`, the answer has what this user may see.

Rows are `{"names": [field], "rows": [[value]]}`. An error is `{"error": sentence}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from mesh.watch.client_groups import CLIENT_GROUP, client_groups
from mesh.watch.health import healthz_mesh
from mesh.watch.mesh_pages import Request, table_of
from mesh.watch.node_summary import summary_of, to_list
from mesh.watch.query import QueryError, answer, parse
from mesh.watch.states import getters_of, row_of
from recording.entities import BY_PLURAL, MODEL_VERSION, NODE, Entity

if TYPE_CHECKING:
    from mesh.watch.expected_nodes import ExpectedNode
    from mesh.watch.host_model import HostModel
    from mesh.watch.troubles import Sees, Trouble
    from mesh.watch.visible_rows import VisibleRows

BY_PLURAL_OF_PAGES: Final = {**BY_PLURAL, CLIENT_GROUP.plural: CLIENT_GROUP}
"""By the word of a request, the entities of which pages are made."""


class HostAnswers:
    """Answers of the host ``host``. ``troubles`` returns what is wrong there, as somebody sees it who sees some links.

    ``rows_of`` returns what a user sees: the user that a request names by `user`, for whom another observer asks. A
    request without a user is for somebody who sees everything.
    """

    def __init__(
        self,
        host: HostModel,
        expected: Callable[[], Iterable[ExpectedNode]] = tuple,
        troubles: Callable[[Sees], Iterable[Trouble]] = lambda _: (),
        rows_of: Callable[[str], VisibleRows] | None = None,
    ) -> None:
        self._host, self._expected, self._troubles, self._rows_of = host, expected, troubles, rows_of

    def answer_text(self, request: str) -> str:
        """Return the answer to the JSON ``request``; a request that is not understood is answered by an error."""
        try:
            found = self.answer(json.loads(request))
        except QueryError as error:
            found = {"error": str(error)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            found = {"error": f"the request {request[:80]!r} is not one of this version: {error!r}"}
        return json.dumps(found, separators=(",", ":"))

    def answer(self, request: Request) -> dict[str, Any]:
        """Return the answer to ``request``. Raises QueryError, or another error for a request of another version."""
        rows = self._rows(request.get("user"))
        match request["op"]:
            case "summary":
                return self.summary()
            case "page":
                entity = BY_PLURAL_OF_PAGES[request["things"]]
                query = parse(entity, [(name, value) for name, value in request["parameters"]])
                page = answer(query, self.states(entity, rows))
                return {"total": page.total, "matched": page.matched, "items": table_of(page.rows), "next": page.next}
            case "whole":
                entity = BY_PLURAL_OF_PAGES[request["things"]]
                return _whole(entity, self.states(entity, rows), request)
            case "rows":
                entity = BY_PLURAL_OF_PAGES[request["things"]]
                wanted, id_of = frozenset(request["ids"]), getters_of(entity)["id"]
                found = [state for state in self.states(entity, rows) if id_of(state) in wanted]
                return {"items": table_of([row_of(entity, state, tuple(request["fields"])) for state in found])}
            case "troubles":
                return {"troubles": [each.to_map() for each in self._troubles(_sees_all if rows is None else rows.has)]}
            case "health":
                health = healthz_mesh(self._host, self._expected())
                return {"is_well": health.is_well, "sentences": health.sentences}
        raise ValueError(f"unknown op {request['op']!r}")

    def summary(self) -> dict[str, Any]:
        nodes = [to_list(summary_of(node)) for node in self._host.nodes.values()]
        return {"model": MODEL_VERSION, "names": NODE.names, "nodes": nodes}

    def states(self, entity: Entity, rows: VisibleRows | None = None) -> Collection[Any]:
        """Return the state of each ``entity`` among ``rows``, or of all."""
        if entity is CLIENT_GROUP:
            groups = client_groups(self._host)
            return groups if rows is None else [each for each in groups if rows.is_own(each.user)]
        return self._host.states(entity) if rows is None else rows.states(entity)

    def _rows(self, user: str | None) -> VisibleRows | None:
        if user is None:
            return None
        if self._rows_of is None:
            raise ValueError("this observer does not know what a user may see")
        rows = self._rows_of(user)
        return None if rows.is_all else rows


def _whole(entity: Entity, states: Collection[Any], request: Request) -> dict[str, Any]:
    query = parse(entity, [("filter", text) for text in request["filters"]])
    getters = getters_of(entity)
    chosen, is_filtered = states, len(states) > request["most"]
    matched = len(states)
    if is_filtered:
        chosen = [each for each in states if all(kept.holds(getters[kept.name](each)) for kept in query.filters)]
        matched = len(chosen)
    fields = tuple(request["fields"])
    is_many = matched > request["most"]
    items = None if is_many else table_of([row_of(entity, state, fields) for state in chosen])
    return {"total": len(states), "matched": matched, "is_filtered": is_filtered, "items": items}


def _sees_all(_: Entity, __: Any) -> bool:
    return True
