"""The driver of one node: does the I/O (sockets, clock, checks of passwords), and feeds the node, which does none.

    socket, timer --> AmqpConnection --> node.on_<input>(..., now) --> wake: after_input, flush dirty, commands, timer

Each connection catches the exceptions of its own (`SocketConnection.guard`); the driver catches exceptions of the node
outside of any connection. Each event loop has one driver, made and called in the thread of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from wire.amqp_connection import FEW_CHANGES, MOST_CHANGES, AmqpConnection
from wire.endpoint import Endpoint, Peer
from wire.errors import AmqpError
from wire.log import Emit, emit
from wire.log_events import LoopTrouble, NodeBug
from wire.node import Abort, Command, ConnectorSpec, DropConnector, ListenerSpec, Node, OpenConnector
from wire.origin import origin_at_connector, origin_at_listener
from wire.refuser import Refuser
from wire.sasl import PasswordCheck
from wire.transport.connector import Connector, ConnectorSnapshot
from wire.transport.io_context import IoContext
from wire.transport.listener import BindError, ListenerSnapshot, SocketListener

__all__ = ["BindError", "Driver", "DriverSnapshot"]

_TURNS = 8
"""Turns, of 64 KiB each, in which waiters for room may write after one input; further turns follow in a later loop."""
_MIN_TIMER_S = 0.001
_SLICE_S = 0.002
"""Time in each turn of the event loop for input that waits in endpoints, as in a storm of attaches; one turn of a
connection is the least.
"""
_BUG_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class DriverSnapshot:
    listeners: tuple[ListenerSnapshot, ...]
    connectors: tuple[ConnectorSnapshot, ...]
    connection_count: int


class Driver:
    """Runs one node: keeps the node's listeners, connectors and connections, feeds input, and carries out commands.

    Always: an endpoint is in ``_by_endpoint`` from when the node made it until ``on_disconnected``.
    """

    def __init__(
        self, node: Node, log: Emit = emit, *, container_id: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.after_input: Callable[[], None] | None = None
        self.log = log
        self._io = IoContext(log, clock)
        self._node = node
        self._container_id = container_id
        self.now = clock
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_loop_trouble)
        self._listeners: dict[str, SocketListener] = {}
        self._connectors: dict[str, Connector] = {}
        self._connections: dict[AmqpConnection, None] = {}
        self._by_endpoint: dict[Endpoint, AmqpConnection] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._later: dict[Endpoint, None] = {}
        self._behind: dict[AmqpConnection, None] = {}
        """Connections whose endpoints keep a rest of their input, in the order of their next turns."""
        self.most_changes = MOST_CHANGES
        self._parting: dict[AmqpConnection, str] = {}
        """Connections that have ended, each with the reason, whose endpoints keep a rest of their input."""
        self._is_closing = False
        self._gone = asyncio.Event()
        # One thread for all checks of passwords, so that guesses over many connections take one core at most.
        self._passwords = ThreadPoolExecutor(1, "passwords")

    # Methods for the code that runs the node
    async def listen(self, spec: ListenerSpec) -> int:
        """Open the listener that ``spec`` describes, for connections to the node; return its port.

        Raises BindError if the port cannot be used.
        """
        admit = partial(AmqpConnection, self, self._node, origin_at_listener(spec))
        refuser = Refuser(self._container_id, f"this listener allows at most {spec.max_connections} connections")
        refuse = partial(AmqpConnection, self, refuser, origin_at_listener(spec, is_refused=True))
        listener = SocketListener(self._io, spec, admit, refuse)
        port = await listener.open()
        self._listeners[spec.name] = listener
        return port

    def connect(self, spec: ConnectorSpec) -> None:
        """Dial the peer that ``spec`` describes, and dial again after each loss of the connection.

        A connector of the same name is stopped and replaced.
        """
        self.disconnect(spec.name)
        connect = partial(AmqpConnection, self, self._node, origin_at_connector(spec))
        self._connectors[spec.name] = Connector(self._io, spec, connect, partial(self.on_connect_failed, spec.name))

    def disconnect(self, name: str) -> None:
        connector = self._connectors.pop(name, None)
        if connector is not None:
            connector.stop()

    def wake(self) -> None:
        """Do what follows an input: call ``after_input``, flush output, carry out the node's commands, arm the timer.

        Code outside of the driver that gives the node an input calls this afterwards.
        """
        if self.after_input is not None:
            self.guard_node(self.after_input)
        self._flush_dirty()
        if commands := self._node.commands:
            while commands:
                self._carry_out(commands.pop(0))
            self._flush_dirty()
        deadline = self._node.next_deadline()
        # A timer that fires before the deadline stays: an early call costs less than a new timer after each input.
        if deadline is not None and (self._timer is None or deadline < self._timer_at):
            self._arm_timer(deadline)

    async def close(self, grace_s: float = 5.0, error: AmqpError | None = None) -> None:
        """Stop listening and dialing; close every connection in order, and abort connections left after ``grace_s``.

        Client connections come first, while the node can still end its links for clients elsewhere (at brokers).
        ``error`` is the error for peers; by default it says that we shut down, which is no fault of the peer: clients
        reconnect. The error comes with the close of the connection, which ends its links [2.4.3]. A detach of each link
        before the close would make clients give up the link (Qpid JMS does) instead of attaching again elsewhere.
        """
        error = error or AmqpError("amqp:connection:forced", f"{self._container_id} shuts down")
        self._is_closing = True
        for listener in self._listeners.values():
            listener.close()
        for connector in self._connectors.values():
            connector.stop_dialing()
        await self._close_all([each for each in self._connections if each.origin.is_client], error, grace_s / 2)
        await self._close_all(list(self._connections), error, grace_s / 2)
        for connection, reason in list(self._parting.items()):
            self._part(connection, reason)
        if self._timer is not None:
            self._timer.cancel()
        self._passwords.shutdown(wait=False, cancel_futures=True)

    async def _close_all(self, connections: list[AmqpConnection], error: AmqpError, grace_s: float) -> None:
        for connection in connections:
            connection.transport.guard(connection.close, error)
        await self._wait_gone(connections, grace_s)
        for connection in self._connections.keys() & connections:
            connection.transport.abort("shut down")
        await self._wait_gone(connections, 1.0)

    def snapshot(self) -> DriverSnapshot:
        return DriverSnapshot(
            tuple(listener.snapshot() for listener in self._listeners.values()),
            tuple(connector.snapshot() for connector in self._connectors.values()),
            len(self._connections),
        )

    # For connections (wire.amqp_connection.AmqpConnectionOwner)
    def on_made(self, connection: AmqpConnection) -> None:
        self._connections[connection] = None

    def on_ready(self, connection: AmqpConnection, peer: Peer) -> Endpoint | None:
        if self._is_closing:
            connection.transport.abort("shut down")
            return None
        origin, node, now = connection.origin, connection.node, self.now()
        if origin.connector is not None:
            endpoint = node.on_connected(origin.connector.name, peer, now)
        else:
            endpoint = node.on_accepted(origin.listener or "", peer, now)
        self._by_endpoint[endpoint] = connection
        return endpoint

    def on_input(self, connection: AmqpConnection) -> None:
        endpoint = connection.endpoint
        if endpoint is not None:
            now = self.now()
            endpoint.hear(now)
            connection.node.on_input(endpoint, now)
        if connection.node is not self._node:
            connection.flush()
        self.wake()

    def on_rest(self, connection: AmqpConnection) -> None:
        if not self._behind:
            self._loop.call_soon(self._catch_up)
            # Many connections may read in one turn of the event loop, so their first slices have to be small.
            self.most_changes = FEW_CHANGES
        self._behind[connection] = None

    def _catch_up(self) -> None:
        """Let connections go on with the input that waits in their endpoints, in turn, for `_SLICE_S` or one turn."""
        behind, self._behind = self._behind, {}
        until = self.now() + _SLICE_S
        while behind:
            connection = next(iter(behind))
            del behind[connection]
            endpoint = connection.endpoint
            if endpoint is not None and endpoint in self._by_endpoint:
                connection.transport.guard(connection.go_on)
                if connection in self._parting and not endpoint.has_rest:
                    self._part(connection, self._parting.pop(connection))
                    self.wake()
            if self.now() >= until:
                break
        # The others come before those that had a turn.
        again, self._behind = self._behind, behind
        for connection in again:
            self._behind[connection] = None
        if not self._behind:
            self.most_changes = MOST_CHANGES
        elif not again:
            self._loop.call_soon(self._catch_up)

    def on_writable(self, connection: AmqpConnection) -> None:
        if connection.endpoint is not None:
            connection.node.on_writable(connection.endpoint, self.now())
        self.wake()

    def on_ended(self, connection: AmqpConnection, reason: str) -> None:
        self._part(connection, reason)
        self.wake()

    def _part(self, connection: AmqpConnection, reason: str) -> None:
        """Tell the node that the endpoint is gone, and free it, at once: the peer may take time to close the socket."""
        endpoint = connection.endpoint
        if endpoint is not None and endpoint.has_rest and not self._is_closing:
            # The peer sent this before its end, so the node gets it before it hears of the end.
            self._parting.setdefault(connection, reason)
            return
        if endpoint is not None and self._by_endpoint.pop(endpoint, None) is not None:
            self.guard_node(lambda: connection.node.on_disconnected(endpoint, reason, self.now()))
            if not endpoint.is_kept:
                endpoint.free()

    def on_gone(self, connection: AmqpConnection, reason: str) -> None:
        self._connections.pop(connection, None)
        self._part(connection, reason)
        connection.log_end(reason)
        self._gone.set()
        self.wake()

    def on_connect_failed(self, name: str, reason: str) -> None:
        self.guard_node(lambda: self._node.on_connect_failed(name, reason, self.now()))
        self.wake()

    def check_password(self, check: PasswordCheck, done: Callable[[bool], None]) -> None:
        future = self._loop.run_in_executor(self._passwords, check.is_right)
        future.add_done_callback(lambda future: done(not future.cancelled() and future.result()))

    def guard_node(self, call: Callable[[], None]) -> bool:
        """Run ``call``, which is input for the node; log any exception as a NodeBug, and return False for it."""
        try:
            call()
        except Exception as bug:  # noqa: BLE001 (the one place for nodes, see style)
            self.log(NodeBug(repr(bug), traceback.format_exc()))
            return False
        return True

    # Within
    def _flush_dirty(self) -> None:
        dirty = self._node.dirty
        turns = _TURNS
        while (endpoint := dirty.pop()) is not None:
            connection = self._by_endpoint.get(endpoint)
            if connection is None:
                continue
            try:
                connection.flush()
            except Exception as fault:  # noqa: BLE001 (as in `guard`, which would cost a call for each write)
                connection.transport.on_fault(fault)
            if not (endpoint.has_waiters and endpoint.has_room):
                continue
            if turns:
                turns -= 1
                connection.transport.guard(self._node.on_writable, endpoint, self.now())
            else:
                self._go_on_later(endpoint)

    def _go_on_later(self, endpoint: Endpoint) -> None:
        """Let the endpoint's waiters for room write in a later turn of the event loop, after other connections."""
        if not self._later:
            self._loop.call_soon(self._go_on)
        self._later[endpoint] = None

    def _go_on(self) -> None:
        later, self._later = self._later, {}
        for endpoint in later:
            connection = self._by_endpoint.get(endpoint)
            if connection is not None:
                connection.transport.guard(self._node.on_writable, endpoint, self.now())
        self.wake()

    def _carry_out(self, command: Command) -> None:
        match command:
            case OpenConnector(spec):
                self.connect(spec)
            case DropConnector(name):
                self.disconnect(name)
            case Abort(endpoint, reason):
                connection = self._by_endpoint.get(endpoint)
                if connection is not None:
                    connection.transport.reset(reason)

    def _arm_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_later(max(deadline - self.now(), _MIN_TIMER_S), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self.guard_node(lambda: self._node.on_time(self.now())):
            # After an exception in the node's `on_time`, the same deadline may still be due: the next call comes a
            # second later, so that the loop does not spin.
            self._timer_at = 0.0
            self._timer = self._loop.call_later(_BUG_PAUSE_S, self._on_timer)
        self.wake()

    async def _wait_gone(self, connections: list[AmqpConnection], timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._connections.keys().isdisjoint(connections):
                    self._gone.clear()
                    await self._gone.wait()

    def _on_loop_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.log(LoopTrouble(str(context.get("message")), repr(error) if error is not None else None))
