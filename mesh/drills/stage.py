"""A copy of a topology to break things in: a folder and ports of its own, a proxy in each link that is to be bad, and
no users. It is gone afterwards, however the drill ends.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from addressing.loader import load_topology
from addressing.topology import Edge, Topology
from mesh.detached import start_detached
from mesh.display import display
from mesh.drills.leases import Leases, stop
from mesh.drills.proxy import LinkProxy
from mesh.failure import CommandFailed
from mesh.free_ports import free_ports
from mesh.output import Output
from mesh.pki import make_pki
from mesh.server import Server
from mesh.workdir import SUPERVISOR, WorkDir

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 60.0
Link = frozenset[str]


@dataclass(frozen=True, slots=True)
class Stage:
    topology: Topology
    workdir: WorkDir
    leases: Leases
    proxies: Mapping[Link, LinkProxy]
    """By both ends; `forth` is from who dials."""
    dialers: Mapping[Link, str] = field(default_factory=dict)

    @property
    def servers(self) -> dict[str, Server]:
        """Where clients of each router go."""
        return {
            name: Server(LOOPBACK, router.listeners[-1].port, fix=None)
            for name, router in self.topology.routers.items()
        }


@asynccontextmanager
async def stage(
    original: Topology, bad_links: Collection[Link], folder: Path, seed: int, out: Output
) -> AsyncIterator[Stage]:
    """Started, proven ready, and stopped at the end."""
    ports = free_ports()
    link_ports = {link: next(ports) for link in bad_links}
    file = folder / "amqpmesh.yml"
    with file.open("w") as written:
        YAML().dump(copied(original, link_ports, ports), written)
    topology = load_topology(file)
    workdir = WorkDir(topology.work_dir)
    workdir.make()
    make_pki(topology)
    with Leases() as leases:
        leases.grant(stop(workdir, file))
        proxies, dialers = await _start_proxies(original, topology, link_ports, seed)
        try:
            await asyncio.to_thread(_start, file, workdir, out)
            yield Stage(topology, workdir, leases, proxies, dialers)
        finally:
            for proxy in proxies.values():
                await proxy.stop()


def _start(file: Path, workdir: WorkDir, out: Output) -> None:
    with display(out) as observe:
        arguments = ["--topology", str(file), "--timeout", f"{START_TIMEOUT_S}s"]
        start_detached(arguments, workdir.log_file(SUPERVISOR), observe)


async def _start_proxies(
    original: Topology, topology: Topology, ports: Mapping[Link, int], seed: int
) -> tuple[dict[Link, LinkProxy], dict[Link, str]]:
    edges = {frozenset((edge.dialer, edge.to)): edge for edge in original.edges()}
    proxies = {}
    for link, port in ports.items():
        target = topology.routers[edges[link].to]
        proxies[link] = LinkProxy(target.host, target.port, random.Random(f"{seed} {sorted(link)}"))
        await proxies[link].start(port)
    return proxies, {link: edges[link].dialer for link in ports}


def copied(topology: Topology, link_ports: Mapping[Link, int], ports: Iterator[int]) -> dict[str, Any]:
    """The topology as plain data, on this machine alone."""
    if others := [name for name, broker in topology.brokers.items() if not broker.is_embedded]:
        raise CommandFailed(
            f"{', '.join(others)}: an existing broker, which a drill on a copy would fill",
            fix="drill a topology with embedded brokers, or the mesh itself: `amqpmesh drill --against`",
        )
    data = topology.model_dump(mode="json", exclude_defaults=True, exclude={"users"})
    edges = list(topology.edges())
    for name in topology.routers:
        data["routers"][name] |= {
            "host": LOOPBACK,
            "port": next(ports),
            "listeners": [{"host": LOOPBACK, "port": next(ports)}],
            "connect": [_connection(edge, link_ports) for edge in edges if edge.dialer == name],
        }
    for name in topology.brokers:
        data["brokers"][name] |= {"host": LOOPBACK, "port": next(ports), "data": f"./data/{name}"}
    if "link_logs" in data:
        data["link_logs"] = _recorded(topology, data["link_logs"])
    return data


def _recorded(topology: Topology, link_logs: dict[str, Any]) -> dict[str, Any]:
    """In the copy's own folder, not among what the mesh itself recorded; with the same key, wherever that lies."""
    kept = {name: value for name, value in link_logs.items() if name != "folder"}
    redact = topology.link_logs.redact
    return {**kept, "redact": {**kept["redact"], "key": str(topology.locate(redact.key))}} if redact else kept


def _connection(edge: Edge, link_ports: Mapping[Link, int]) -> dict[str, Any]:
    port = link_ports.get(frozenset((edge.dialer, edge.to)))
    way = {"host": LOOPBACK, "port": port} if port is not None else {}
    return {"to": edge.to, "cost": edge.cost, **way}
