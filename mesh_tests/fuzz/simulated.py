"""A simulated mesh at whose ports hostile peers speak: raw bytes in, and no exception of ours may come of them.

The nodes, engines and stores are the real ones; only sockets, disks and time are simulated, so a thousand dialogues
take seconds, also under AddressSanitizer.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from mesh.simulation.clients import SimClient, SimSender
from mesh.simulation.sim_mesh import SimMesh
from mesh.simulation.world import Pipe
from mesh_tests.fuzz.dialogues import Dialogue
from mesh_tests.fuzz.neighbors import CLIENT, EDGE, ROUTER
from wire.core import DirtyEndpoints
from wire.endpoint import Endpoint, Peer

TOPOLOGY: dict[str, Any] = {
    "mesh": "fuzz",
    "node_tls": False,
    "routers": {
        "r1": {"connect": ["r2"]},
        "r2": {},
        "e1": {"mode": "edge", "connect": ["r1"]},
    },
    "brokers": {"b1": {"data": "b1", "routers": ["r1", "r2"]}, "b2": {"data": "b2", "routers": ["r2"]}},
    "addresses": {
        "work.#": "anycast",
        "prices.#": "multicast",
        "orders.#": {"type": "queue", "broker": "b1"},
        "news.#": {"type": "topic", "broker": "b2"},
        "shards.#": {"type": "queue", "brokers": ["b1", "b2"]},
        "closed": "unavailable",
    },
}
TARGETS = {
    "router": CLIENT,
    "edge": CLIENT,
    "broker": CLIENT,
    "operator at a router": CLIENT,
    "operator at a broker": CLIENT,
    "router at a router": ROUTER,
    "edge at a router": EDGE,
    "router at a broker": ROUTER,
}
"""Which port is spoken to, and the voice of the peer there."""
_WATCHED = ("work.watched", "orders.watched")


class RawEnd:
    """The end of a pipe without an engine: what the peer writes is thrown away, and `say` writes any bytes.

    The world treats it as a node and as its only endpoint at once.
    """

    def __init__(self) -> None:
        self.dirty = DirtyEndpoints()
        self.commands: list[Any] = []
        self.is_freed = self.is_finished = self.is_kept = False
        self.has_waiters = self.has_room = False
        self.received_bytes = 0
        self._unsent = bytearray()

    def say(self, chunk: bytes) -> None:
        self._unsent += chunk

    def output(self) -> bytes:
        said, self._unsent = bytes(self._unsent), bytearray()
        return said

    def receive(self, chunk: bytes) -> None:
        self.received_bytes += len(chunk)

    def free(self) -> None:
        self.is_freed = self.is_finished = True

    def next_deadline(self) -> float | None:
        return None

    def on_input(self, endpoint: Any, now: float) -> None: ...

    def on_time(self, now: float) -> None: ...

    def on_disconnected(self, endpoint: Any, reason: str, now: float) -> None: ...


class FuzzedMesh(SimMesh):
    """`faults`: the tracebacks that a driver would have logged as bugs, each with the dialogue it came from."""

    def __init__(self, folder: Path) -> None:
        super().__init__(TOPOLOGY, folder)
        self.faults: list[str] = []
        self._said: Dialogue | None = None
        self.converge()
        self._consumers = [self.client("r2", f"watch-{name}").receiver(name, 1000) for name in _WATCHED]
        self._producers = [self.client("r1", f"make-{name}").sender(name) for name in _WATCHED]
        self._feeders = self._fed()
        self._sent = 0
        self.run(0.5)

    def _fed(self) -> list[tuple[SimClient, SimSender]]:
        """Producers whose messages the consumers among the hostile peers get."""
        found = []
        for name in ("work.fuzz", "prices.fuzz", "orders.fuzz", "news.fuzz"):
            client = self.client("r2", f"feed-{name}")
            found.append((client, client.sender(name)))
        return found

    # As a driver does
    def arrive(self, pipe: Pipe, end: int, data: bytes) -> None:
        _, endpoint = pipe.ends[end]
        self._guard(endpoint, lambda: super(FuzzedMesh, self).arrive(pipe, end, data))

    def _flush_pipe(self, pipe: Pipe, end: int) -> None:
        _, endpoint = pipe.ends[end]
        self._guard(endpoint, lambda: super(FuzzedMesh, self)._flush_pipe(pipe, end))

    def _guard(self, endpoint: Endpoint, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 (the driver's one place, simulated)
            self._keep_fault()
            if endpoint in self._ends:
                self.abort(endpoint, "internal error")

    def _keep_fault(self) -> None:
        said = self._said
        about = "no dialogue" if said is None else f"dialogue {said.seed}: {', '.join(said.words)}"
        self.faults.append(f"{about}\n{traceback.format_exc()}")

    # Dialogues
    def speak(self, target: str, said: Dialogue) -> None:
        """Hold one dialogue at a port of ``target``, end it as it says, and let the mesh come to rest."""
        self._said = said
        pieces = Random(said.seed)
        raw = RawEnd()
        self.add(raw)
        node, endpoint = self._accepted(target)
        pipe = self.join((raw, raw), (node, endpoint))  # type: ignore[arg-type]
        for number, chunk in enumerate(said.chunks):
            # A frame may come in any pieces.
            cut = pieces.randrange(len(chunk)) if chunk and pieces.random() < 0.1 else 0
            for piece in (chunk[:cut], chunk[cut:]):
                raw.say(piece)
                self._flush_pipe(pipe, 0) if pipe in self.pipes else None
            if number in said.pauses:
                self._feed()
                self.run(0.02)
        self.run(0.01)
        self._end(pipe, raw, endpoint, said.ending)
        self.run(0.05)
        self.remove(raw)
        self._said = None

    def _accepted(self, target: str) -> tuple[Any, Endpoint]:
        match target:
            case "router" | "edge":
                node: Any = self.routers["r1" if target == "router" else "e1"]
                return node, node.on_accepted("clients", Peer("fuzz"), self.now)
            case "operator at a router" | "router at a router" | "edge at a router":
                node = self.routers["r2"]
                return node, node.on_accepted("nodes", Peer(is_mesh=True), self.now)
            case _:
                node = self.brokers["b1"]
                is_mesh = target != "broker"
                return node, node.on_accepted("nodes", Peer(None if is_mesh else "fuzz", is_mesh), self.now)

    def _end(self, pipe: Pipe, raw: RawEnd, endpoint: Endpoint, ending: str) -> None:
        if pipe not in self.pipes:
            return
        if ending == "half-close":
            self._guard(endpoint, endpoint.receive_eof)
            self.run(0.01)
        elif ending != "reset":
            raw.say(b"\0\0\0\x0f\x02\0\0\0\0\x53\x17\xc0\x01\0" + b"\0\0\0\x0f\x02\0\0\0\0\x53\x18\xc0\x01\0")
            self.run(0.01)
        self.cut(pipe)

    def _feed(self) -> None:
        for client, sender in self._feeders:
            if not client.closed and sender.link.is_open and sender.link.credit > 0:
                sender.send(b"\x00\x53\x75\xa0\x04food")
                client.endpoint.mark_dirty()

    # What must hold
    def check_bystanders(self) -> None:
        """Clients of other addresses still exchange messages over the links they had from the start."""
        self._sent += 1
        for producer in self._producers:
            self.send(producer, b"\x00\x53\x75\xa0\x08%08d" % self._sent)
        self.run_until(lambda: all(len(each.messages) == self._sent for each in self._consumers), 5)
        self.run_until(lambda: not any(producer.open for producer in self._producers), 5)

    def left_behind(self) -> list[str]:
        """Connections that belong to a peer which is gone, and ends of addresses whose links are, on every router."""
        known = {endpoint for pipe in self.pipes for _, endpoint in pipe.ends}
        connections = [
            f"{name}: {connection}"
            for name, node in self.routers.items()
            for connection in node._connections.values()
            if connection.endpoint not in known
        ]
        return connections + [
            f"{name}: an end of {group.address}, whose link {end.link.name!r} is gone"
            for name, node in self.routers.items()
            for group in (entry.group for entry in node._addresses._entries.values())
            for end in (*group.inlets, *group.takers)
            if end.link.is_gone
        ]
