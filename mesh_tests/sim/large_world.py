"""A world of thousands of nodes: only what was touched is looked after, as the real driver does.

`World` asks every node and every pipe after each event, which is simple, and too slow for so many.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable
from typing import Any

from mesh_tests.sim.world import Pipe, SimMesh
from wire.endpoint import Endpoint
from wire.node import Abort


class LargeMesh(SimMesh):
    """Without brokers."""

    def __init__(self, *arguments: Any) -> None:
        self._ends: dict[Endpoint, tuple[Pipe, int]] = {}
        self._deadlines: list[tuple[float, int, Any]] = []
        self._sequence = itertools.count()
        self._due: dict[Any, float] = {}
        """When each node is looked at next, at the latest."""
        self._touched: dict[Any, None] = {}
        self._alive: dict[Any, None] = {}
        super().__init__(*arguments)

    def join(self, one: tuple[Any, Endpoint], other: tuple[Any, Endpoint]) -> Pipe:
        pipe = Pipe((one, other), self.delay_s)
        self.pipes.append(pipe)
        for end, (node, endpoint) in enumerate(pipe.ends):
            self._ends[endpoint] = pipe, end
            self._touched[node] = None
        self.flush()
        return pipe

    def flush(self) -> None:
        """Of the nodes that had an input, and of those that a test has used."""
        for node in self.nodes if not self._touched else ():
            if len(node.dirty):
                self._touched[node] = None
        self._serve(self._touched)
        self._touched.clear()

    def _serve(self, nodes: Iterable[Any]) -> None:
        for node in list(nodes):
            if node not in self.nodes_alive:
                continue
            self._obey(node)
            while (endpoint := node.dirty.pop()) is not None:
                self._write(node, endpoint)
            deadline = node.next_deadline()
            if deadline is not None and deadline < self._due.get(node, math.inf):
                self._due[node] = deadline
                heapq.heappush(self._deadlines, (deadline, next(self._sequence), node))

    @property
    def nodes_alive(self) -> dict[Any, None]:
        if len(self._alive) != len(self.nodes):
            self._alive = dict.fromkeys(self.nodes)
        return self._alive

    def _obey(self, node: Any) -> None:
        commands = getattr(node, "commands", ())
        while commands:
            command = commands.pop(0)
            assert isinstance(command, Abort), "there are no brokers"
            self.abort(command.endpoint, command.reason)

    def _write(self, node: Any, endpoint: Endpoint) -> None:
        if endpoint.is_freed or endpoint not in self._ends:
            return
        pipe, end = self._ends[endpoint]
        while data := endpoint.output():
            if not pipe.is_cut:
                self.at(self.now + pipe.delay_s, self._arrival(pipe, 1 - end, data))
        if endpoint.has_waiters and endpoint.has_room:
            node.on_writable(endpoint, self.now)
            endpoint.mark_dirty()

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        self._touched.update(dict.fromkeys(node for node in self.nodes if len(node.dirty)))
        self.flush()
        while True:
            arrival = self._queue[0][0] if self._queue else end
            deadline = self._deadlines[0][0] if self._deadlines else end
            when = min(arrival, deadline)
            if when >= end:
                break
            self.now = max(self.now, when)
            if arrival <= deadline:
                heapq.heappop(self._queue)[2]()
            else:
                when, _, node = heapq.heappop(self._deadlines)
                if self._due.get(node) == when:
                    del self._due[node]
                    self._on_deadline(node)
            if self._touched:
                self.flush()
        self.now = end

    def _on_deadline(self, node: Any) -> None:
        due = node.next_deadline() if node in self.nodes_alive else None
        if due is not None:
            self._touched[node] = None
            if due <= self.now:
                node.on_time(self.now)

    def _arrival(self, pipe: Pipe, end: int, data: bytes) -> Any:
        arrive = super()._arrival(pipe, end, data)
        node = pipe.ends[end][0]

        def touch() -> None:
            self._touched[node] = None
            arrive()

        return touch

    def _disconnect(self, node: Any, endpoint: Endpoint, reason: str) -> None:
        self._touched[node] = None
        super()._disconnect(node, endpoint, reason)
