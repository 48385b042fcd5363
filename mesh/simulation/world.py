"""Steps nodes that are joined by pipes in virtual time: arrivals of bytes, deadlines of nodes, and scheduled actions.

All events happen in order of time, and events at the same time in the order in which they were scheduled. Nothing
sleeps, and nothing is random. The cost of a step depends on the nodes that the step changes, not on the number of
nodes. Changes that a test makes to nodes are looked for once, at each call of ``run``, ``step`` or ``flush``.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wire.endpoint import Endpoint
from wire.errors import AmqpError

_IDLE_S = 60.0


@dataclass(eq=False)
class Pipe:
    """A connection between two ends, each a node with its endpoint; bytes take ``delay_s`` each way and keep their
    order.
    """

    ends: tuple[tuple[Any, Endpoint], tuple[Any, Endpoint]]
    delay_s: float
    number: int = 0
    is_cut: bool = False
    arrives_at: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """For each end, the time at which the last bytes in flight arrive."""
    is_finished: list[bool] = field(default_factory=lambda: [False, False])
    """For each end, whether its endpoint has sent its last bytes, and drops the connection."""


class World:
    """All nodes and pipes of a simulation, and its clock of virtual time, which starts at 1,000 s."""

    def __init__(self, delay_s: float = 0.001) -> None:
        self.now = 1000.0
        self.delay_s = delay_s
        self.pipes: dict[Pipe, None] = {}
        self.nodes: dict[Any, int] = {}
        """For each node, the number under which the node was added; nodes with the same deadline act in this order."""
        self.log: list[Any] = []
        self._ends: dict[Endpoint, tuple[Pipe, int]] = {}
        self._queue: list[tuple[float, int, Callable[[], None], Any]] = []
        self._order = itertools.count()
        self._touched: dict[Any, None] = {}
        self._alarms: list[tuple[float, int, Any]] = []
        self._deadlines: dict[Any, float] = {}
        """For each node, the time of its valid alarm; the heap may hold outdated alarms of the node as well."""

    # Nodes and connections.
    def add(self, node: Any) -> None:
        self.nodes[node] = next(self._order)
        self.touch(node)

    def remove(self, node: Any) -> None:
        del self.nodes[node]
        self._deadlines.pop(node, None)

    def touch(self, node: Any) -> None:
        """Mark a node as changed, so that `settle` sends the node's bytes and reads the node's next deadline."""
        self._touched[node] = None

    def at(self, when: float, action: Callable[[], None], node: Any = None) -> None:
        """Schedule ``action`` at the time ``when``.

        ``node``: the only node that the action changes; None if the action may change any node.
        """
        heapq.heappush(self._queue, (when, next(self._order), action, node))

    def join(self, one: tuple[Any, Endpoint], other: tuple[Any, Endpoint]) -> Pipe:
        pipe = Pipe((one, other), self.delay_s, next(self._order))
        self.pipes[pipe] = None
        for end, (node, endpoint) in enumerate(pipe.ends):
            self._ends[endpoint] = pipe, end
            self.touch(node)
        self.settle()
        return pipe

    def pipes_of(self, node: Any) -> list[Pipe]:
        return [pipe for pipe in self.pipes if any(end is node for end, _ in pipe.ends)]

    def cut(self, pipe: Pipe, *, silently: bool = False) -> None:
        """Cut a connection, and tell both nodes of the loss.

        With ``silently``, only bytes are lost from now on: the nodes hear of the cut at a second call without it.
        """
        if pipe not in self.pipes:
            return
        pipe.is_cut = True
        if silently:
            return
        del self.pipes[pipe]
        for node, endpoint in pipe.ends:
            self._disconnect(node, endpoint, "cut")
            self._ends.pop(endpoint, None)
        self.on_cut(pipe)
        self.settle()

    def abort(self, endpoint: Endpoint, reason: str) -> None:
        """Let one end drop its connection with ``reason``; the other end hears of the loss later, unless the connection
        was cut silently before.
        """
        pipe, end = self._ends[endpoint]
        self._disconnect(pipe.ends[end][0], endpoint, reason)
        if all(end.is_freed for _, end in pipe.ends):
            self.cut(pipe)
        elif not pipe.is_cut:
            self.at(self.now + pipe.delay_s, lambda: self.cut(pipe))

    def _disconnect(self, node: Any, endpoint: Endpoint, reason: str) -> None:
        if node in self.nodes and not endpoint.is_freed:
            node.on_disconnected(endpoint, reason, self.now)
            self.touch(node)
        if not endpoint.is_kept:
            endpoint.free()

    def on_cut(self, pipe: Pipe) -> None:
        """Do nothing: a subclass may connect again here, upon each connection that was cut or dropped."""

    def on_touched(self, node: Any) -> bool:
        """Return False: the node asks nothing of its driver. A subclass carries out one request, and returns True."""
        return False

    def on_step(self, node: Any) -> None:
        """Do nothing: a subclass may look at ``node`` here, each time that the node may have changed."""

    # Bytes.
    def flush(self) -> None:
        """Send the bytes that any node wants to send, including nodes that were not marked as changed."""
        for pipe in list(self.pipes):
            self._flush_pipe(pipe, 0)
            self._flush_pipe(pipe, 1)
        for node in self.nodes:
            self.touch(node)
        self.settle()

    def settle(self) -> None:
        """Send the bytes of all nodes marked as changed, until none of them has bytes to send; then set their
        alarms.
        """
        looked_at: dict[Any, None] = {}
        while self._touched:
            touched, self._touched = self._touched, {}
            looked_at |= touched
            dirty: list[tuple[int, int, Pipe]] = []
            for node in touched:
                if node not in self.nodes:
                    continue
                while self.on_touched(node):
                    pass
                while (endpoint := node.dirty.pop()) is not None:
                    if (known := self._ends.get(endpoint)) is not None:
                        dirty.append((known[0].number, known[1], known[0]))
            for _, end, pipe in sorted(dirty, key=_by_number):
                self._flush_pipe(pipe, end)
        for node in looked_at:
            if node in self.nodes:
                self._set_alarm(node)
                self.on_step(node)

    def _flush_pipe(self, pipe: Pipe, end: int) -> None:
        node, endpoint = pipe.ends[end]
        if node not in self.nodes or endpoint.is_freed:
            return
        while data := endpoint.output():
            if not pipe.is_cut:
                self._send(pipe, 1 - end, data)
        if endpoint.is_finished and not pipe.is_finished[end]:
            pipe.is_finished[end] = True
            self.at(self.now, lambda: self._let_go(pipe, end), node)
        if endpoint.has_waiters and endpoint.has_room:
            node.on_writable(endpoint, self.now)
            if node.dirty:
                self.touch(node)

    def _let_go(self, pipe: Pipe, end: int) -> None:
        """Drop a finished connection at one end, as a driver does once the last bytes are written.

        The other end hears of the loss after these bytes have arrived.
        """
        node, endpoint = pipe.ends[end]
        if endpoint.is_freed or pipe not in self.pipes:
            return
        self._disconnect(node, endpoint, endpoint.ending.reason)
        is_last = pipe.ends[1 - end][1].is_freed
        self.at(self.now if is_last else max(self.now + pipe.delay_s, pipe.arrives_at[1 - end]), lambda: self.cut(pipe))

    def _send(self, pipe: Pipe, end: int, data: bytes) -> None:
        # Bytes that were sent first arrive first, even if the delay of the pipe has become shorter since.
        when = pipe.arrives_at[end] = max(self.now + pipe.delay_s, pipe.arrives_at[end])
        self.at(when, lambda: self.arrive(pipe, end, data), pipe.ends[end][0])

    def arrive(self, pipe: Pipe, end: int, data: bytes) -> None:
        node, endpoint = pipe.ends[end]
        if pipe.is_cut or node not in self.nodes or endpoint.is_finished:
            return
        try:
            endpoint.receive(data)
            node.on_input(endpoint, self.now)
        except AmqpError as fault:
            # The peer broke the protocol: its connection is closed with the error, as a driver does.
            endpoint.close(fault)

    # Time.
    def _set_alarm(self, node: Any) -> None:
        deadline = node.next_deadline()
        if deadline is None:
            self._deadlines.pop(node, None)
        elif self._deadlines.get(node) != deadline:
            self._deadlines[node] = deadline
            heapq.heappush(self._alarms, (deadline, self.nodes[node], node))

    def _next_alarm(self, end: float) -> float:
        while self._alarms and self._deadlines.get(self._alarms[0][2]) != self._alarms[0][0]:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else end

    def _do_one(self) -> None:
        _, _, action, node = heapq.heappop(self._queue)
        action()
        if node is None:
            self.flush()
        else:
            self.touch(node)

    def _wake_one(self) -> None:
        _, _, node = heapq.heappop(self._alarms)
        del self._deadlines[node]
        node.on_time(self.now)
        self.touch(node)

    def run(self, seconds: float) -> None:
        """Let ``seconds`` of virtual time pass, with all events in this time."""
        self.flush()
        end = self.now + seconds
        while self._step(end):
            pass
        self.now = end

    def step(self) -> None:
        """Let virtual time pass until the next event within 60 s, and carry out this event; without one, no time
        passes.
        """
        self.flush()
        self._step(self.now + _IDLE_S)
        self.settle()

    def _step(self, end: float) -> bool:
        """Carry out the next event; return False if no event is due before ``end``."""
        self.settle()
        alarm = self._next_alarm(end)
        due = self._queue[0][0] if self._queue else end
        if min(alarm, due) >= end:
            return False
        self.now = max(self.now, min(alarm, due))
        if due <= alarm:
            self._do_one()
        else:
            self._wake_one()
        return True

    def run_until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Let virtual time pass until ``condition`` holds. Raise AssertionError if it does not hold within
        ``seconds``.
        """
        end = self.now + seconds
        while not condition():
            assert self.now < end, f"not within {seconds} s of virtual time"
            self.run(0.005)


def _by_number(dirty: tuple[int, int, Pipe]) -> tuple[int, int]:
    return dirty[:2]
