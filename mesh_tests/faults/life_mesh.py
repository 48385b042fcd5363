"""A mesh of real processes with the face of a simulated one, so that the same random lives can be led over sockets.

Clients are those of the simulation, over sockets of this process; time is real, and `run` is the loop of all sockets.
"""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import time
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from addressing.topology.model import Topology
from mesh.simulation.clients import SimClient, SimSender
from mesh_tests.running_mesh import RunningMesh
from mesh_tests.waiting import wait_until

CONNECT_S = 2.0
CHUNK_BYTES = 65_536
LONGEST_POLL_S = 0.05
TICK_S = 0.5
UP_S = 90.0
"""The supervisor waits up to 4 s before it starts a node again that crashed many times."""


class LivePipe:
    """A client's socket."""

    def __init__(self, client: SimClient, handle: socket.socket) -> None:
        self.client = client
        self.socket = handle
        self.ends = ((client, client.endpoint),)
        self.unsent = b""


class LifeMesh:
    """``routers`` and ``brokers`` name the nodes that were not killed since the last `heal`."""

    def __init__(self, topology: dict[str, Any], folder: Path) -> None:
        self.topology = Topology.model_validate(topology)
        self.process = RunningMesh(_as_text(topology), folder)
        self.nodes = [*self.topology.routers, *self.topology.brokers]
        self.routers = dict.fromkeys(self.topology.routers)
        self.brokers = dict.fromkeys(self.topology.brokers)
        self.trunks: dict[frozenset[str], Any] = {}
        """None: connections between nodes are not cut one by one here."""
        self.pipes: dict[LivePipe, None] = {}
        self.delay_s = 0.005
        self._thaw_at: dict[str, float] = {}
        self._ticked_at = 0.0
        self._unheard: list[SimClient] = []

    @property
    def now(self) -> float:
        return time.monotonic()

    # Clients
    def client(self, router: str, container_id: str = "client", **settings: Any) -> SimClient:
        client = SimClient(self, container_id, **settings)  # type: ignore[arg-type]
        try:
            handle = socket.create_connection(("127.0.0.1", self.process.port(router)), CONNECT_S)
        except OSError as error:
            client.closed = str(error)
            # It attaches links all the same, and nobody hears of them.
            self._unheard.append(client)
            return client
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handle.setblocking(False)
        client.pipe = LivePipe(client, handle)
        self.pipes[client.pipe] = None
        return client

    def send(self, sender: SimSender, body: bytes = b"x", *, settled: bool = False) -> int:
        self.run_until(lambda: sender.link.credit > 0)
        return sender.send(body, settled=settled)

    def cut(self, pipe: LivePipe | None, *, silently: bool = False) -> None:
        """The client's socket is reset."""
        if pipe is None or pipe not in self.pipes:
            return
        pipe.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._drop(pipe, "cut")

    def _drop(self, pipe: LivePipe, reason: str) -> None:
        self.pipes.pop(pipe, None)
        pipe.socket.close()
        pipe.client.on_disconnected(pipe.client.endpoint, reason, self.now)
        pipe.client.endpoint.free()

    # Bytes
    def touch(self, node: Any) -> None:
        """What a client wants to say goes out with the next `settle`."""

    def settle(self) -> None:
        for pipe in list(self.pipes):
            self._write(pipe)

    flush = settle

    def _write(self, pipe: LivePipe) -> None:
        endpoint = pipe.client.endpoint
        try:
            while data := pipe.unsent or endpoint.output():
                sent = pipe.socket.send(data)
                pipe.unsent = data[sent:]
        except BlockingIOError:
            pipe.unsent = data
        except OSError as error:
            self._drop(pipe, str(error))

    def _read(self, pipe: LivePipe) -> None:
        try:
            data = pipe.socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._drop(pipe, str(error))
            return
        if not data:
            self._drop(pipe, "the router closed the socket")
            return
        pipe.client.endpoint.receive(data)
        pipe.client.on_input(pipe.client.endpoint, self.now)

    def run(self, seconds: float) -> None:
        """Move bytes for so long."""
        end = self.now + seconds
        while True:
            self._thaw()
            self._tick()
            self.settle()
            readers = [pipe.socket for pipe in self.pipes]
            left = min(LONGEST_POLL_S, max(0.0, end - self.now))
            readable, _, _ = select.select(readers, [], [], left)
            for pipe in [pipe for pipe in self.pipes if pipe.socket in readable]:
                self._read(pipe)
            self.settle()
            if self.now >= end:
                return

    def run_until(self, condition: Any, seconds: float = 30.0) -> None:
        end = self.now + seconds
        while not condition():
            assert self.now < end, f"not within {seconds} s"
            self.run(0.02)

    def _tick(self) -> None:
        if self.now - self._ticked_at > TICK_S:
            self._ticked_at = self.now
            for pipe in self.pipes:
                pipe.client.endpoint.tick(self.now)

    # Faults
    def signal(self, name: str, number: signal.Signals) -> None:
        """Kill a node, or have it stop in order; it is gone for `routers` and `brokers` until `heal`."""
        os.kill(self.process.pid(name), number)
        self.routers.pop(name, None)
        self.brokers.pop(name, None)

    def freeze(self, name: str, seconds: float) -> None:
        os.kill(self.process.pid(name), signal.SIGSTOP)
        self._thaw_at[name] = self.now + seconds

    def _thaw(self) -> None:
        for name in [name for name, when in self._thaw_at.items() if self.now >= when]:
            del self._thaw_at[name]
            os.kill(self.process.pid(name), signal.SIGCONT)

    def heal(self) -> None:
        """Wait until every node runs and every router knows a way to every other one and to its brokers."""
        self._thaw_at = dict.fromkeys(self._thaw_at, 0.0)
        end = self.now + UP_S
        while lacking := self.lacking():
            assert self.now < end, f"not up within {UP_S} s: {lacking}"
            self.run(0.2)
        self.routers = dict.fromkeys(self.topology.routers)
        self.brokers = dict.fromkeys(self.topology.brokers)

    def converge(self, within_s: float = UP_S) -> None:
        self.heal()

    def lacking(self) -> list[str]:
        return [name for name in self.nodes if not self._is_up(name)]

    def _is_up(self, name: str) -> bool:
        found = self.process.snapshot(name)
        if found is None or name in self.topology.brokers:
            return found is not None
        node = found["node"]
        are_brokers_up = all(broker["is_up"] for broker in node["brokers"])
        if name in self.topology.edge_routers:
            return are_brokers_up and node["active_uplink"] is not None
        ways = sum(router["cost"] is not None for router in node["routers"])
        return are_brokers_up and ways == len(self.topology.interior_routers) - 1

    # What must hold at the end
    def pids(self) -> dict[str, int]:
        return {name: self.process.pid(name) for name in self.nodes}

    def client_connections(self) -> list[str]:
        """Connections of clients that a router still has, and its connections to brokers for clients."""
        found = []
        for name in self.topology.routers:
            for connection in self.process.snapshot(name)["node"]["connections"]:
                if connection["kind"] == "client" or (connection["kind"] == "broker" and connection["links"]):
                    found.append(f"{name}: {connection}")
        return found

    def leave(self) -> None:
        for pipe in list(self.pipes):
            self.cut(pipe)

    def wait_left(self, seconds: float) -> None:
        wait_until(lambda: not self.client_connections(), seconds, "routers to let go of clients that are gone")

    def close(self) -> None:
        self._thaw_at = dict.fromkeys(self._thaw_at, 0.0)
        self._thaw()
        self.leave()
        for client in self._unheard:
            client.endpoint.free()
        self.process.down()


def _as_text(topology: dict[str, Any]) -> str:
    text = io.StringIO()
    YAML().dump(topology, text)
    return text.getvalue()
