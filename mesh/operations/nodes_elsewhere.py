"""Asks for the nodes of other hosts: this host's observer, or, where none runs, all observers over the mesh itself."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from mesh.client.errors import MeshError
from mesh.deploy.mesh_status import NodeState
from mesh.deploy.running_processes import node_pid
from mesh.deploy.workdir import OBSERVER, WorkDir

if TYPE_CHECKING:
    from addressing.topology.model import Topology
    from mesh.client.client import Client
    from mesh.client.server import Server
    from mesh.watch.node_summary import NodeSummary

OBSERVER_S: Final = 3.0
"""For how long this host's observer may think: it asks other hosts itself, for 1 s."""
CONNECT_S: Final = 2.0
TELL_S: Final = 1.0
"""How long observers of other hosts have to tell of their nodes, over the mesh."""
_FIELDS: Final = ("name", "host", "state", "unknown_because", "cause", "age_s", "clients")
_STATES: Final = {"running": NodeState.UP, "silent": NodeState.SILENT, "ended": NodeState.DOWN, "lost": NodeState.DOWN}


@dataclass(frozen=True, slots=True)
class NodeElsewhere:
    """A node of another host. ``host``: its id, None if no observer told of the node. ``clients``: their number.

    ``age_s``: time since the node wrote its clock, or since anything was heard of it. ``detail``: who told it, or why
    nobody can tell.
    """

    host: str | None
    state: NodeState
    age_s: float | None
    clients: int | None
    detail: str


def nodes_elsewhere(topology: Topology, names: Collection[str]) -> dict[str, NodeElsewhere]:
    """Return what is known of the nodes ``names``, by name; each is unknown if nobody can tell of it.

    Takes OBSERVER_S at most with an observer on this host; else CONNECT_S and TELL_S, less once all nodes were told.
    """
    if not names:
        return {}
    workdir = WorkDir(topology.work_dir)
    why = "no observer has told of it"
    rows: list[dict[str, Any]] = []
    try:
        asked = _ask_observer(workdir) if node_pid(workdir, OBSERVER) is not None else None
        rows = asyncio.run(_ask_mesh(topology, workdir, names)) if asked is None else asked
    except MeshError as error:
        why = f"no observer can be asked: {error.message}"
    found = {row["name"]: _elsewhere(row) for row in rows if row["name"] in names}
    return {name: found.get(name) or NodeElsewhere(None, NodeState.UNKNOWN, None, None, why) for name in names}


def _elsewhere(row: dict[str, Any]) -> NodeElsewhere:
    state = _STATES.get(row["state"], NodeState.UNKNOWN)
    age = f", {row['age_s']:.0f} s ago" if row["age_s"] is not None else ""
    where = f"on {row['host']}" if row["host"] is not None else ""
    if state is NodeState.UNKNOWN:
        detail = f"{where}{', last heard' * bool(age)}{age.removeprefix(',')}: {row['unknown_because']}"
        detail = detail.removeprefix(": ")
    elif row["state"] == "lost":
        detail = f"{where}{age}: lost: the process failed, or is gone without a record of its end"
    elif row["state"] == "ended":
        detail = f"{where}{age}: ended in order"
    else:
        detail = where
    return NodeElsewhere(row["host"], state, row["age_s"], row["clients"], detail)


def _ask_observer(workdir: WorkDir) -> list[dict[str, Any]] | None:
    """Return the rows of all nodes from this host's observer; None if it does not answer, or cannot be read."""
    rows: list[dict[str, Any]] = []
    token = workdir.root / "run" / f"{OBSERVER}.token"
    try:
        url = json.loads(workdir.observer_file.read_text())["url"]
        headers = {"Authorization": f"Bearer {token.read_text().strip()}"} if token.exists() else {}
        after = ""
        while True:
            with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=OBSERVER_S)) as connection:
                connection.request("GET", f"/api/nodes?limit=1000&fields={','.join(_FIELDS)}{after}", headers=headers)
                page = json.loads(connection.getresponse().read())
            rows += page["items"]
            if page["next"] is None:
                return rows
            after = f"&after={quote(page['next'])}"
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


async def _ask_mesh(topology: Topology, workdir: WorkDir, names: Collection[str]) -> list[dict[str, Any]]:
    """Return the rows that observers tell as answers to one message to all of them. Raises MeshError."""
    from mesh.client.connect import connected
    from mesh.client.errors import TimedOut, Unreachable

    last: MeshError = Unreachable("the topology has no router that a program of this host may connect to")
    loop = asyncio.get_running_loop()
    until = loop.time() + CONNECT_S
    for server in _servers(topology, workdir):
        left_s = until - loop.time()
        if left_s <= 0:
            raise TimedOut(f"no router opened a connection within {CONNECT_S:g} s")
        try:
            async with connected(server, left_s) as client:
                return await _told(client, names)
        except MeshError as error:
            last = error
    raise last


def _servers(topology: Topology, workdir: WorkDir) -> Iterator[Server]:
    from mesh.deploy.operator import servers_for_programs

    for name in sorted(topology.routers, key=lambda name: node_pid(workdir, name) is None):
        yield from servers_for_programs(topology, name)


async def _told(client: Client, names: Collection[str]) -> list[dict[str, Any]]:
    from addressing.address import OBSERVERS
    from mesh.watch.node_summary import best, from_list
    from wire.delivery import ACCEPTED
    from wire.message import Message, decode, encode

    answers = await client.receiver(None)
    sender = await client.sender(None)
    answers.top_up()
    request = Message(json.dumps({"op": "summary"}), to=OBSERVERS, reply_to=answers.answered_address)
    summaries: list[NodeSummary] = []
    try:
        async with asyncio.timeout(TELL_S):
            await sender.send(encode(request))
            while not {each.name for each in summaries}.issuperset(names):
                received = await answers.receive()
                answers.settle(received, ACCEPTED)
                answers.top_up()
                said = json.loads(decode(received.data).body)
                summaries += [from_list(each, said["names"]) for each in said["nodes"]]
    except TimeoutError:
        pass
    return [{field: each.row[field] for field in _FIELDS} for each in best(summaries).values()]
