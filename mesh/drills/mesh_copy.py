"""Makes and runs a copy of a topology that a drill may break.

The copy has its own folder and ports, a proxy in each link that has a fault, and no users. The copy is stopped when the
drill ends, in whichever way.
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

from addressing.topology.loader import load_topology
from addressing.topology.model import Topology
from addressing.topology.queries import Edge
from mesh.client.server import Server
from mesh.deploy.detached import start_detached
from mesh.deploy.display import display
from mesh.deploy.free_ports import free_ports
from mesh.deploy.pki import make_pki
from mesh.deploy.workdir import SUPERVISOR, WorkDir
from mesh.drills.leases import Leases, stop
from mesh.drills.proxy import LinkProxy
from mesh.terminal.failure import CommandFailed
from mesh.terminal.output import Output

LOOPBACK = "127.0.0.1"
START_TIMEOUT_S = 60.0
Link = frozenset[str]


@dataclass(frozen=True, slots=True)
class MeshCopy:
    topology: Topology
    workdir: WorkDir
    leases: Leases
    proxies: Mapping[Link, LinkProxy]
    """The proxy in each link, by the two ends of the link; direction `forth` runs from the router that dials."""
    dialers: Mapping[Link, str] = field(default_factory=dict)

    @property
    def servers(self) -> dict[str, Server]:
        """Return for each router of the copy, by name, the listener to which clients connect."""
        return {
            name: Server(LOOPBACK, router.listeners[-1].port, fix=None)
            for name, router in self.topology.routers.items()
        }


@asynccontextmanager
async def stage(
    original: Topology, bad_links: Collection[Link], folder: Path, seed: int, out: Output
) -> AsyncIterator[MeshCopy]:
    """Start a copy of the mesh in ``folder``, yield the copy once it is ready, and stop the copy at the end."""
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
            yield MeshCopy(topology, workdir, leases, proxies, dialers)
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
    """Return the topology of the copy as plain data, with all nodes on this machine.

    Raise CommandFailed for a topology with an existing (not embedded) broker.
    """
    if others := [name for name, broker in topology.brokers.items() if not broker.is_embedded]:
        raise CommandFailed(
            f"the topology has existing brokers ({', '.join(others)}): expected embedded brokers only, as a drill on a "
            "copy would fill the existing brokers",
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
    # An observer of the original may have the port of this topology.
    data["watch"] = "off"
    if "link_logs" in data:
        data["link_logs"] = _recorded(topology, data["link_logs"])
    return data


def _recorded(topology: Topology, link_logs: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the copy's link logs: in the copy's own folder, but with the original redaction key."""
    kept = {name: value for name, value in link_logs.items() if name != "folder"}
    redact = topology.link_logs.redact
    return {**kept, "redact": {**kept["redact"], "key": str(topology.locate(redact.key))}} if redact else kept


def _connection(edge: Edge, link_ports: Mapping[Link, int]) -> dict[str, Any]:
    port = link_ports.get(frozenset((edge.dialer, edge.to)))
    way = {"host": LOOPBACK, "port": port} if port is not None else {}
    return {"to": edge.to, "cost": edge.cost, **way}
