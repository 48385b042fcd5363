"""Runs one broker in this process, from opening its store to closing connections and store in order."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from broker.disk import Disk
from broker.events import ClockWasSet, StoreDamaged, StoreOpened
from broker.message_numbers import MessageNumbers, noting
from broker.node import BrokerNode, BrokerNodeSnapshot
from broker.store.batch import Store, StoreError
from broker.store.sqlite import SqliteStore
from broker.wall_clock import read_clocks, settle_wall_time_s
from recording.recorder import recording, seconds
from recording.records import Recorder
from wire.driver import Driver
from wire.endpoint import Endpoint
from wire.errors import AmqpError
from wire.forced_end import ForcedEnd
from wire.log import Emit, emit
from wire.node import ListenerSpec
from wire.node_files import NodeFiles
from wire.transport.tls import mesh_listener_context

if TYPE_CHECKING:
    from addressing.topology.model import DeclaredAddress, Topology


class RunningBroker:
    """A running broker, as control sockets and tests see the broker: snapshots and live rows."""

    def __init__(self, node: BrokerNode, driver: Driver) -> None:
        self._node = node
        self._driver = driver

    def snapshot(self) -> BrokerNodeSnapshot:
        return self._node.snapshot()

    def check_added(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Raise ValueError if the addresses that ``added`` declares cannot be added while the node runs."""
        self._node.check_added(added)

    def add_addresses(self, added: Mapping[str, DeclaredAddress]) -> None:
        """Serve the addresses that ``added`` declares, from now on and without a pause."""
        self._node.add_addresses(added, self._driver.now())
        self._driver.wake()

    def endpoint_of(self, number: int) -> Endpoint:
        """Return the endpoint of the open connection with this number. Raises ValueError if there is none."""
        return self._node.endpoint_of(number)

    def close_connection(self, number: int, forced: ForcedEnd) -> None:
        """Close a connection, by its number in the records. Raises ValueError if there is no such connection."""
        self._node.close_connection(number, forced, self._driver.now())
        self._driver.wake()

    def close_link(self, connection: int, number: int, forced: ForcedEnd) -> None:
        """Close a client's link, by its number in the records. Raises ValueError if there is no such link."""
        self._node.close_link(connection, number, forced, self._driver.now())
        self._driver.wake()

    def list_live(self) -> int:
        """Begin to write live rows into the broker's ring; return the number of the slot from which on they follow.

        Raises ValueError if the broker has no ring.
        """
        slot = self._node.list_live(self._driver.now())
        self._driver.wake()
        return slot


OnStarted = Callable[[RunningBroker], Awaitable[None]]

# A thread keeps the Python interpreter for this many seconds at most when another thread wants to run. At the default,
# 5 ms, the commit thread of the store waits 5 ms after each SQL statement beside a busy event loop, and commits are
# slow.
SWITCH_INTERVAL_S = 0.0002


async def run_broker(
    topology: Topology,
    name: str,
    files: NodeFiles,
    stop: asyncio.Event,
    on_started: OnStarted,
    *,
    log: Emit = emit,
) -> None:
    """Run the broker until ``stop`` is set, then close its connections and store; call ``on_started`` once it listens.

    Raises BindError if the broker cannot listen, TlsSetupError if its certificate cannot be used, or StoreError if the
    store cannot be opened or the disk fails; a failed disk ends the broker before ``stop``.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    store = SqliteStore(files.data)
    try:
        with recording(topology, name, "broker", files.rings, log) as (recorder, ring):
            node, numbers = _open_node(topology, name, files, store, log, recorder)
            driver = Driver(node, log, container_id=node.name)
            async with (
                noting(numbers),
                seconds(recorder, driver, node.on_second, node.recorded_counts, ring),
            ):
                await _serve(node, driver, _node_listener(topology, name, files), store, stop, on_started)
    finally:
        store.close()


def _open_node(
    topology: Topology, name: str, files: NodeFiles, store: Store, log: Emit, recorder: Recorder
) -> tuple[BrokerNode, MessageNumbers]:
    began = time.monotonic()
    inventory = store.load()
    clocks = read_clocks()
    wall_s = settle_wall_time_s(files.data, clocks)
    offset_s = wall_s - time.monotonic()
    if clocks.wall_s != wall_s:
        log(ClockWasSet(str(files.data), round(clocks.wall_s - wall_s, 1)))
    numbers = MessageNumbers(files.data, wall_s, time.monotonic)
    # The constructor of the node reads the whole inventory of the store, so that all damages are known afterwards.
    node = BrokerNode(
        name,
        topology,
        inventory,
        now=began,
        wall_offset_s=offset_s,
        secret=secrets.token_hex(8),
        log=log,
        recorder=recorder,
        clock=time.monotonic,
        least_number=numbers.least,
    )
    now = time.monotonic()
    log(StoreOpened(str(files.data), len(inventory.queues), inventory.message_count, round(now - began, 3)))
    # Each finding about damage is logged once: a recovery that was repeated, since the disk was full, lists it twice.
    for finding in dict.fromkeys(inventory.damages):
        log(StoreDamaged(str(files.data), finding))
    node.on_space(store.look(), now)
    return node, numbers


async def _serve(
    node: BrokerNode, driver: Driver, listener: ListenerSpec, store: Store, stop: asyncio.Event, on_started: OnStarted
) -> None:
    disk = Disk(node, store, driver.now, driver.wake)
    driver.after_input = disk.serve
    await driver.listen(listener)
    await on_started(RunningBroker(node, driver))
    driver.wake()
    try:
        await _wait_first(stop.wait(), disk.wait_failed())
    except StoreError:
        # A message that was not accepted before the disk failed never will be accepted: the connections close with an
        # error, so that producers keep such messages.
        await driver.close(error=AmqpError("amqp:internal-error", f"broker {node.name} cannot use its disk any more"))
        disk.abandon()
        raise
    await driver.close()
    await disk.finish()


async def _wait_first(*waits: Awaitable[object]) -> None:
    """Wait until the first of ``waits`` is done, cancel the others, and raise the error of the first if it failed."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


def _node_listener(topology: Topology, name: str, files: NodeFiles) -> ListenerSpec:
    """Return the settings of the broker's only listener, to which routers and operators connect."""
    broker = topology.brokers[name]
    tls = None if files.certificate is None else mesh_listener_context(files.certificate)
    return ListenerSpec("nodes", broker.host, broker.port, tls, mesh=topology.mesh)
