"""Rows of entities for a command: of the whole mesh from the observer of this host, or of this host from the rings.

The observer is asked if one runs here and answers; else the command reads the rings of this host's nodes itself.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final, Protocol
from urllib.parse import urlencode, urlsplit

from addressing.topology.model import Topology
from mesh.deploy.workdir import WorkDir
from mesh.operations.host_watch import HostWatch, watching
from mesh.watch.states import getters_of, row_of
from recording.entities import Entity

Row = dict[str, Any]
_ANSWER_S: Final = 10.0
_PAGE: Final = 1000


class EntityRows(Protocol):
    """A source of rows; ``notes`` are sentences about what the rows lack."""

    notes: list[str]

    def rows(self, entity: Entity, **wanted: str) -> list[Row]:
        """Return the first 1,000 rows of ``entity`` whose fields have the values ``wanted``."""
        ...


@contextmanager
def entity_rows(topology: Topology) -> Iterator[EntityRows | None]:
    """Yield a source of rows, None if no observer answers here and no node runs here."""
    observed = observer_rows(topology)
    if observed is not None:
        yield observed
        return
    with watching(topology) as watch:
        watch.look()
        yield _RingRows(topology, watch) if watch.is_any_running else None


class _RingRows:
    def __init__(self, topology: Topology, watch: HostWatch) -> None:
        self._host = watch.host
        missing = [name for name in topology.routers if name not in watch.host.nodes]
        self.notes = [f"not on this machine, and not counted: {', '.join(missing)}"] if missing else []

    def rows(self, entity: Entity, **wanted: str) -> list[Row]:
        getters = getters_of(entity)
        states = (
            state
            for state in self._host.states(entity)
            if all(getters[name](state) == value for name, value in wanted.items())
        )
        return [row_of(entity, state) for state, _ in zip(states, range(_PAGE), strict=False)]


class ObserverRows:
    """The rows that the observer at ``place``, a host and a port, answers with; ``token`` is its owner's."""

    def __init__(self, place: str, token: str | None) -> None:
        self._place, self._token = place, token
        self.notes: list[str] = []

    def rows(self, entity: Entity, **wanted: str) -> list[Row]:
        """As `EntityRows.rows`. Raises OSError, HTTPException or ValueError if the observer gives no rows."""
        filters = [("filter", f"{name}={value}") for name, value in wanted.items()]
        found: list[Row] = self.page(entity, [("limit", str(_PAGE)), *filters])["items"]
        return found

    def page(self, entity: Entity, parameters: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the answer of the REST interface: `items`, `matched`, `next` and others. Raises as `rows` does."""
        headers = {"Authorization": f"Bearer {self._token}"} if self._token is not None else {}
        with closing(http.client.HTTPConnection(self._place, timeout=_ANSWER_S)) as connection:
            connection.request("GET", f"/api/{entity.plural}?{urlencode(parameters)}", headers=headers)
            answer = connection.getresponse()
            content: dict[str, Any] = json.loads(answer.read())
        if answer.status != http.HTTPStatus.OK:
            raise ValueError(content.get("error", answer.status))
        for each in content.get("missing", ()):
            note = f"missing: {', '.join(each['nodes']) or each['host']}: {each['why']}"
            if note not in self.notes:
                self.notes.append(note)
        return content


def observer_rows(topology: Topology) -> ObserverRows | None:
    """Return the rows of the observer of this host; None if none runs here, or it does not answer."""
    from mesh.watch.observer import observer_file, token_file
    from recording.entities import NODE

    workdir = WorkDir(topology.work_dir)
    try:
        url = json.loads(observer_file(workdir).read_text())["url"]
        try:
            token: str | None = token_file(workdir).read_text().strip()
        except OSError:
            token = None
        found = ObserverRows(urlsplit(url).netloc, token)
        found.rows(NODE)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    return found
