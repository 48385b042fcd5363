"""A kind of node that the product does not know: a greeter, which greets whoever connects to its port.

The topology file has no section for greeters, so they are declared under a key that the model ignores:
`x-greeters: {g1: {port: 4711}}`. ``register`` adds the kind to the table of kinds; every process of a mesh needs that,
so a test puts the text of ``SITE`` into a `sitecustomize.py` on the Python path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ruamel.yaml import YAML

from addressing.topology.model import Topology
from mesh.client.client import Client
from mesh.client.errors import MeshError
from mesh.deploy.node_kind import NodeKind, Note, OnStarted, Snapshot, StatusCells
from mesh.deploy.node_kinds import NODE_KINDS
from mesh.deploy.trip import Probe
from wire.node_files import NodeFiles
from wire.transport.tls import Role

HOST = "127.0.0.1"
GREETING = b"good day\n"
SITE = "from mesh_tests.third_kind import register\n\nregister()\n"


class Greeted:
    """A probe: somebody connects to a greeter, and hears the greeting."""

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port

    def __str__(self) -> str:
        return f"a greeting of {self._name}"

    async def make(self, clients: Mapping[str, Client]) -> None:
        try:
            reader, writer = await asyncio.open_connection(HOST, self._port)
        except OSError as error:
            raise MeshError(str(error)) from None
        heard = await reader.readline()
        writer.close()
        if heard != GREETING:
            raise MeshError(f"{self._name} said {heard!r}")


def tired(name: str, snapshot: Snapshot | None) -> Iterator[str]:
    if snapshot is not None and snapshot["greeted_count"] >= 3:
        yield f"{name} is tired"


class GreeterKind(NodeKind):
    name: ClassVar[str] = "greeter"
    rank: ClassVar[int] = 2
    role: ClassVar[Role | None] = Role.OPERATOR
    has_links: ClassVar[bool] = True
    notes: ClassVar[Mapping[str, Note]] = {"tired_greeters": tired}

    def declared(self, topology: Topology) -> Mapping[str, Any]:
        if topology.file is None:
            return {}
        found: Mapping[str, Any] = YAML(typ="safe").load(topology.file).get("x-greeters", {})
        return found

    def ports(self, topology: Topology, name: str) -> Sequence[tuple[str, int]]:
        return [(HOST, self.declared(topology)[name]["port"])]

    async def run(
        self, topology: Topology, name: str, files: NodeFiles, stop: asyncio.Event, on_started: OnStarted
    ) -> None:
        count = 0

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal count
            count += 1
            writer.write(GREETING)
            await writer.drain()
            writer.close()

        ((host, port),) = self.ports(topology, name)
        async with await asyncio.start_server(greet, host, port):
            await on_started({"snapshot": lambda _: {"node": {"greeted_count": count, "is_awake": True}}})
            await stop.wait()

    def missing_links(self, topology: Topology, snapshots: Mapping[str, Snapshot | None]) -> Iterator[str]:
        for name, snapshot in snapshots.items():
            if snapshot is None or not snapshot["is_awake"]:
                yield f"{name} sleeps"

    def probes(self, topology: Topology, token: str) -> Sequence[Probe]:
        return [Greeted(name, self.ports(topology, name)[0][1]) for name in self.names(topology)]

    def cells(self, snapshot: Snapshot | None) -> StatusCells:
        return StatusCells("polite greeter" if snapshot is not None else self.name)


GREETER = GreeterKind()


def register() -> None:
    NODE_KINDS[GREETER.name] = GREETER
